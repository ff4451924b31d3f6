//! The identifier of a rule's counter: the values of its scopes in one text, so that no two lists of values share one.

use std::fmt::Write;
use std::net::{IpAddr, Ipv6Addr};

use super::{Facts, Matched, RuleScope};

/// Parts stand in the order of the rule's scopes with `|` between them; `|` and `%` inside a part are escaped.
pub fn identifier(matched: &Matched<'_>, facts: &Facts<'_>, into: &mut String) {
    for (at, scope) in matched.rule.scope.as_slice().iter().enumerate() {
        if at > 0 {
            into.push('|');
        }
        match scope {
            RuleScope::Global => into.push('*'),
            RuleScope::Tenant => push_escaped(facts.tenant, into),
            RuleScope::Project => push_escaped(facts.project_id.unwrap_or_default(), into),
            RuleScope::User => push_escaped(facts.user.unwrap_or_default(), into),
            RuleScope::Key => push_escaped(facts.key_id.unwrap_or_default(), into),
            RuleScope::Ip => push_network(facts.ip, into),
            RuleScope::Endpoint => {
                push_escaped(matched.pattern.map_or("", |pattern| pattern.as_str()), into);
            }
        }
    }
}

/// The identifier of a rule that counts by this value alone.
pub fn identifier_of(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    push_escaped(value, &mut text);
    text
}

fn push_escaped(value: &str, into: &mut String) {
    // Nearly every value stands as it is. Counting looks at many bytes at a time, where a search asks after each.
    let signs = value.bytes().filter(|byte| matches!(byte, b'%' | b'|')).count();
    if signs == 0 { into.push_str(value) } else { push_signs_escaped(value, into) }
}

#[cold]
fn push_signs_escaped(value: &str, into: &mut String) {
    let mut rest = value;
    while let Some(at) = rest.find(['%', '|']) {
        into.push_str(&rest[..at]);
        into.push_str(if rest.as_bytes()[at] == b'%' { "%25" } else { "%7C" });
        rest = &rest[at + 1..];
    }
    into.push_str(rest);
}

/// One IPv6 subscriber holds at least a /64 and can send from any address in it.
const V6_PREFIX: u32 = 64;

fn push_network(ip: Option<IpAddr>, into: &mut String) {
    // Writing to a String cannot fail.
    let _ = match ip.map(|ip| ip.to_canonical()) {
        Some(IpAddr::V4(address)) => {
            push_octets(address.octets(), into);
            Ok(())
        }
        Some(IpAddr::V6(address)) => {
            let network = u128::from(address) >> V6_PREFIX << V6_PREFIX;
            write!(into, "{}/{V6_PREFIX}", Ipv6Addr::from(network))
        }
        None => Ok(()),
    };
}

/// Every request that counts by address passes here: the formatter of the standard library takes several times as long.
fn push_octets(octets: [u8; 4], into: &mut String) {
    /// `255.255.255.255.`, with the point that goes again.
    const BYTES_MAX: usize = 16;
    let (mut text, mut end) = ([0; BYTES_MAX], 0);
    for octet in octets {
        let digits = [octet / 100, octet / 10 % 10, octet % 10];
        let leading = usize::from(octet < 100) + usize::from(octet < 10);
        for digit in &digits[leading..] {
            text[end] = b'0' + digit;
            end += 1;
        }
        text[end] = b'.';
        end += 1;
    }
    // Nothing but digits and points.
    into.push_str(std::str::from_utf8(&text[..end - 1]).unwrap_or_default());
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::rules::fixtures::{NOTHING, rule};
    use crate::rules::{PathPattern, Rule, ScopeList};

    fn facts<'a>(user: &'a str, key: &'a str, ip: Option<&str>) -> Facts<'a> {
        let ip = ip.map(|ip| ip.parse().unwrap());
        let (project_id, key_id, user) = (Some("proj_1"), Some(key), Some(user));
        Facts { ip, project_id, key_id, user, ..NOTHING }
    }

    fn text(scopes: &[RuleScope], facts: &Facts<'_>) -> String {
        let endpoints = vec![PathPattern::parse("/users/{id}").unwrap()];
        let scope = ScopeList::new(scopes).unwrap();
        let rule = Arc::new(Rule { scope, endpoints, ..rule("rule") });
        let mut into = String::new();
        let matched = Matched { place: 0, rule: &rule, pattern: rule.endpoints.first() };
        identifier(&matched, facts, &mut into);
        into
    }

    #[test]
    fn parts_stand_in_the_order_of_the_scopes() {
        use RuleScope::{Endpoint, Global, Ip, Key, Project, Tenant, User};
        let facts = facts("user_1", "key_1", Some("192.0.2.7"));
        assert_eq!(text(&[User], &facts), "user_1");
        assert_eq!(text(&[Endpoint, User], &facts), "/users/{id}|user_1");
        assert_eq!(text(&[User, Endpoint], &facts), "user_1|/users/{id}");
        assert_eq!(text(&[Global], &facts), "*");
        assert_eq!(text(&[Tenant, Project, Key, Ip], &facts), "acme|proj_1|key_1|192.0.2.7");
    }

    #[test]
    fn every_ipv4_address_is_written_as_the_standard_library_does() {
        for octet in 0..=255_u8 {
            let [first, last] = [octet, 255 - octet];
            for ip in [[first, 0, 10, last], [last, first, 99, 100], [255; 4]].map(IpAddr::from) {
                let ip = ip.to_string();
                assert_eq!(text(&[RuleScope::Ip], &facts("u", "k", Some(&ip))), ip);
            }
        }
    }

    #[test]
    fn an_ipv6_subscriber_is_one_caller_whichever_address_of_the_64_it_uses() {
        let by_ip = |ip| text(&[RuleScope::Ip], &facts("u", "k", Some(ip)));
        assert_eq!(by_ip("2001:db8:1:2::1"), "2001:db8:1:2::/64");
        assert_eq!(by_ip("2001:db8:1:2:ffff:ffff:ffff:ffff"), by_ip("2001:db8:1:2::1"));
        assert_ne!(by_ip("2001:db8:1:3::1"), by_ip("2001:db8:1:2::1"));
        assert_eq!(by_ip("::ffff:192.0.2.7"), by_ip("192.0.2.7"));
        assert_ne!(by_ip("192.0.2.8"), by_ip("192.0.2.7"));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(10_000) })]

        #[test]
        fn no_two_lists_of_values_give_one_identifier(
            one in ("[|%a7C25]{0,5}", "[|%a7C25]{0,5}"), other in ("[|%a7C25]{0,5}", "[|%a7C25]{0,5}"),
        ) {
            let both = [RuleScope::User, RuleScope::Key];
            let of = |(user, key): &(String, String)| text(&both, &facts(user, key, None));
            prop_assert_eq!(of(&one) == of(&other), one == other);
            let alone = text(&both[..1], &facts(&other.0, "", None));
            prop_assert_ne!(of(&one), alone);
        }
    }
}
