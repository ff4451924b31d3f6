//! The text of a key: `prefix_` and random base62, closed by a checksum, so that a typo is seen without looking anything up.
//! Only text and bytes; randomness comes in, hashing happens elsewhere, and nothing here is stored.

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// 62^6 is more than 2^32: six characters hold a CRC32.
const CHECK_CHARS: usize = 6;
/// How much of the random part may be shown, to tell keys apart in lists.
const START_CHARS: usize = 4;

/// A new key's text from random bytes. The prefix may hold `_` itself.
pub fn key_text(prefix: Option<&str>, random: &[u8]) -> String {
    let mut text = prefix.map(|prefix| format!("{prefix}_")).unwrap_or_default();
    text.push_str(&base62(random));
    text.extend(check_of(&text).map(char::from));
    text
}

/// What may be shown of a key: its prefix and the first few characters behind it.
pub fn key_start(prefix: Option<&str>, text: &str) -> String {
    let skip = prefix.map_or(0, |prefix| prefix.len() + 1);
    text.chars().take(skip + START_CHARS).collect()
}

/// Does the checksum fit? False for every text that was mistyped, cut off or guessed, but for one in 4 billion.
pub fn key_is_intact(text: &str) -> bool {
    let Some(at) = text.len().checked_sub(CHECK_CHARS).filter(|at| *at > 0) else { return false };
    match text.split_at_checked(at) {
        Some((body, check)) => check_of(body) == check.as_bytes(),
        None => false,
    }
}

fn check_of(body: &str) -> [u8; CHECK_CHARS] {
    let mut crc = crc32(body.as_bytes());
    let mut check = [0; CHECK_CHARS];
    for digit in check.iter_mut().rev() {
        *digit = ALPHABET[(crc % 62) as usize];
        crc /= 62;
    }
    check
}

/// The bytes as one number, in as many digits as the largest of that length needs: lengths never tell values apart.
fn base62(bytes: &[u8]) -> String {
    // A base62 digit holds 5.954196 bits.
    let digits = bytes.len() * 8_000_000 / 5_954_196 + 1;
    let mut number = bytes.to_vec();
    let mut out = vec![b'0'; digits];
    for digit in out.iter_mut().rev() {
        let mut rest = 0_u32;
        for byte in &mut number {
            let value = (rest << 8) | u32::from(*byte);
            *byte = u8::try_from(value / 62).unwrap_or(u8::MAX);
            rest = value % 62;
        }
        *digit = ALPHABET[rest as usize];
    }
    out.into_iter().map(char::from).collect()
}

/// CRC-32 as in zlib and PNG, four bytes at a time: every verification of a key goes through it, and one look into a table
/// waits for the one before.
fn crc32(bytes: &[u8]) -> u32 {
    let (fours, rest) = bytes.as_chunks::<4>();
    let by_four = fours.iter().fold(u32::MAX, |crc, four| {
        let [a, b, c, d] = (crc ^ u32::from_le_bytes(*four)).to_le_bytes().map(usize::from);
        CRC32[3][a] ^ CRC32[2][b] ^ CRC32[1][c] ^ CRC32[0][d]
    });
    let step =
        |crc: u32, byte: &u8| (crc >> 8) ^ CRC32[0][usize::from(crc.to_le_bytes()[0] ^ byte)];
    !rest.iter().fold(by_four, step)
}

/// What a byte does to the checksum, alone and with one to three bytes of zero behind it.
static CRC32: [[u32; 256]; 4] = {
    let mut tables = [[0; 256]; 4];
    let mut byte: u32 = 0;
    while byte < 256 {
        let (mut crc, mut bit) = (byte, 0);
        while bit < 32 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
            bit += 1;
            if bit % 8 == 0 {
                tables[bit / 8 - 1][byte as usize] = crc;
            }
        }
        byte += 1;
    }
    tables
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_checksum_is_the_common_crc32() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!((crc32(b""), crc32(b"a"), crc32(b"abcd")), (0, 0xE8B7_BE43, 0xED82_CD11));
    }

    #[test]
    fn all_lengths_hold_every_value_in_the_same_number_of_characters() {
        for length in 16..=255 {
            let (low, high) = (base62(&vec![0; length]), base62(&vec![255; length]));
            assert_eq!(low.len(), high.len());
            assert!(low.bytes().all(|digit| digit == b'0'));
            assert_ne!(high.as_bytes()[0], b'0', "{length} bytes waste a character");
        }
    }

    proptest! {
        #[test]
        fn a_key_is_intact_and_every_single_change_breaks_it(
            random in prop::collection::vec(any::<u8>(), 16..40),
            prefix in prop::option::of("[a-zA-Z0-9_]{1,16}"), at in any::<prop::sample::Index>(), to in 33_u8..127,
        ) {
            let text = key_text(prefix.as_deref(), &random);
            prop_assert!(key_is_intact(&text));
            let mut changed = text.clone().into_bytes();
            let at = at.index(changed.len());
            changed[at] = to;
            let changed = String::from_utf8(changed).unwrap_or_default();
            prop_assert_eq!(key_is_intact(&changed), changed == text);
            prop_assert!(!key_is_intact(&text[..text.len() - 1]));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,24}") {
            let _ = key_is_intact(&text);
        }

        #[test]
        fn different_bytes_give_different_texts(a in any::<[u8; 20]>(), b in any::<[u8; 20]>()) {
            prop_assert_eq!(base62(&a) == base62(&b), a == b);
        }
    }

    #[test]
    fn the_start_shows_the_prefix_and_four_characters() {
        let text = key_text(Some("my_app"), &[7; 20]);
        let start = key_start(Some("my_app"), &text);
        assert!(text.starts_with(&start) && start.len() == "my_app_".len() + 4);
    }
}
