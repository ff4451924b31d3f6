//! Names of records: a prefix that says what it is, and 20 characters nobody can guess.

use crate::Fault;

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// 119 bits: no two records ever meet, so no insert is retried for it.
const LENGTH: usize = 20;

/// The largest multiple of 62 that a byte holds. Bytes from here on are drawn again,
/// or the first letters of the alphabet would come up more often than the rest.
const FAIR: u8 = 248;

pub(crate) const TENANT: &str = "ws";
pub(crate) const ROOT_KEY: &str = "rk";
pub(crate) const NAMESPACE: &str = "rlns";
pub(crate) const OVERRIDE: &str = "rlor";
pub(crate) const PROJECT: &str = "api";
pub(crate) const IDENTITY: &str = "id";
pub(crate) const KEY: &str = "key";
pub(crate) const LIMIT: &str = "rl";
pub(crate) const PERMISSION: &str = "perm";
pub(crate) const ROLE: &str = "role";
pub(crate) const RULE: &str = "rule";

pub(crate) fn fresh(prefix: &str) -> Result<String, Fault> {
    let mut id = format!("{prefix}_");
    let length = id.len() + LENGTH;
    let mut draw = [0; 32];
    while id.len() < length {
        getrandom::fill(&mut draw).map_err(|_| Fault::NoRandomness)?;
        let fair = draw.iter().filter(|byte| **byte < FAIR);
        let missing = length - id.len();
        id.extend(fair.map(|byte| char::from(ALPHABET[usize::from(byte % 62)])).take(missing));
    }
    Ok(id)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn an_id_is_its_prefix_and_twenty_letters_or_digits() {
        for _ in 0..1000 {
            let id = fresh(OVERRIDE).unwrap();
            let random = id.strip_prefix("rlor_").unwrap();
            assert_eq!(random.len(), 20);
            assert!(random.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        }
    }

    #[test]
    fn no_id_comes_twice_and_every_letter_comes() {
        let ids: HashSet<_> = (0..1000).map(|_| fresh(TENANT).unwrap()).collect();
        assert_eq!(ids.len(), 1000);
        let letters: HashSet<_> = ids.iter().flat_map(|id| id[3..].bytes()).collect();
        assert_eq!(letters.len(), ALPHABET.len());
    }
}
