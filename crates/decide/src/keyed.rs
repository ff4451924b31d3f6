//! 128 bits of a text under a secret, for names that strangers choose: the text's blocks are enciphered with their numbers and
//! added up, and the sum is enciphered once more under another key. Such a protected counter sum is as good as random to whoever
//! has not the secret, as long as AES is. Its blocks do not wait for each other, so it is short.
//! Nothing is encrypted here, and nothing of it can be undone.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod native;

/// What is left of a block beside its number.
const TEXT: usize = 14;

/// Of the number of the block that is a text's last. Those before it are below.
const LAST: u128 = 1 << 15;

/// As much as numbers below that can tell the length of. Names have some hundred bytes.
const TEXT_MAX: usize = LAST as usize - 1;

#[derive(Clone)]
pub(crate) struct Keyed(Way);

#[derive(Clone)]
enum Way {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    Native(native::Keys),
    Portable {
        blocks: Aes128Enc,
        end: Aes128Enc,
    },
}

// === impl Keyed ===

impl Keyed {
    pub(crate) fn new(secret: [u8; 16]) -> Self {
        let [blocks, end] = keys(secret);
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(keys) = native::Keys::new(blocks, end) {
            return Self(Way::Native(keys));
        }
        Self::portable(blocks, end)
    }

    fn portable(blocks: [u8; 16], end: [u8; 16]) -> Self {
        let [blocks, end] = [blocks, end].map(|key| Aes128Enc::new(&key.into()));
        Self(Way::Portable { blocks, end })
    }

    /// Of a text behind whatever `start` stands for.
    #[inline]
    pub(crate) fn sum(&self, start: u128, text: &[u8]) -> u128 {
        if text.len() > TEXT_MAX { self.sum_long(start, text) } else { self.sum_short(start, text) }
    }

    /// Piece by piece, each behind what those before it come to.
    #[cold]
    fn sum_long(&self, start: u128, text: &[u8]) -> u128 {
        text.chunks(TEXT_MAX).fold(start, |start, piece| self.sum_short(start, piece))
    }

    #[inline]
    fn sum_short(&self, start: u128, text: &[u8]) -> u128 {
        match &self.0 {
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Way::Native(keys) => keys.sum(start, text),
            Way::Portable { blocks, end } => {
                let mut sum = start;
                each_block(text, |block| sum ^= enciphered(blocks, block));
                enciphered(end, sum)
            }
        }
    }
}

/// Two of one.
fn keys(secret: [u8; 16]) -> [[u8; 16]; 2] {
    let cipher = Aes128Enc::new(&secret.into());
    [1, 2].map(|number| enciphered(&cipher, number).to_le_bytes())
}

fn enciphered(cipher: &Aes128Enc, block: u128) -> u128 {
    let mut block = Block::from(block.to_le_bytes());
    cipher.encrypt_block(&mut block);
    u128::from_le_bytes(block.into())
}

/// The blocks of a text of at most [`TEXT_MAX`] bytes, each with a number: 14 bytes after 14 bytes, and last the last 14, which may
/// overlap those before, with the text's length for a number. No two texts have the same.
#[inline]
fn each_block(text: &[u8], mut each: impl FnMut(u128)) {
    let (mut left, mut number) = (text, 0);
    while left.len() > TEXT
        && let Some((block, rest)) = left.split_first_chunk()
    {
        each(read(block) | u128::from(number) << 112);
        (left, number) = (rest, number + 1_u16);
    }
    let last = text.last_chunk().map_or_else(|| read_short(text), read);
    each(last | (LAST | text.len() as u128) << 112);
}

/// In two pieces that overlap.
#[inline]
fn read(text: &[u8; TEXT]) -> u128 {
    let word = |bytes: Option<&[u8; 8]>| bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let (first, last) = (word(text.first_chunk()), word(text.last_chunk()));
    u128::from(first) | u128::from(last >> 16) << 64
}

/// Less than a block, with zeros behind it.
#[inline(never)]
fn read_short(text: &[u8]) -> u128 {
    match (text.first_chunk(), text.last_chunk()) {
        (Some(first), Some(last)) => {
            let (first, last) = (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
            u128::from(first) | u128::from(last) << (8 * (text.len() - size_of::<u64>()))
        }
        _ => text.iter().rev().fold(0, |read: u64, byte| read << 8 | u64::from(*byte)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(length: usize) -> Vec<u8> {
        (0..=250_u8).cycle().map(|byte| byte.wrapping_mul(31)).take(length).collect()
    }

    #[test]
    fn the_processors_own_instructions_give_what_any_other_processor_would() {
        let keyed = Keyed::new([7; 16]);
        let [blocks, end] = keys([7; 16]);
        let portable = Keyed::portable(blocks, end);
        let lengths = (0..100).chain([511, 512, TEXT_MAX, TEXT_MAX + 1, 3 * TEXT_MAX]);
        for length in lengths {
            let text = text(length);
            assert_eq!(keyed.sum(5, &text), portable.sum(5, &text), "{length}");
        }
    }

    /// Counters that were stored are found by these: they must be the same in every version.
    #[test]
    fn a_name_has_the_same_sum_for_ever() {
        let keyed = Keyed::new(*b"a fixed 16 bytes");
        let sums = ["", "me", "user_123", "rk_live_0123456789abcdef0123456789abcdef"];
        let sums = sums.map(|text| keyed.sum(0, text.as_bytes()));
        assert_eq!(
            sums,
            [
                0x0d74_af23_5c5a_b3d6_73ce_d749_8550_dca8,
                0xc11d_4717_cb0f_9675_69bd_1ffe_c0dd_2f24,
                0x662e_ad37_05f4_b18a_8683_b1cd_09e6_a3ff,
                0x6636_2724_618e_2d5d_2392_e7c6_8c1a_4f8b,
            ]
        );
    }

    #[test]
    fn no_two_texts_have_the_same_blocks() {
        let blocks = |text: &[u8]| {
            let mut blocks = Vec::new();
            each_block(text, |block| blocks.push(block));
            blocks.sort_unstable();
            blocks
        };
        let mut texts: Vec<Vec<u8>> = (0..64).map(|length| vec![0; length]).collect();
        texts.extend((1..64).map(|length| vec![1; length]));
        // What is cut into the same pieces elsewhere, and what differs in one byte.
        texts.extend((14..60).map(|at| {
            let mut text = text(60);
            text.rotate_left(at);
            text
        }));
        texts.extend((0..60).map(|at| {
            let mut text = text(60);
            text[at] ^= 1;
            text
        }));
        let all: std::collections::HashSet<Vec<u128>> =
            texts.iter().map(|text| blocks(text)).collect();
        assert_eq!(all.len(), texts.len());
    }

    #[test]
    fn every_byte_counts_and_so_do_secret_and_start() {
        let keyed = Keyed::new([7; 16]);
        for length in 1..100 {
            let whole = text(length);
            let sum = keyed.sum(1, &whole);
            assert_ne!(sum, keyed.sum(2, &whole));
            assert_ne!(sum, Keyed::new([8; 16]).sum(1, &whole));
            for at in 0..length {
                let mut other = whole.clone();
                other[at] ^= 0x80;
                assert_ne!(sum, keyed.sum(1, &other), "{length} {at}");
            }
        }
    }
}
