//! Entries that nodes keep for each other: bytes under a name, as they were at a revision, for a while. It cannot read
//! what it keeps, which was sealed before it came here, and it never decides whether an entry may still be used.

use std::time::Duration;

use redis::{Value, cmd};

use crate::client::Redis;
use crate::error::CallError;
use crate::origin::{AT_LEISURE, KEEP};
use crate::script::Arg;
use crate::tags::{At, TAGS};

/// A request waits for this, and the database may still have to be asked after it.
const RECALL_PATIENCE: Duration = Duration::from_millis(10);

/// A revision is written as so many digits, which hold every number that Lua counts exactly.
const REVISION_DIGITS: usize = 16;

/// What an entry is about; each has its prefix in `docs/REDIS_SCHEMA.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
    Key,
    ProjectById,
    ProjectBySlug,
    ProjectByTeamSlug,
}

/// Where an entry is. Made of a digest: whoever reads names learns nothing from them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryName {
    tag: u16,
    text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// It has all changes up to this one in it.
    pub revision: u64,
    /// Empty where an entry was dropped because of the change of that revision.
    pub sealed: Vec<u8>,
}

/// Which entries an entry may take the place of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Those that were read before it.
    Older,
    /// Those that were read before it or at the same revision: its time begins anew.
    OlderOrSame,
}

#[derive(Clone, Debug)]
pub struct ConfigCache(Redis);

// === impl ConfigCache ===

impl ConfigCache {
    pub fn new(redis: Redis) -> Self {
        Self(redis)
    }

    /// `None`: nothing is kept there, or nothing that can be told apart.
    pub async fn recall(&self, name: &EntryName) -> Result<Option<Kept>, CallError> {
        let mut get = cmd("GET");
        get.arg(&name.text);
        match self.0.command(At::Tag(name.tag), &get, RECALL_PATIENCE).await? {
            Value::BulkString(bytes) => Ok(Kept::read(&bytes)),
            _ => Ok(None),
        }
    }

    /// Says whether it was kept.
    pub async fn keep(
        &self,
        name: &EntryName,
        kept: &Kept,
        over: Over,
        life: Duration,
    ) -> Result<bool, CallError> {
        let stays_from = match over {
            Over::Older => kept.revision,
            Over::OlderOrSame => kept.revision.saturating_add(1),
        };
        let (entry, life_ms) = (kept.write(), u64::try_from(life.as_millis()).unwrap_or(u64::MAX));
        let args = [Arg::from(&entry[..]), Arg::from(stays_from), Arg::from(life_ms)];
        let answer = self.0.run(name.tag, KEEP, &[name.text.as_bytes()], &args, AT_LEISURE).await?;
        Ok(answer == Value::Int(1))
    }
}

// === impl Kept ===

impl Kept {
    fn write(&self) -> Vec<u8> {
        let mut entry = format!("{:0REVISION_DIGITS$}", self.revision).into_bytes();
        entry.extend_from_slice(&self.sealed);
        entry
    }

    fn read(entry: &[u8]) -> Option<Self> {
        let (digits, sealed) = entry.split_at_checked(REVISION_DIGITS)?;
        let revision = std::str::from_utf8(digits).ok()?.parse().ok()?;
        Some(Self { revision, sealed: sealed.to_vec() })
    }
}

// === impl EntryName ===

impl EntryName {
    pub fn new(kind: EntryKind, digest: [u8; 16]) -> Self {
        let [first, second, ..] = digest;
        let tag = u16::from_le_bytes([first, second]) % TAGS;
        let digest = u128::from_be_bytes(digest);
        Self { tag, text: format!("{}{{{tag}}}:{digest:032x}", kind.prefix()) }
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

// === impl EntryKind ===

impl EntryKind {
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Key => "cache:apikey:pk:",
            Self::ProjectById => "cache:project:id:",
            Self::ProjectBySlug => "cache:project:slug:",
            Self::ProjectByTeamSlug => "cache:project:team-slug:",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_as_it_was_written_and_anything_else_is_none() {
        for (revision, sealed) in [(0, vec![]), ((1 << 53) - 1, vec![0, 255, b'7'])] {
            let kept = Kept { revision, sealed };
            assert_eq!(Kept::read(&kept.write()), Some(kept));
        }
        for strange in [&b""[..], b"123", b"000000000000000x", &[255; 40]] {
            assert_eq!(Kept::read(strange), None);
        }
    }

    #[test]
    fn a_name_carries_its_tag_in_its_only_braces() {
        let name = EntryName::new(EntryKind::Key, [0xff; 16]);
        assert_eq!(name.text(), format!("cache:apikey:pk:{{1023}}:{}", "f".repeat(32)));
    }
}
