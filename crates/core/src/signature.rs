//! A signed request: what its key's signing secret demands of it. Pure, and without any arithmetic of its own: whether
//! a signature fits is asked of whoever brought it, and only for keys that have a secret.

use std::fmt;

use crate::Millis;

/// How far a signature's time may be from ours, either way. Five minutes: clocks that nobody keeps well, and a request
/// that was long under way.
pub const SIGNATURE_TOLERANCE_MS: u64 = 300_000;

/// How long a signature that was used is remembered: from the earliest moment at which it is taken to the last, and a
/// minute for nodes whose clocks differ.
pub const SIGNATURE_MEMORY_MS: u64 = 2 * SIGNATURE_TOLERANCE_MS + 60_000;

/// The signature that came with a request.
pub trait Signature: fmt::Debug + Send + Sync {
    /// When it was made, as it says itself.
    fn made_at(&self) -> Millis;

    /// Whether it was made with this secret of this key, over this very request.
    fn fits(&self, key_id: &str, secret: &SealedSecret) -> bool;

    /// Tells it from all others of its key; one spelling for each.
    fn value(&self) -> &str;
}

/// A key's signing secret as it is stored: only the process that sealed it, or one with the same secret, can open it.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedSecret(Box<[u8]>);

/// Why a request is not signed as its key demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsigned {
    Absent,
    /// Made too long ago, or too far ahead.
    OutOfTime,
    Wrong,
    /// It was used before.
    Repeated,
}

/// Time first: it costs nothing, and most of what is captured is sent again late.
pub(crate) fn check(
    key_id: &str,
    secret: &SealedSecret,
    given: Option<&dyn Signature>,
    now: Millis,
) -> Result<(), Unsigned> {
    let given = given.ok_or(Unsigned::Absent)?;
    if given.made_at().0.abs_diff(now.0) > SIGNATURE_TOLERANCE_MS {
        return Err(Unsigned::OutOfTime);
    }
    if given.fits(key_id, secret) { Ok(()) } else { Err(Unsigned::Wrong) }
}

// === impl SealedSecret ===

impl SealedSecret {
    pub fn new(sealed: impl Into<Box<[u8]>>) -> Self {
        Self(sealed.into())
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SealedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[sealed]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = Millis(1_000_000_000);

    #[derive(Debug)]
    struct Given {
        made_at: Millis,
        secret: &'static [u8],
    }

    impl Signature for Given {
        fn made_at(&self) -> Millis {
            self.made_at
        }

        fn fits(&self, key_id: &str, secret: &SealedSecret) -> bool {
            key_id == "key_1" && secret.bytes() == self.secret
        }

        fn value(&self) -> &'static str {
            "00"
        }
    }

    fn checked(given: Option<&Given>) -> Result<(), Unsigned> {
        let given = given.map(|given| given as &dyn Signature);
        check("key_1", &SealedSecret::new(*b"right"), given, NOW)
    }

    #[test]
    fn only_a_signature_that_is_there_in_time_and_fits_is_taken() {
        let (early, late) =
            (Millis(NOW.0 - SIGNATURE_TOLERANCE_MS), Millis(NOW.0 + SIGNATURE_TOLERANCE_MS));
        let table: [(Millis, &'static [u8], _); 9] = [
            (NOW, b"right", Ok(())),
            (early, b"right", Ok(())),
            (late, b"right", Ok(())),
            (NOW, b"wrong", Err(Unsigned::Wrong)),
            (late, b"wrong", Err(Unsigned::Wrong)),
            (Millis(early.0 - 1), b"right", Err(Unsigned::OutOfTime)),
            (Millis(late.0 + 1), b"right", Err(Unsigned::OutOfTime)),
            (Millis(0), b"wrong", Err(Unsigned::OutOfTime)),
            (Millis(u64::MAX), b"right", Err(Unsigned::OutOfTime)),
        ];
        assert_eq!(checked(None), Err(Unsigned::Absent));
        for (made_at, secret, expected) in table {
            assert_eq!(checked(Some(&Given { made_at, secret })), expected, "{made_at:?}");
        }
    }

    #[test]
    fn a_sealed_secret_does_not_show_even_its_ciphertext() {
        assert_eq!(format!("{:?}", SealedSecret::new(*b"sealed bytes")), "[sealed]");
    }
}
