//! Random names: request ids on the hot path, and the root key of a first start.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::redacted::Redacted;

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Request ids of one thread: a random start, then a walk through all 64-bit numbers in an order that
/// shows neither count nor time.
#[derive(Debug)]
pub struct RequestIds {
    seed: u64,
    next: AtomicU64,
}

/// `req_` and 16 characters.
#[derive(Clone, Copy, Debug)]
pub struct RequestId([u8; RequestId::LEN]);

// === impl RequestIds ===

impl RequestIds {
    pub fn new() -> Result<Self, getrandom::Error> {
        Ok(Self { seed: random_u64()?, next: AtomicU64::new(random_u64()?) })
    }

    pub fn next(&self) -> RequestId {
        // An odd step visits every number before it repeats one.
        let step = self.next.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        let mut id = *b"req_0000000000000000";
        spell(self.seed, &mut id[4..9]);
        spell(step ^ (step >> 32), &mut id[9..]);
        RequestId(id)
    }
}

// === impl RequestId ===

impl RequestId {
    const LEN: usize = 20;

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("req_")
    }
}

/// A root key with 256 random bits.
pub fn root_key() -> Result<Redacted<String>, getrandom::Error> {
    let mut text = *b"tk_root_0000000000000000000000000000000000000000000";
    for chunk in text[8..].chunks_mut(10) {
        spell(random_u64()?, chunk);
    }
    Ok(Redacted::new(String::from_utf8_lossy(&text).into_owned()))
}

fn random_u64() -> Result<u64, getrandom::Error> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Base62, least significant digit first, as many digits as there is room for.
#[allow(clippy::cast_possible_truncation, reason = "a remainder of 62 fits any index")]
fn spell(mut number: u64, out: &mut [u8]) {
    for digit in out {
        *digit = ALPHABET[(number % 62) as usize];
        number /= 62;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_hundred_thousand_request_ids_are_all_different() {
        let ids = RequestIds::new().unwrap();
        let seen: HashSet<String> = (0..100_000).map(|_| ids.next().as_str().to_owned()).collect();
        assert_eq!(seen.len(), 100_000);
    }

    #[test]
    fn a_generated_root_key_is_acceptable_as_a_given_one() {
        let key = root_key().unwrap();
        assert!(
            key.expose().len() >= 43 && key.expose().bytes().all(|byte| byte.is_ascii_graphic())
        );
        assert_ne!(key.expose(), root_key().unwrap().expose());
    }
}
