//! `usage.*`: what keys were used for, by minute, hour, day or month.

use std::borrow::Cow;

use crate::choice::choice;
use crate::page::{CURSOR_ABOUT, LIMIT_ABOUT, PAGE_LIMIT, USAGE_CURSOR, goes_on_at_a_day};
use crate::part::Text;
use crate::reply::reply;
use crate::request::request;
use crate::schema::{Breach, Chars, Rule, Shape, Whole};
use crate::span::{ENDS_AFTER_IT_BEGINS, ends_after_it_begins};
use crate::spelling::{EXTERNAL_ID, ID};
use crate::verdict::COUNT;

/// The year 2100: what is later is a slip.
const MOMENT_MS_MAX: u64 = 4_102_444_800_000;
const MOMENT: Shape = Shape::Integer(Whole { min: 0, max: MOMENT_MS_MAX });
const NUMBER: Shape = Shape::Integer(COUNT);
const BY: Shape = Shape::Choice(UsageBy::WORDS);
const FORMAT: Shape = Shape::Choice(UsageFormat::WORDS);
/// The key id may be missing: then these are keys that there was no room to tell apart.
const KEY_ID: Shape = Shape::Text(Chars { min: 0, max: 255 });

/// Rows of one part of an export: about a megabyte.
pub const EXPORT_ROWS_MAX: u64 = 10_000;
const EXPORT_LIMIT: Shape = Shape::Integer(Whole { min: 1, max: EXPORT_ROWS_MAX });

const API_ABOUT: &str = "Only keys of this project.";
const KEY_ABOUT: &str = "Only this key.";
const EXTERNAL_ABOUT: &str = "Only keys that belong to this identity now.";
const FROM_ABOUT: &str = "Unix milliseconds; the bucket that holds this moment is the first.";
const TO_ABOUT: &str = "Unix milliseconds; a bucket that begins at this moment is not in it.";
const BY_ABOUT: &str =
    "The size of a bucket, in UTC. Default `day`; minutes and hours are kept for 40 days.";

choice! {
    /// The size of a bucket.
    UsageBy {
        Minute = "minute",
        Hour = "hour",
        Day = "day",
        Month = "month",
    }
}

choice! {
    /// How an export is written.
    UsageFormat {
        Csv = "csv",
        Ndjson = "ndjson",
    }
}

const CURSOR_IS_OF_BY: Rule = Rule {
    about: "`cursor` comes from a page with the same `by`.",
    breach: |given| {
        let cursor = given.get("cursor")?.as_str()?;
        let by = match given.get("by") {
            Some(by) => Some(UsageBy::from_word(by.as_str()?)?),
            None => None,
        };
        // What is no cursor at all is already reported.
        let known = matches!(USAGE_CURSOR, Shape::Spelled(_, spelling) if (spelling.holds)(cursor));
        (known && !cursor_is_of(Some(cursor), by)).then(|| Breach {
            field: "cursor",
            message: String::from("Is not one of ours for buckets of this size."),
            fix: String::from(
                "Send the `by` of the page before, or leave the cursor out to start anew.",
            ),
        })
    },
};

/// Days and months go on at a date, minutes and hours at a moment.
fn cursor_is_of(cursor: Option<&str>, by: Option<UsageBy>) -> bool {
    let by_days = matches!(by.unwrap_or(UsageBy::Day), UsageBy::Day | UsageBy::Month);
    cursor.is_none_or(|cursor| goes_on_at_a_day(cursor) == by_days)
}

request! {
    /// Body of `usage.query`.
    QueryUsageRequest<'a> {
        optional api_id "apiId": Text<'a> = ID, API_ABOUT;
        optional key_id "keyId": Text<'a> = ID, KEY_ABOUT;
        optional external_id "externalId": Text<'a> = EXTERNAL_ID, EXTERNAL_ABOUT;
        required from "from": u64 = MOMENT, FROM_ABOUT;
        required to "to": u64 = MOMENT, TO_ABOUT;
        optional by "by": UsageBy = BY, BY_ABOUT;
        optional limit "limit": u64 = PAGE_LIMIT, LIMIT_ABOUT;
        optional cursor "cursor": Text<'a> = USAGE_CURSOR, CURSOR_ABOUT;
    }
    rules {
        ENDS_AFTER_IT_BEGINS => |it| ends_after_it_begins(Some(it.from), Some(it.to));
        CURSOR_IS_OF_BY => |it| cursor_is_of(it.cursor.as_deref(), it.by);
    }
}

reply! {
    /// What one key was used for in one bucket.
    UsageRow<'a> {
        required time "time": u64 = NUMBER, "Start of the bucket, unix milliseconds.";
        required api_id "apiId": Cow<'a, str> = ID, "The project.";
        required key_id "keyId": Cow<'a, str> = KEY_ID, "The key; empty for keys that there was no room to tell apart.";
        required requests "requests": u64 = NUMBER, "Requests that were admitted.";
        required bytes "bytes": u64 = NUMBER, "Bytes, where they were told.";
        required denied "denied": u64 = NUMBER, "Requests that were not admitted.";
        required credits "credits": u64 = NUMBER, "Credits that were spent.";
    }
}

request! {
    /// Body of `usage.export`.
    ExportUsageRequest<'a> {
        optional api_id "apiId": Text<'a> = ID, API_ABOUT;
        optional key_id "keyId": Text<'a> = ID, KEY_ABOUT;
        optional external_id "externalId": Text<'a> = EXTERNAL_ID, EXTERNAL_ABOUT;
        required from "from": u64 = MOMENT, FROM_ABOUT;
        required to "to": u64 = MOMENT, TO_ABOUT;
        optional by "by": UsageBy = BY, BY_ABOUT;
        optional format "format": UsageFormat = FORMAT, "How rows are written. Default `ndjson`.";
        optional limit "limit": u64 = EXPORT_LIMIT, "Rows in this part. Default 10,000.";
        optional cursor "cursor": Text<'a> = USAGE_CURSOR,
            "Where to go on: the header `X-Tollkeeper-Cursor` of the part before. The last part has none.";
    }
    rules {
        ENDS_AFTER_IT_BEGINS => |it| ends_after_it_begins(Some(it.from), Some(it.to));
        CURSOR_IS_OF_BY => |it| cursor_is_of(it.cursor.as_deref(), it.by);
    }
}

request! {
    /// Body of `usage.flush`.
    FlushUsageRequest {}
}

reply! {
    /// What a flush has brought to the database.
    FlushUsageReply {
        required buckets "buckets": u64 = NUMBER, "Minutes that it was about.";
        required records "records": u64 = NUMBER, "Days of keys that it was about.";
    }
}
