//! `quotas.*`: what one identity may do beyond its tier, and whether it may do anything. An identity by your own name.

use std::borrow::Cow;

use crate::keys::EXPIRES;
use crate::part::Text;
use crate::ratelimit::LIMIT;
use crate::reply::reply;
use crate::request::request;
use crate::schema::{Chars, Shape, Spelling};
use crate::spelling::{EXTERNAL_ID, TIER};
use crate::verdict::COUNT;

/// What counts where neither the key, the identity nor the request names a tier.
pub const TIER_DEFAULT: &str = "free";

const NUMBER: Shape = Shape::Integer(LIMIT);
const MOMENT: Shape = Shape::Integer(EXPIRES);
const REASON: Shape = Shape::Spelled(Chars { min: 1, max: 1024 }, &PLAIN);
const EXTERNAL_ID_ABOUT: &str = "Your own name for it.";

const PLAIN: Spelling = Spelling {
    of: "characters that can be printed",
    pattern: None,
    holds: |text| !text.contains(char::is_control),
    examples: &["unpaid since March"],
};

request! {
    /// Body of `quotas.get` and `quotas.unblock`, which ask alike.
    GetQuotaRequest<'a> {
        required external_id "externalId": Text<'a> = EXTERNAL_ID, EXTERNAL_ID_ABOUT;
    }
}

pub type UnblockRequest<'a> = GetQuotaRequest<'a>;

request! {
    /// Body of `quotas.set`; what is left out stays, null clears. The identity is made where there is none.
    SetQuotaRequest<'a> {
        required external_id "externalId": Text<'a> = EXTERNAL_ID, EXTERNAL_ID_ABOUT;
        patch tier "tier": Text<'a> = TIER, "Its tier; null: none of its own.";
        patch per_second "perSecond": u64 = NUMBER, "Units per second; null: as the tier has it.";
        patch per_minute "perMinute": u64 = NUMBER, "Units per minute; null: as the tier has it.";
        patch per_hour "perHour": u64 = NUMBER, "Units per hour; null: as the tier has it.";
        patch per_day "perDay": u64 = NUMBER, "Units per day; null: as the tier has it.";
        patch burst "burst": u64 = NUMBER, "Capacity of its token buckets; null: as the tier has it.";
    }
}

request! {
    /// Body of `quotas.block`. The identity is made where there is none.
    BlockRequest<'a> {
        required external_id "externalId": Text<'a> = EXTERNAL_ID, EXTERNAL_ID_ABOUT;
        optional reason "reason": Text<'a> = REASON, "Why, for whoever asks.";
        optional until "until": u64 = MOMENT, "When it ends, unix milliseconds. Default: never.";
    }
}

reply! {
    /// An identity's own limits; those it does not have are its tier's.
    QuotaLimits {
        optional per_second "perSecond": u64 = NUMBER, "Units per second.";
        optional per_minute "perMinute": u64 = NUMBER, "Units per minute.";
        optional per_hour "perHour": u64 = NUMBER, "Units per hour.";
        optional per_day "perDay": u64 = NUMBER, "Units per day.";
        optional burst "burst": u64 = NUMBER, "Capacity of its token buckets.";
    }
}

reply! {
    /// Admitted requests of all its keys, as far as usage is flushed.
    QuotaTotals {
        required today "today": u64 = Shape::Integer(COUNT), "Since midnight UTC.";
        required month "month": u64 = Shape::Integer(COUNT), "Since the first of the month, UTC.";
    }
}

reply! {
    /// Answer of every call of `quotas.*`.
    QuotaReply<'a> {
        required external_id "externalId": Cow<'a, str> = EXTERNAL_ID, EXTERNAL_ID_ABOUT;
        required tier "tier": Cow<'a, str> = TIER, "Its tier, `free` where it has none of its own.";
        required limits "limits": QuotaLimits = QuotaLimits::SHAPE, "Limits of its own.";
        optional totals "totals": QuotaTotals = QuotaTotals::SHAPE, "What its keys did; told by `quotas.get`.";
        optional last_request_at "lastRequestAt": u64 = Shape::Integer(COUNT), "Unix milliseconds.";
        optional reset_at "resetAt": u64 = Shape::Integer(COUNT),
            "When the current window of its widest limit ends (UTC), unix milliseconds.";
        required exceeded_count "exceededCount": u64 = Shape::Integer(COUNT), "How often a limit said no.";
        required blocked "blocked": bool = Shape::Flag, "Whether it is refused now.";
        optional block_reason "blockReason": Cow<'a, str> = REASON, "Why.";
        optional blocked_until "blockedUntil": u64 = MOMENT, "When that ends, unix milliseconds.";
    }
}
