//! Pages, updates and texts as the store and the wire each spell them. Conversions only.

use tollkeeper_store::{Page, Patch};
use tollkeeper_wire as wire;
use wire::page::PAGE_DEFAULT;

use super::call::Call;
use super::reply::Reply;
use super::sheet::Sheet;
use crate::status::Refusal;

/// What an update says of one field, in words that outlive the request.
pub fn patch<T, U>(given: wire::Patch<T>, own: impl FnOnce(T) -> U) -> Patch<U> {
    match given {
        wire::Patch::Keep => Patch::Keep,
        wire::Patch::Clear => Patch::Clear,
        wire::Patch::Set(value) => Patch::Set(own(value)),
    }
}

pub fn owned(text: Option<&wire::Text<'_>>) -> Option<String> {
    text.map(ToString::to_string)
}

pub fn texts(list: &[wire::Text<'_>]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

/// A cursor that no page of ours ended with.
pub fn bad_cursor() -> Refusal {
    let fix = "Send what the page before said, or leave it out to start anew.";
    Refusal::Fields(vec![wire::FieldError::new("body.cursor", "Is not one of ours.", fix)])
}

/// Rows on a page, as asked for or by default.
pub fn page_rows(limit: Option<u64>) -> u32 {
    u32::try_from(limit.unwrap_or(PAGE_DEFAULT)).unwrap_or(u32::MAX)
}

pub fn page_reply<'p, T, U: serde::Serialize>(
    call: &Call<'_>,
    page: &'p Page<T>,
    shown: impl Fn(&'p T) -> U,
) -> Reply {
    let pagination = match &page.next_cursor {
        Some(cursor) => wire::Pagination::continues_at(cursor.as_str()),
        None => wire::Pagination::last_page(),
    };
    let rows: Vec<U> = page.rows.iter().map(shown).collect();
    let mut sheet = Sheet::new();
    sheet.timing(&call.timing);
    sheet.page(call.id, rows, pagination)
}
