//! Signed requests: the secret that a key may have for them, and the signature that comes with one.

use crate::part::Text;
use crate::request::request;
use crate::schema::{Chars, Shape, Spelling};
use crate::verdict::COUNT;

/// Sixteen characters at least: a secret that can be guessed from one captured signature is none.
pub const SIGNING_SECRET: Chars = Chars { min: 16, max: 512 };
const DIGITS: Chars = Chars { min: 64, max: 64 };

/// What every HTTP client and every shell can handle, so that a secret is the same bytes everywhere.
pub const PRINTABLE: Spelling = Spelling {
    of: "printable ASCII characters",
    pattern: Some("^[ -~]+$"),
    holds: |text| text.bytes().all(|byte| matches!(byte, b' '..=b'~')),
    examples: &["whsec_2b7e151628aed2a6"],
};

pub const HEXADECIMAL: Spelling = Spelling {
    of: "hexadecimal digits",
    pattern: Some("^[0-9a-fA-F]+$"),
    holds: |text| text.bytes().all(|byte| byte.is_ascii_hexdigit()),
    examples: &["2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"],
};

pub(crate) const SIGNING: Shape = Shape::Spelled(SIGNING_SECRET, &PRINTABLE);
const HEX_DIGEST: Shape = Shape::Spelled(DIGITS, &HEXADECIMAL);

request! {
    /// The signature of the end user's request, made with the signing secret of its key.
    RequestSignature<'a> {
        required timestamp "timestamp": u64 = Shape::Integer(COUNT),
            "When it was made, unix milliseconds; at most five minutes from now, either way.";
        required value "value": Text<'a> = HEX_DIGEST,
            "HMAC-SHA-256 of `tollkeeper-v1`, timestamp, method, path and bodySha256, joined by line feeds.";
        optional body_sha256 "bodySha256": Text<'a> = HEX_DIGEST,
            "SHA-256 of the end user's body, where it was signed too.";
    }
}

pub(crate) const SIGNATURE_ABOUT: &str =
    "How the end user's request is signed; keys with `signing` want it, others ignore it.";
pub(crate) const SIGNING_ABOUT: &str =
    "A secret that its requests have to be signed with; it is never shown. Default: none.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_holds_for_its_own_examples_and_not_for_others() {
        for spelling in [PRINTABLE, HEXADECIMAL] {
            assert!(spelling.examples.iter().all(|text| (spelling.holds)(text)), "{}", spelling.of);
        }
        for text in ["ä", "a\tb", "a\n", "\u{7f}", "\0"] {
            assert!(!(PRINTABLE.holds)(text) && !(HEXADECIMAL.holds)(text), "{text:?}");
        }
        assert!(!(HEXADECIMAL.holds)("0x12") && !(HEXADECIMAL.holds)("g"));
    }
}
