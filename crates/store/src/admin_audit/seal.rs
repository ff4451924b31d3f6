//! The seal on the end of a chain: only who has the server's secret can say where a chain ends.
//! The key is never stored and cannot be printed.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Keyed once; a clone starts every seal.
#[derive(Clone)]
pub struct SealKey(Hmac<Sha256>);

// === impl SealKey ===

impl SealKey {
    /// `None` only if the algorithm itself is broken: it takes keys of any length.
    pub fn new(key: &[u8; 32]) -> Option<Self> {
        Hmac::new_from_slice(key).ok().map(Self)
    }

    pub(super) fn seal(&self, tenant_id: &str, position: i64, hash: &[u8]) -> [u8; 32] {
        self.over(tenant_id, position, hash).finalize().into_bytes().into()
    }

    pub(super) fn holds(&self, seal: &[u8], tenant_id: &str, position: i64, hash: &[u8]) -> bool {
        self.over(tenant_id, position, hash).verify_slice(seal).is_ok()
    }

    fn over(&self, tenant_id: &str, position: i64, hash: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(b"tollkeeper admin audit head 1");
        mac.update(&(tenant_id.len() as u64).to_be_bytes());
        mac.update(tenant_id.as_bytes());
        mac.update(&position.to_be_bytes());
        mac.update(hash);
        mac
    }
}

impl std::fmt::Debug for SealKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealKey(secret)")
    }
}
