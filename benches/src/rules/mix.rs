//! Sets of rules of any size, of which every request meets the same five.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use tollkeeper_core::{
    Action, Facts, Limit, Matched, PathPattern, Quota, RequestPath, Rule, RuleLimit, RuleScope,
    RuleSet, ScopeList, Sharing, Width,
};

use crate::failure::Failure;

/// How many rules of each set a request meets.
pub(crate) const MET: usize = 5;
const REQUESTS: u32 = 1_000;
const RESOURCES: usize = 200;
const TIERS: usize = 50;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mix {
    /// Endpoints, tiers, methods, addresses and projects, as a large API has them.
    Mixed,
    /// Every rule is about something below `/api/v1`, and many about all of it.
    OnePrefix,
    /// No rule has an endpoint; each has tiers, and other conditions decide.
    TiersOnly,
}

/// One request that meets [`MET`] rules of every mix.
#[derive(Debug)]
pub(crate) struct Request {
    path: String,
    ip: IpAddr,
    user: String,
}

// === impl Mix ===

impl Mix {
    pub(crate) const ALL: [Self; 3] = [Self::Mixed, Self::OnePrefix, Self::TiersOnly];

    pub(crate) fn about(self) -> &'static str {
        match self {
            Self::Mixed => "a mix of endpoints, tiers, methods, addresses, projects",
            Self::OnePrefix => "all below `/api/v1`, one in four about all of it",
            Self::TiersOnly => "no endpoints, all with tiers",
        }
    }

    /// The five lie spread among the others.
    pub(crate) fn compiled(self, size: usize) -> Result<RuleSet, Failure> {
        let spread = (size / MET).max(1);
        let mut rules = Vec::with_capacity(size);
        for n in 0..size {
            let rule = rule(n)?;
            rules.push(Arc::new(match self {
                _ if n % spread == 0 && n / spread < MET => self.met(n / spread, rule)?,
                Self::Mixed => mixed(n, rule)?,
                Self::OnePrefix => one_prefix(n, rule)?,
                Self::TiersOnly => tiers_only(n, rule)?,
            }));
        }
        Ok(RuleSet::compile(rules))
    }

    fn met(self, nth: usize, rule: Rule) -> Result<Rule, Failure> {
        let (tiers, methods) = (names("tier-7"), names("POST"));
        Ok(match (self, nth) {
            (Self::TiersOnly, 0) => Rule { tiers, ..rule },
            (Self::TiersOnly, 1) => Rule { tiers, methods, ..rule },
            (Self::TiersOnly, 2) => Rule { tiers, projects: names("proj_7"), ..rule },
            (Self::TiersOnly, 3) => Rule { tiers, ip_ranges: vec![range("10.0.0.0/8")?], ..rule },
            (Self::TiersOnly, _) => Rule { tiers, scope: RuleScope::User.into(), ..rule },
            (_, 0) => Rule { endpoints: vec![pattern("/api/v1/*")?], ..rule },
            (_, 1) => Rule { endpoints: vec![pattern("/api/v1/orders/{id}")?], methods, ..rule },
            (_, 2) => Rule { endpoints: vec![pattern("/api/v1/orders/**")?], tiers, ..rule },
            (Self::OnePrefix, 3) => Rule {
                endpoints: vec![pattern("/api/v1/**")?],
                ip_ranges: vec![range("10.0.0.0/8")?],
                ..rule
            },
            (_, 3) => Rule { ip_ranges: vec![range("10.0.0.0/8")?], methods, ..rule },
            (_, _) => Rule {
                endpoints: vec![pattern("/api/v1/customers")?, pattern("/api/{version}/orders/*")?],
                ..rule
            },
        })
    }
}

/// Six in ten have an endpoint, the others one or two of the other conditions.
fn mixed(n: usize, rule: Rule) -> Result<Rule, Failure> {
    let resource = format!("resource-{}", n % RESOURCES);
    let (tiers, methods) = (other_tier(n), names(["GET", "PUT", "DELETE"][n % 3]));
    Ok(match n % 20 {
        0..4 => Rule { endpoints: vec![pattern(&format!("/api/v1/{resource}/{{id}}"))?], ..rule },
        4..7 => Rule { endpoints: vec![pattern(&format!("/api/v1/{resource}/*"))?], tiers, ..rule },
        7..9 => Rule { endpoints: vec![pattern(&format!("/api/v2/{resource}"))?], methods, ..rule },
        9..11 => Rule {
            endpoints: vec![pattern(&format!("/api/v1/*/{resource}"))?, pattern("/files/**")?],
            ..rule
        },
        11 => Rule { endpoints: vec![pattern(&format!("/**/{resource}"))?], ..rule },
        12 | 13 => Rule { tiers, methods, ..rule },
        14 | 15 => Rule { tiers, ..rule },
        16 | 17 => Rule { ip_ranges: vec![other_range(n)?], ..rule },
        _ => Rule { projects: names(&format!("proj_x{n}")), ..rule },
    })
}

fn one_prefix(n: usize, rule: Rule) -> Result<Rule, Failure> {
    let tiers = other_tier(n);
    let text = match n % 4 {
        0 => "/api/v1/*".to_owned(),
        1 => format!("/api/v1/resource-{n}/{{id}}"),
        2 => format!("/api/v1/{{resource}}/part-{n}"),
        _ => format!("/api/v1/resource-{}/**/part-{n}", n % RESOURCES),
    };
    Ok(Rule { endpoints: vec![pattern(&text)?], tiers, ..rule })
}

/// One in fifty has the requests' tier, and something else that they do not have.
fn tiers_only(n: usize, rule: Rule) -> Result<Rule, Failure> {
    let tiers = names(&format!("tier-{}", n % TIERS));
    Ok(match n % 3 {
        0 => Rule { tiers, methods: names(["GET", "PUT", "DELETE"][n % 3]), ..rule },
        1 => Rule { tiers, ip_ranges: vec![other_range(n)?], ..rule },
        _ => Rule { tiers, projects: names(&format!("proj_x{n}")), ..rule },
    })
}

fn rule(n: usize) -> Result<Rule, Failure> {
    let too_large = || Failure::Invalid("a limit out of range".into());
    let quota = Quota::new(1_000).ok_or_else(too_large)?;
    let width = Width::from_millis(60_000).ok_or_else(too_large)?;
    let limit = RuleLimit::new("1m", Limit::sliding_window(quota, width));
    Ok(Rule {
        name: Arc::from(format!("rule-{n:05}")),
        scope: ScopeList::from(RuleScope::Key),
        tiers: Vec::new(),
        endpoints: Vec::new(),
        methods: Vec::new(),
        ip_ranges: Vec::new(),
        projects: Vec::new(),
        limits: vec![limit],
        action: Action::Reject,
        response: None,
        sharing: Sharing::default(),
        priority: 100,
        enabled: true,
    })
}

fn names(name: &str) -> Vec<Box<str>> {
    vec![name.into()]
}

/// Any but the requests' own.
fn other_tier(n: usize) -> Vec<Box<str>> {
    names(&format!("tier-{}", if n % TIERS == 7 { 8 } else { n % TIERS }))
}

fn other_range(n: usize) -> Result<tollkeeper_core::Cidr, Failure> {
    range(&format!("172.{}.{}.0/{}", 16 + n % 16, n / 16 % 256, [16, 24, 28][n % 3]))
}

fn range(text: &str) -> Result<tollkeeper_core::Cidr, Failure> {
    text.parse().map_err(|_| Failure::unreadable("an address range", text))
}

fn pattern(text: &str) -> Result<PathPattern, Failure> {
    PathPattern::parse(text).map_err(|_| Failure::unreadable("an endpoint pattern", text))
}

// === impl Request ===

pub(crate) fn requests() -> Vec<Request> {
    let one = |n: u32| Request {
        path: format!("/api/v1/orders/ord_{:08x}?expand=lines", n.wrapping_mul(2_654_435_761)),
        ip: IpAddr::V4(Ipv4Addr::from(0x0a00_0000 | n)),
        user: format!("user_{n}"),
    };
    (0..REQUESTS).map(one).collect()
}

impl Request {
    pub(crate) fn walk<'s>(&self, set: &'s RuleSet, matched: &mut Vec<Matched<'s>>) {
        let path = RequestPath::new(&self.path);
        let facts = Facts {
            tier: "tier-7",
            method: Some("POST"),
            path: Some(&path),
            ip: Some(self.ip),
            project_id: Some("proj_7"),
            project_slug: Some("shop"),
            key_id: Some("key_7"),
            user: Some(&self.user),
            tenant: "acme",
        };
        set.walk(&facts, matched);
    }
}
