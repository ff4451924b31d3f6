//! What goes to Redis is sealed here and nowhere else: only a [`Sealed`] can be kept there, and only this makes one.
//! Names are digests under a key of their own, so that neither names nor contents say anything to who reads Redis.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tollkeeper_redis::{EntryKind, EntryName, Kept};

use crate::envelope::Envelope;

/// How records are written inside. Whatever was sealed as another format does not open, and counts as not there.
/// 3 tells of signing secrets: read from a record without a word of them, a key would take requests that nobody signed.
const FORMAT: u8 = 3;

/// From the one secret, apart from all its other keys.
pub struct CacheKeys {
    names: Hmac<Sha256>,
    seals: Hmac<Sha256>,
}

/// An entry that nobody can read without the secret.
#[derive(Debug)]
pub struct Sealed(Kept);

// === impl CacheKeys ===

impl CacheKeys {
    pub fn new(names: [u8; 32], seals: [u8; 32]) -> Option<Self> {
        let keyed = |key: [u8; 32]| Hmac::new_from_slice(&key).ok();
        Some(Self { names: keyed(names)?, seals: keyed(seals)? })
    }

    /// `parts` are told apart by their lengths: no two lists make one name.
    pub fn name(&self, kind: EntryKind, parts: &[&[u8]]) -> EntryName {
        let mut mac = self.names.clone();
        for part in [kind.prefix().as_bytes()].iter().chain(parts) {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        let mut digest = [0; 16];
        digest.copy_from_slice(&mac.finalize().into_bytes()[..16]);
        EntryName::new(kind, digest)
    }

    pub fn seal(&self, name: &EntryName, revision: u64, text: &[u8]) -> Option<Sealed> {
        let sealed = self.envelope(name)?.seal(&bound(name, revision), text)?;
        Some(Sealed(Kept { revision, sealed }))
    }

    /// `None` for what was not sealed with this secret, for this name, at this revision, in this format.
    pub fn open(&self, name: &EntryName, kept: &Kept) -> Option<Vec<u8>> {
        self.envelope(name)?.open(&bound(name, kept.revision), &kept.sealed)
    }

    /// Each name has a key of its own. Nonces are random, and one key for all that a busy fleet ever seals would see
    /// more of them than 96 bits keep apart.
    fn envelope(&self, name: &EntryName) -> Option<Envelope> {
        let mut mac = self.seals.clone();
        mac.update(name.text().as_bytes());
        Envelope::new(mac.finalize().into_bytes().into())
    }
}

fn bound(name: &EntryName, revision: u64) -> String {
    format!("{FORMAT} {revision} {}", name.text())
}

impl std::fmt::Debug for CacheKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CacheKeys(secret)")
    }
}

// === impl Sealed ===

impl Sealed {
    /// Says nothing but that something changed at this revision.
    pub fn notice(revision: u64) -> Self {
        Self(Kept { revision, sealed: Vec::new() })
    }

    pub fn kept(&self) -> &Kept {
        &self.0
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn an_entry_opens_only_under_its_name_its_secret_and_its_revision() {
        let keys = CacheKeys::new([1; 32], [2; 32]).unwrap();
        let name = keys.name(EntryKind::Key, &[b"database", b"hash"]);
        let kept = keys.seal(&name, 7, b"a record").unwrap().kept().clone();
        assert_eq!(keys.open(&name, &kept).unwrap(), b"a record");
        assert!(!kept.sealed.windows(6).any(|part| part == b"record"));
        let newer = Kept { revision: 8, ..kept.clone() };
        assert_eq!(keys.open(&name, &newer), None, "nobody makes an entry younger");
        let other = keys.name(EntryKind::Key, &[b"database", b"hasi"]);
        assert_eq!(keys.open(&other, &kept), None);
        let stranger = CacheKeys::new([1; 32], [3; 32]).unwrap();
        assert_eq!(stranger.open(&name, &kept), None);
        assert_eq!(keys.open(&name, Sealed::notice(7).kept()), None);
    }

    #[test]
    fn two_databases_two_kinds_and_two_spellings_never_share_a_name() {
        let keys = CacheKeys::new([1; 32], [2; 32]).unwrap();
        let names = [
            keys.name(EntryKind::Key, &[b"ab", b"c"]),
            keys.name(EntryKind::Key, &[b"a", b"bc"]),
            keys.name(EntryKind::ProjectById, &[b"ab", b"c"]),
            CacheKeys::new([3; 32], [2; 32]).unwrap().name(EntryKind::Key, &[b"ab", b"c"]),
        ];
        for (at, name) in names.iter().enumerate() {
            assert!(!names[at + 1..].contains(name), "{name:?}");
        }
    }
}
