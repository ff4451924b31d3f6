//! Paging through a list: where to go on, and how many rows at once.

use crate::schema::{Chars, Shape, Whole};

pub const CURSOR: Chars = Chars { min: 1, max: 512 };
pub const PAGE: Whole = Whole { min: 1, max: 100 };
/// Rows on a page of keys, identities, permissions and the like, when none are asked for.
pub const PAGE_DEFAULT: u64 = 100;
pub const SEARCH: Chars = Chars { min: 0, max: 256 };

pub(crate) const PAGE_LIMIT: Shape = Shape::Integer(PAGE);
pub(crate) const PAGE_CURSOR: Shape = Shape::Text(CURSOR);
pub(crate) const PAGE_SEARCH: Shape = Shape::Text(SEARCH);

pub(crate) const LIMIT_ABOUT: &str = "Rows on a page. Default 100.";
pub(crate) const CURSOR_ABOUT: &str = "Where to go on, from the page before.";
