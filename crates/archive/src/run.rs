//! A run: every month that is over for long enough goes from the database into the archive, one after the other.
//! A month leaves the database only after its object was read back and holds every row as it was. A run that is killed
//! at any point is made good by the next: an object has no name before it was checked, and merging is harmless.

use std::time::Duration;

use tokio::time::interval;
use tollkeeper_core::{Millis, Month};
use tollkeeper_store::{ArchiveLock, Dropped, PastRemover, Removal, Store};

use crate::merged::Merged;
use crate::object::{ObjectReader, ObjectWriter};
use crate::progress::{Progress, Step, Tell};
use crate::seal::Seal;
use crate::{ArchiveError, Label, Place};

/// A month that ended long ago gets no rows any more; one that keeps getting them is left to the next run.
const TRIES: usize = 3;

/// No statement takes longer than two seconds, so that somebody else's is over by then.
const DROP_TRIES: usize = 5;
const DROP_AGAIN: Duration = Duration::from_secs(1);

/// What a run did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done(Vec<Archived>),
    /// Another process archives at this moment; nothing was done.
    Busy,
}

/// A month that is in the archive now and no longer in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archived {
    pub month: Label,
    /// That left the database in this run.
    pub rows: u64,
    /// What the object holds, with rows of earlier runs.
    pub seal: Seal,
    pub object: String,
}

/// Archives every month that had ended at `before`. What is done stays done if a later month fails.
pub async fn archive(
    store: &Store,
    place: &Place,
    before: Millis,
    tell: Tell<'_>,
) -> Result<Outcome, ArchiveError> {
    let Some(lock) = store.lock_archive().await? else {
        return Ok(Outcome::Busy);
    };
    let mut run = Run { store, place, lock, tell };
    let mut done = Vec::new();
    for month in store.past_months(before).await? {
        done.extend(run.month(month).await?);
    }
    Ok(Outcome::Done(done))
}

struct Run<'a> {
    store: &'a Store,
    place: &'a Place,
    lock: ArchiveLock,
    tell: Tell<'a>,
}

// === impl Run ===

impl Run<'_> {
    async fn month(&mut self, month: Month) -> Result<Option<Archived>, ArchiveError> {
        for _ in 0..TRIES {
            let rows = self.store.count_month(month).await?;
            if rows == 0 {
                self.drop_empty(month).await?;
                return Ok(None);
            }
            let (seal, rows) = self.write(month, rows).await?;
            self.check(month, Step::Checking, seal).await?;
            self.place.promote(month).await?;
            self.check(month, Step::Naming, seal).await?;
            self.place.discard_unchecked(month).await?;
            if self.drop(month, seal, rows).await? {
                let object = self.place.shown(&self.place.month(month));
                return Ok(Some(Archived { month: Label(month), rows, seal, object }));
            }
        }
        Err(ArchiveError::StillChanging(Label(month)))
    }

    /// Returns what the object holds, and how many rows of it the database gave.
    async fn write(&mut self, month: Month, of: u64) -> Result<(Seal, u64), ArchiveError> {
        let named = self.place.month(month);
        let archived = if self.place.has(&named).await? {
            Some(ObjectReader::open(self.place, &named).await?)
        } else {
            None
        };
        let mut merged = Merged::new(self.store, month, archived);
        let mut writer = ObjectWriter::start(self.place, &self.place.unchecked(month))?;
        loop {
            self.told(month, Step::Writing, merged.rows_stored(), of);
            let page = merged.page().await?;
            if page.is_empty() {
                break;
            }
            writer.put(&page).await?;
        }
        let seal = writer.finish().await?;
        Ok((seal, merged.rows_stored()))
    }

    /// Reads all of it: a footer can be right about rows that are not.
    async fn check(&mut self, month: Month, step: Step, seal: Seal) -> Result<(), ArchiveError> {
        let path = match step {
            Step::Checking => self.place.unchecked(month),
            _ => self.place.month(month),
        };
        self.told(month, step, 0, seal.rows);
        let mut object = ObjectReader::open(self.place, &path).await?;
        if object.said() != seal {
            let found = object.said().to_string();
            return Err(ArchiveError::Damaged { object: object.shown().to_owned(), found });
        }
        let mut rows = 0;
        while let Some(page) = object.page().await? {
            rows += page.len() as u64;
            self.told(month, step, rows, seal.rows);
        }
        Ok(())
    }

    /// False where the month has other rows than were read.
    async fn drop(&mut self, month: Month, seal: Seal, rows: u64) -> Result<bool, ArchiveError> {
        self.told(month, Step::Dropping, 0, seal.rows);
        if !self.lock.holds().await {
            return Err(ArchiveError::LockLost);
        }
        match self.store.removal().await? {
            Removal::Whole => Ok(self.drop_whole(month, rows).await? == Dropped::Gone),
            Removal::ByRow(remover) => {
                self.drop_rows(month, seal, remover).await?;
                Ok(true)
            }
        }
    }

    /// A long search of the audit may hold the table for a moment.
    async fn drop_whole(&mut self, month: Month, rows: u64) -> Result<Dropped, ArchiveError> {
        let mut turns = interval(DROP_AGAIN);
        for _ in 1..DROP_TRIES {
            turns.tick().await;
            match self.store.drop_month(month, rows).await {
                Err(error) if error.is_transient() => {}
                dropped => return Ok(dropped?),
            }
        }
        turns.tick().await;
        Ok(self.store.drop_month(month, rows).await?)
    }

    /// What the object gives back, and nothing else: a row that came meanwhile stays for the next run.
    async fn drop_rows(
        &mut self,
        month: Month,
        seal: Seal,
        mut remover: PastRemover,
    ) -> Result<(), ArchiveError> {
        let mut object = ObjectReader::open(self.place, &self.place.month(month)).await?;
        let (mut rows, mut safe) = (0, Vec::new());
        loop {
            let page = object.page().await?;
            let ended = page.is_none();
            safe.extend(page.unwrap_or_default());
            if ended || safe.len() >= PastRemover::ROWS_AT_ONCE {
                remover.forget(&safe).await?;
                rows += safe.len() as u64;
                self.told(month, Step::Dropping, rows, seal.rows);
                safe.clear();
            }
            if ended {
                return Ok(remover.close().await?);
            }
        }
    }

    /// A partition that nothing was ever written to.
    async fn drop_empty(&mut self, month: Month) -> Result<(), ArchiveError> {
        if let Removal::Whole = self.store.removal().await?
            && self.lock.holds().await
        {
            self.store.drop_month(month, 0).await?;
        }
        Ok(())
    }

    fn told(&mut self, month: Month, step: Step, rows: u64, of: u64) {
        (self.tell)(Progress { month: Label(month), step, rows, of });
    }
}
