//! The rows of a month in order: what its object already has and what the database has, each row once.
//! So a month can be archived again at any time, after a crash or when rows came late, and nothing is lost or doubled.

use std::cmp::Ordering;
use std::collections::VecDeque;

use tollkeeper_core::Month;
use tollkeeper_store::{PastDecision, Store};

use crate::ArchiveError;
use crate::object::ObjectReader;

const PAGE_ROWS: usize = 8_192;

pub(crate) struct Merged<'a> {
    archived: Option<ObjectReader>,
    old: VecDeque<PastDecision>,
    old_ended: bool,
    stored: Stored<'a>,
    new: VecDeque<PastDecision>,
}

/// The database's side, page by page.
struct Stored<'a> {
    store: &'a Store,
    month: Month,
    last: Option<PastDecision>,
    rows: u64,
    ended: bool,
}

// === impl Merged ===

impl<'a> Merged<'a> {
    pub(crate) fn new(store: &'a Store, month: Month, archived: Option<ObjectReader>) -> Self {
        let stored = Stored { store, month, last: None, rows: 0, ended: false };
        let (old, new) = (VecDeque::new(), VecDeque::new());
        Self { archived, old, old_ended: false, stored, new }
    }

    /// How many rows the database gave so far.
    pub(crate) fn rows_stored(&self) -> u64 {
        self.stored.rows
    }

    /// The next rows; none at the end.
    pub(crate) async fn page(&mut self) -> Result<Vec<PastDecision>, ArchiveError> {
        let mut page = Vec::with_capacity(PAGE_ROWS);
        while page.len() < PAGE_ROWS {
            self.fill().await?;
            match self.next()? {
                Some(row) => page.push(row),
                None => break,
            }
        }
        Ok(page)
    }

    /// Both sides show their next row, unless they have ended.
    async fn fill(&mut self) -> Result<(), ArchiveError> {
        if self.new.is_empty() {
            self.new = self.stored.page().await?.into();
        }
        if self.old.is_empty()
            && let Some(archived) = self.archived.as_mut().filter(|_| !self.old_ended)
        {
            let page = archived.page().await?;
            self.old_ended = page.is_none();
            self.old = page.unwrap_or_default().into();
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<PastDecision>, ArchiveError> {
        let order = match (self.old.front(), self.new.front()) {
            (Some(old), Some(new)) => old.key().cmp(&new.key()),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        Ok(match order {
            Ordering::Less => self.old.pop_front(),
            Ordering::Greater => self.new.pop_front(),
            Ordering::Equal => {
                let (old, new) = (self.old.pop_front(), self.new.pop_front());
                if old != new {
                    return Err(self.conflict(new));
                }
                old
            }
        })
    }

    fn conflict(&self, row: Option<PastDecision>) -> ArchiveError {
        ArchiveError::Conflict {
            object: self.archived.as_ref().map_or("", |object| object.shown()).to_owned(),
            request_id: row.map(|row| row.request_id).unwrap_or_default(),
        }
    }
}

// === impl Stored ===

impl Stored<'_> {
    async fn page(&mut self) -> Result<Vec<PastDecision>, ArchiveError> {
        if self.ended {
            return Ok(Vec::new());
        }
        let page = self.store.past_page(self.month, self.last.as_ref()).await?;
        match page.last() {
            Some(last) => self.last = Some(last.clone()),
            None => self.ended = true,
        }
        self.rows += page.len() as u64;
        Ok(page)
    }
}
