//! Values that several commands take from their arguments, checked before anything is sent:
//! limits (`requests=100/1m`), refills (`monthly:1000:31`) and metadata (a JSON object).

use std::borrow::Cow;
use std::str::FromStr;

use tollkeeper_client::Client;
use tollkeeper_client::wire::credits::{REFILL_AMOUNT, REFILL_DAY};
use tollkeeper_client::wire::ratelimit::LIMIT;
use tollkeeper_client::wire::stored_limit::{LIMIT_NAME, STORED_DURATION_MS};
use tollkeeper_client::wire::{
    DefaultLimit, GetProjectRequest, Metadata, RatelimitRequest, Refill, RefillInterval, Text,
};

use crate::failure::Failure;
use crate::window::length_ms;

/// A limit to be stored: `NAME=UNITS/TIME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LimitFlag {
    pub(crate) name: String,
    pub(crate) limit: u64,
    pub(crate) duration_ms: u64,
}

impl FromStr for LimitFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected NAME=UNITS/TIME, such as requests=100/1m";
        let (name, rest) = text.split_once('=').ok_or(expected)?;
        let (units, time) = rest.split_once('/').ok_or(expected)?;
        if !LIMIT_NAME.holds(name) {
            return Err("expected a name of 3 to 128 characters before the `=`".to_owned());
        }
        let limit = units.parse().ok().filter(|units| LIMIT.holds(*units)).ok_or(expected)?;
        let duration_ms = length_ms(time)?
            .filter(|millis| STORED_DURATION_MS.holds(*millis))
            .ok_or("expected a time of at least 1s and at most ten years")?;
        Ok(Self { name: name.to_owned(), limit, duration_ms })
    }
}

impl LimitFlag {
    /// As a limit that counts in every verification.
    pub(crate) fn applied(&self) -> RatelimitRequest<'_> {
        let mut limit = self.named();
        limit.auto_apply = true;
        limit
    }

    /// As a limit that counts only where a verification asks for it.
    pub(crate) fn named(&self) -> RatelimitRequest<'_> {
        RatelimitRequest::new(Cow::Borrowed(&self.name), self.limit, self.duration_ms)
    }

    pub(crate) fn project_default(&self) -> DefaultLimit<'_> {
        DefaultLimit::new(Cow::Borrowed(&self.name), self.limit, self.duration_ms)
    }
}

/// Both kinds of limits in one list; nothing where neither was given.
pub(crate) fn limits<'a>(
    applied: &'a [LimitFlag],
    named: &'a [LimitFlag],
) -> Option<Vec<RatelimitRequest<'a>>> {
    let all: Vec<_> =
        applied.iter().map(LimitFlag::applied).chain(named.iter().map(LimitFlag::named)).collect();
    (!all.is_empty()).then_some(all)
}

/// How credits are filled up: `daily:AMOUNT` or `monthly:AMOUNT:DAY`.
pub(crate) fn refill(text: &str) -> Result<Refill, String> {
    let expected = "expected daily:AMOUNT or monthly:AMOUNT:DAY, such as monthly:1000:1";
    let parts: Vec<_> = text.split(':').collect();
    let amount = |text: &str| text.parse().ok().filter(|amount| REFILL_AMOUNT.holds(*amount));
    let (interval, amount, day) = match parts.as_slice() {
        ["daily", text] => (RefillInterval::Daily, amount(text), None),
        ["monthly", text, day] => {
            let day = day.parse().ok().filter(|day| REFILL_DAY.holds(*day)).ok_or(expected)?;
            (RefillInterval::Monthly, amount(text), Some(day))
        }
        _ => return Err(expected.to_owned()),
    };
    let mut refill = Refill::new(interval, amount.ok_or(expected)?);
    refill.refill_day = day;
    Ok(refill)
}

pub(crate) fn metadata(text: &str) -> Result<Metadata<'static>, String> {
    Metadata::from_text(text)
        .map(Metadata::into_owned)
        .ok_or_else(|| "expected a JSON object, such as '{\"plan\":\"pro\"}'".to_owned())
}

/// Texts as a request takes them; nothing where none was given.
pub(crate) fn texts(given: &[String]) -> Option<Vec<Text<'_>>> {
    (!given.is_empty()).then(|| given.iter().map(|text| Cow::Borrowed(text.as_str())).collect())
}

/// The id of a project that was named by its id or its slug.
pub(crate) async fn project_id(client: &Client, project: &str) -> Result<String, Failure> {
    if project.starts_with("api_") {
        return Ok(project.to_owned());
    }
    let found = client.get_project(&GetProjectRequest::new(project.into())).await?;
    Ok(found.api_id.into_owned())
}

#[cfg(test)]
mod tests {
    use super::{LimitFlag, metadata, refill};

    #[test]
    fn a_limit_is_a_name_units_and_a_time() {
        let limit = "requests=100/1m".parse::<LimitFlag>();
        let expected = LimitFlag { name: "requests".to_owned(), limit: 100, duration_ms: 60_000 };
        assert_eq!(limit, Ok(expected));
        for refused in [
            "",
            "requests",
            "requests=100",
            "ab=1/1m",
            "requests=0/1m",
            "requests=1/9ms",
            "requests=1/1y",
        ] {
            assert!(refused.parse::<LimitFlag>().is_err(), "{refused}");
        }
    }

    #[test]
    fn a_refill_has_a_day_exactly_when_it_is_monthly() {
        assert!(refill("daily:5").is_ok() && refill("monthly:5:31").is_ok());
        for refused in
            ["", "daily", "daily:0", "daily:5:1", "monthly:5", "monthly:5:32", "weekly:5"]
        {
            assert!(refill(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn metadata_is_an_object() {
        assert!(
            metadata("{\"a\":1}").is_ok() && metadata("[1]").is_err() && metadata("a").is_err()
        );
    }
}
