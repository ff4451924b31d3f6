//! Keys derived from the one secret: the pepper of root keys and the key of the cell hash.
//! Key text comes in, its HMAC goes out; nothing here can be printed.

use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use tollkeeper_decide::{CellHasher, KeyHash};
use tollkeeper_store::{SealKey, imported_hash};
use zeroize::Zeroize;

use crate::envelope::Envelope;
use crate::shared_cache::CacheKeys;

/// Names the pepper in stored rows, so that a later one can be told from it.
pub const PEPPER_ID: i64 = 1;

pub struct Keyring {
    /// Keyed once; a clone starts every hash, which saves two of its four blocks.
    pepper: Hmac<Sha256>,
    cell_secret: [u8; 16],
    envelope: Envelope,
    fingerprint: [u8; 16],
    cache_keys: CacheKeys,
    audit_seal: SealKey,
}

// === impl Keyring ===

impl Keyring {
    /// `None` only if the derivation itself is broken: lengths are fixed and within its bounds.
    pub fn derive(secret: &str) -> Option<Self> {
        let derived = Hkdf::<Sha256>::new(Some(b"tollkeeper"), secret.as_bytes());
        let mut pepper = [0; 32];
        derived.expand(b"root key pepper 1", &mut pepper).ok()?;
        let mut cell_secret = [0; 16];
        derived.expand(b"cell hash 2", &mut cell_secret).ok()?;
        let mut envelope = [0; 32];
        derived.expand(b"envelope 1", &mut envelope).ok()?;
        let sealed = Envelope::new(envelope);
        envelope.zeroize();
        let mut fingerprint = [0; 16];
        derived.expand(b"fingerprint 1", &mut fingerprint).ok()?;
        let (mut names, mut seals) = ([0; 32], [0; 32]);
        derived.expand(b"shared cache names 1", &mut names).ok()?;
        derived.expand(b"shared cache seals 1", &mut seals).ok()?;
        let cache_keys = CacheKeys::new(names, seals);
        names.zeroize();
        seals.zeroize();
        let mut seal = [0; 32];
        derived.expand(b"admin audit seals 1", &mut seal).ok()?;
        let audit_seal = SealKey::new(&seal);
        seal.zeroize();
        let keyed = Hmac::<Sha256>::new_from_slice(&pepper).ok();
        pepper.zeroize();
        let (envelope, cache_keys, audit_seal) = (sealed?, cache_keys?, audit_seal?);
        Some(Self { pepper: keyed?, cell_secret, envelope, fingerprint, cache_keys, audit_seal })
    }

    pub fn hash(&self, key_text: &[u8]) -> KeyHash {
        let mut mac = self.pepper.clone();
        mac.update(key_text);
        KeyHash(mac.finalize().into_bytes().into())
    }

    /// How a key that this tenant imported is stored.
    pub fn imported_hash(tenant_id: &str, key_text: &[u8]) -> KeyHash {
        imported_hash(tenant_id, KeyHash(Sha256::digest(key_text).into()))
    }

    /// What is kept encrypted: keys that may be shown again, answers that may be repeated.
    pub fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    /// What other nodes find in Redis.
    pub fn cache_keys(&self) -> &CacheKeys {
        &self.cache_keys
    }

    /// What the ends of audit chains are sealed with.
    pub fn audit_seal(&self) -> SealKey {
        self.audit_seal.clone()
    }

    /// Tells two secrets apart without saying anything about either.
    pub fn fingerprint(&self) -> [u8; 16] {
        self.fingerprint
    }

    pub fn cell_hasher(&self) -> CellHasher {
        CellHasher::new(self.cell_secret)
    }
}

impl std::fmt::Debug for Keyring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keyring(secret)")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn one_secret_always_derives_the_same_hash_and_another_a_different_one() {
        let secret = "0123456789abcdef0123456789abcdef";
        let hash = |secret: &str, key: &[u8]| Keyring::derive(secret).unwrap().hash(key);
        assert_eq!(hash(secret, b"key"), hash(secret, b"key"));
        assert_ne!(hash(secret, b"key"), hash(secret, b"kez"));
        assert_ne!(hash(secret, b"key"), hash("another secret of 32 characters!!", b"key"));
    }
}
