//! How long each cache read of a request took, for the `X-Tollkeeper-Timing` header.

use smallvec::SmallVec;
use tollkeeper_account::{CacheSight, Tally};
use tollkeeper_decide::{CacheName, Freshness};

use crate::clock::Stamp;

/// More reads than this are not listed: a header must stay a header.
const READS_MAX: usize = 8;

#[derive(Debug)]
pub struct Timing {
    mark: Stamp,
    reads: SmallVec<[Read; 4]>,
}

#[derive(Clone, Copy, Debug)]
pub struct Read {
    cache: CacheName,
    freshness: Freshness,
    nanos: u64,
}

// === impl Timing ===

impl Timing {
    pub fn from(mark: Stamp) -> Self {
        Self { mark, reads: SmallVec::new() }
    }

    /// What follows is timed from here.
    pub fn restart(&mut self) {
        self.mark = Stamp::now();
    }

    /// A cache was read since the last mark.
    pub fn note(&mut self, tally: &Tally, cache: CacheName, freshness: Freshness) {
        tally.cache_read(cache as usize, freshness as usize);
        let now = Stamp::now();
        if self.reads.len() < READS_MAX {
            self.reads.push(Read { cache, freshness, nanos: now.nanos_since(self.mark) });
        }
        self.mark = now;
    }

    /// Whether the key was near, if it was looked for.
    pub fn key_sight(&self) -> Option<CacheSight> {
        let read = self.reads.iter().find(|read| read.cache == CacheName::Key)?;
        let near = read.freshness != Freshness::Miss;
        Some(if near { CacheSight::Hit } else { CacheSight::Miss })
    }

    pub fn reads(&self) -> &[Read] {
        &self.reads
    }
}

// === impl Read ===

impl Read {
    /// Microseconds with two decimals, as `cache_swr{cache=namespace,status=fresh}=1.56us`.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"cache_swr{cache=");
        out.extend_from_slice(match self.cache {
            CacheName::RootKey => b"root_key".as_slice(),
            CacheName::Namespace => b"namespace".as_slice(),
            CacheName::Key => b"key",
            CacheName::Identity => b"identity",
        });
        out.extend_from_slice(match self.freshness {
            Freshness::Fresh => b",status=fresh}=".as_slice(),
            Freshness::Stale => b",status=stale}=",
            Freshness::Miss => b",status=miss}=",
        });
        let mut digits = itoa::Buffer::new();
        out.extend_from_slice(digits.format(self.nanos / 1000).as_bytes());
        let hundredths = self.nanos % 1000 / 10;
        out.push(b'.');
        out.extend([b'0' + (hundredths / 10) as u8, b'0' + (hundredths % 10) as u8]);
        out.extend_from_slice(b"us");
    }
}
