//! `stats.query`: decisions added up by the minute, hour or day.

use crate::choice::choice;
use crate::page::{CURSOR_ABOUT, LIMIT_ABOUT, NUMBER_CURSOR, PAGE_LIMIT};
use crate::part::Text;
use crate::reply::reply;
use crate::request::request;
use crate::schema::{Chars, Shape};
use crate::span::{ENDS_AFTER_IT_BEGINS, ends_after_it_begins};
use crate::verdict::COUNT;

const NUMBER: Shape = Shape::Integer(COUNT);
const NAME: Shape = Shape::Text(Chars { min: 1, max: 512 });

choice! {
    /// How finely time is cut.
    StatsGrain { Minute = "minute", Hour = "hour", Day = "day" }
}

request! {
    /// Body of `stats.query`.
    QueryStatsRequest<'a> {
        required from "from": u64 = NUMBER, "Unix milliseconds; the bucket that holds it is the first.";
        required to "to": u64 = NUMBER, "Unix milliseconds; buckets that start before it.";
        optional by "by": StatsGrain = Shape::Choice(StatsGrain::WORDS), "How finely time is cut. Default `minute`.";
        optional external_id "externalId": Text<'a> = NAME, "Of this identity; `*`: of those that were not told apart.";
        optional endpoint "endpoint": Text<'a> = NAME, "Of this pattern; `other`: of those beyond 200.";
        optional region "region": Text<'a> = NAME, "Decided in this region.";
        optional limit "limit": u64 = PAGE_LIMIT, LIMIT_ABOUT;
        optional cursor "cursor": Text<'a> = NUMBER_CURSOR, CURSOR_ABOUT;
    }
    rules {
        ENDS_AFTER_IT_BEGINS => |it| ends_after_it_begins(Some(it.from), Some(it.to));
    }
}

reply! {
    /// One minute, hour or day in which something was decided.
    StatsLine {
        required time "time": u64 = NUMBER, "Its start (UTC), unix milliseconds.";
        required total "total": u64 = NUMBER, "Decisions.";
        required allowed "allowed": u64 = NUMBER, "Let through.";
        required throttled "throttled": u64 = NUMBER, "Refused for now.";
        required blocked "blocked": u64 = NUMBER, "Refused.";
        optional p50_us "p50Us": u64 = NUMBER, "Half of them took at most so many microseconds.";
        optional p95_us "p95Us": u64 = NUMBER, "And 95 of 100.";
        optional p99_us "p99Us": u64 = NUMBER, "And 99 of 100.";
        required cache_hits "cacheHits": u64 = NUMBER, "Keys that were near.";
        required cache_misses "cacheMisses": u64 = NUMBER, "Keys that had to be looked up.";
    }
}
