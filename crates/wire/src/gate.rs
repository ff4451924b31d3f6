//! `gate.*`: one call about a whole request. Key, owner, rules, quotas, limits and credits are asked together.

mod checked;
mod denial;
mod explained;

pub use checked::{CheckReply, CheckedLimit};
pub use denial::Denial;
pub use explained::{ExplainReply, MatchedRule, UnmatchedRule};

use crate::key_text::{KEY, KeyText};
use crate::keys::{
    METHOD, ORIGIN, PATH, PERMISSION_QUERY, SpendCredits, TAGS, VERIFY_LIMITS, VerifyRatelimit,
};
use crate::part::Text;
use crate::ratelimit::COST;
use crate::request::request;
use crate::schema::{Described, Shape, Whole};
use crate::signature::{RequestSignature, SIGNATURE_ABOUT};
use crate::spelling::{EXTERNAL_ID, IP, TIER};
use crate::verdict::COUNT;

/// One request has at most a tebibyte: what is added up must stay a number that every database can add up.
const BYTES: Whole = Whole { min: 0, max: 1 << 40 };

/// What every call about a request takes, and more where a call has more.
macro_rules! about_a_request {
    ($(#[$about:meta])* $name:ident { $($more:tt)* }) => {
        request! {
            $(#[$about])*
            $name<'a> {
                optional key "key": KeyText<'a> = KEY, "The key as it came; left out: a request without one.";
                optional external_id "externalId": Text<'a> = EXTERNAL_ID, "Who asks, where no key says it.";
                optional tier "tier": Text<'a> = TIER, "Counts where neither key nor owner has one. Default `free`.";
                optional ip "ip": Text<'a> = IP, "Address of the end user.";
                optional method "method": Text<'a> = METHOD, "Method of the end user's request.";
                optional path "path": Text<'a> = PATH, "Path of the end user's request, as it came.";
                optional signature "signature": Box<RequestSignature<'a>> = RequestSignature::SHAPE, SIGNATURE_ABOUT;
                optional referer "referer": Text<'a> = ORIGIN, "The page that the end user came from: a URL or a host.";
                optional source "source": Text<'a> = ORIGIN, "The site or program that asks: a URL or a host.";
                optional permissions "permissions": Text<'a> = PERMISSION_QUERY,
                    "What the key must be permitted: names joined by AND, OR and parentheses.";
                optional cost "cost": u64 = Shape::Integer(COST), "Units that the request spends of every limit; 0 only looks. Default 1.";
                optional bytes "bytes": u64 = Shape::Integer(BYTES), "Size of the request, for the accounts. Default 0.";
                optional ratelimits "ratelimits": Vec<VerifyRatelimit<'a>> = VERIFY_LIMITS,
                    "Limits to count beside those that apply by themselves.";
                optional credits "credits": SpendCredits = SpendCredits::SHAPE, "Default: a cost of 1.";
                optional tags "tags": Vec<Text<'a>> = TAGS, "Kept with the decision, to be searched by.";
                flagged dry_run "dryRun": bool = Shape::Flag, "Whether to answer without spending anything. Default false.";
                $($more)*
            }
        }
    };
}

about_a_request! {
    /// Body of `gate.check`.
    CheckRequest {}
}

about_a_request! {
    /// Body of `gate.explain`: the same request, and the moment that it is asked about.
    ExplainRequest {
        optional at "at": u64 = Shape::Integer(COUNT),
            "The moment to answer for, unix milliseconds, if nobody asks in between; default and earliest: now.";
    }
}

impl<'a> ExplainRequest<'a> {
    /// The request that it is about.
    pub fn into_check(self) -> CheckRequest<'a> {
        CheckRequest {
            key: self.key,
            external_id: self.external_id,
            tier: self.tier,
            ip: self.ip,
            method: self.method,
            path: self.path,
            signature: self.signature,
            referer: self.referer,
            source: self.source,
            permissions: self.permissions,
            cost: self.cost,
            bytes: self.bytes,
            ratelimits: self.ratelimits,
            credits: self.credits,
            tags: self.tags,
            dry_run: self.dry_run,
        }
    }
}
