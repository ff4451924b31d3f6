//! `keys.verifyKey`: the hot request. A minimal body is read without allocating anything.

use crate::key_text::{KEY, KeyText};
use crate::keys::migrate::MIGRATION_ID;
use crate::part::Text;
use crate::ratelimit::{
    Algorithm, BURST, BURST_RULE, COST, Consistency, OnOutage, SLIDING_LOG_RULE, burst_fits,
    sliding_log_fits,
};
use crate::request::request;
use crate::schema::{Chars, Described, INTEGER_MAX, Shape, Whole};
use crate::signature::{RequestSignature, SIGNATURE_ABOUT};
use crate::spelling::{IP, TOKEN};
use crate::stored_limit::DURATION;

/// 0 always denies.
const AD_HOC_LIMIT: Whole = Whole { min: 0, max: INTEGER_MAX };
const CREDIT_COST: Whole = Whole { min: 0, max: 1_000_000_000_000 };
const LIMIT_NAME: Chars = Chars { min: 3, max: 255 };
/// As many as a key can have of its own.
const LIMITS_MAX: usize = 50;
pub(crate) const PERMISSION_QUERY: Shape = Shape::Text(Chars { min: 1, max: 1_000 });
pub(crate) const TAGS: Shape =
    Shape::List { of: &Shape::Text(Chars { min: 1, max: 512 }), min: 0, max: 20 };
const KEYSPACES: Shape =
    Shape::List { of: &Shape::Text(Chars { min: 1, max: 255 }), min: 0, max: 5 };
/// A URL as browsers send it, or a bare host.
pub(crate) const ORIGIN: Shape = Shape::Text(Chars { min: 0, max: 4_096 });
pub(crate) const METHOD: Shape = Shape::Spelled(Chars { min: 1, max: 32 }, &TOKEN);
/// As long as servers usually take a request line. Any text: what is hostile in it is the matcher's to disarm.
pub(crate) const PATH: Shape = Shape::Raw(Chars { min: 1, max: 8_192 });
pub(crate) const VERIFY_LIMITS: Shape =
    Shape::List { of: &VerifyRatelimit::SHAPE, min: 0, max: LIMITS_MAX };

request! {
    /// What one verification spends of the key's credits.
    SpendCredits {
        required cost "cost": u64 = Shape::Integer(CREDIT_COST), "Credits to spend; 0 only looks.";
    }
}

request! {
    /// A limit to be counted in one verification: a stored one by its name, or one made up on the spot by limit and duration.
    VerifyRatelimit<'a> {
        required name "name": Text<'a> = Shape::Text(LIMIT_NAME), "Name of a stored limit, or of a new one.";
        optional cost "cost": u64 = Shape::Integer(COST), "Units to spend; 0 only looks. Default 1.";
        optional limit "limit": u64 = Shape::Integer(AD_HOC_LIMIT), "Units that fit into one duration; 0 always denies.";
        optional duration "duration": u64 = DURATION, "Length of the window in milliseconds.";
        optional algorithm "algorithm": Algorithm = Shape::Choice(Algorithm::WORDS), "Default `sliding_window`.";
        optional burst "burst": u64 = Shape::Integer(BURST), "Capacity of a token bucket. Default: the limit.";
        optional consistency "consistency": Consistency = Shape::Choice(Consistency::WORDS), "How closely nodes agree.";
        optional on_outage "onOutage": OnOutage = Shape::Choice(OnOutage::WORDS), "Policy while shared state is away.";
    }
    rules {
        SLIDING_LOG_RULE => |it| {
            it.limit.is_none_or(|limit| sliding_log_fits(it.algorithm.unwrap_or_default(), limit))
        };
        BURST_RULE => |it| burst_fits(it.algorithm.unwrap_or_default(), it.burst);
    }
}

request! {
    /// Body of `keys.verifyKey`.
    VerifyKeyRequest<'a> {
        required key "key": KeyText<'a> = KEY, "The key as it came.";
        optional tags "tags": Vec<Text<'a>> = TAGS, "Kept with the decision, to be searched by.";
        optional permissions "permissions": Text<'a> = PERMISSION_QUERY,
            "What the key must be permitted: names joined by AND, OR and parentheses.";
        optional credits "credits": SpendCredits = SpendCredits::SHAPE, "Default: a cost of 1.";
        optional keyspaces "keyspaces": Vec<Text<'a>> = KEYSPACES, "Projects whose keys are welcome. Default: all.";
        optional ratelimits "ratelimits": Vec<VerifyRatelimit<'a>> = VERIFY_LIMITS,
            "Limits to count beside those that apply by themselves.";
        optional migration_id "migrationId": Text<'a> = MIGRATION_ID, "The migration that the key may come from.";
        optional ip "ip": Text<'a> = IP, "Address of the end user.";
        optional referer "referer": Text<'a> = ORIGIN, "The page that the end user came from: a URL or a host.";
        optional source "source": Text<'a> = ORIGIN, "The site or program that asks: a URL or a host.";
        optional method "method": Text<'a> = METHOD, "Method of the end user's request.";
        optional path "path": Text<'a> = PATH, "Path of the end user's request, with its query where it is signed.";
        optional signature "signature": Box<RequestSignature<'a>> = RequestSignature::SHAPE, SIGNATURE_ABOUT;
    }
}
