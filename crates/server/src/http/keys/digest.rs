//! SHA-256 digests as people write them: hexadecimal, or base64 in either alphabet.

use tollkeeper_decide::KeyHash;

/// `None` for what spells no 32 bytes.
pub fn read(text: &str) -> Option<KeyHash> {
    let bytes = if text.len() == 64 { hexadecimal(text)? } else { base64(text)? };
    bytes.try_into().ok().map(KeyHash)
}

fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pair = |pair: &[u8]| Some(digit(pair[0])? << 4 | digit(pair[1])?);
    text.as_bytes().chunks_exact(2).map(pair).collect()
}

fn base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(32);
    let (mut bits, mut held) = (0_u32, 0_u32);
    for sign in text.strip_suffix('=').unwrap_or(text).bytes() {
        held = held << 6 | u32::from(sextet(sign)?);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(held >> bits).ok()?);
            held &= (1 << bits) - 1;
        }
    }
    // Bits behind the last byte would make two spellings of one digest.
    (held == 0).then_some(bytes)
}

fn sextet(sign: u8) -> Option<u8> {
    Some(match sign {
        b'A'..=b'Z' => sign - b'A',
        b'a'..=b'z' => sign - b'a' + 26,
        b'0'..=b'9' => sign - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn both_spellings_of_a_digest_are_the_same_hash() {
        let hex = read("2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
        assert!(hex.is_some());
        for spelling in [
            "2CF24DBA5FB0A30E26E83B2AC5B9E29E1B161E5C1FA7425E73043362938B9824",
            "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=",
            "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ",
            "LPJNul-wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=",
        ] {
            assert_eq!(read(spelling), hex, "{spelling}");
        }
        assert_eq!(read("LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCR="), None);
    }

    proptest! {
        #[test]
        fn no_text_panics_and_only_32_bytes_are_a_digest(text in "[a-zA-Z0-9+/_=-]{0,70}") {
            if read(&text).is_some() {
                prop_assert!(matches!(text.len(), 43 | 44 | 64));
            }
        }
    }
}
