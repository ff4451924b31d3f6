//! AES-128 by the processor's own instructions, where it has them: the sum of a text as `keyed.rs` has it, all in one piece.
//! Nothing here reads or writes memory by address. What is unsafe is to call it on a processor without the instructions.

use std::arch::x86_64::{
    __m128i, _mm_aesenc_si128, _mm_aesenclast_si128, _mm_aeskeygenassist_si128, _mm_cvtsi128_si64,
    _mm_set_epi64x, _mm_shuffle_epi32, _mm_slli_si128, _mm_unpackhi_epi64, _mm_xor_si128,
};

use super::each_block;

type RoundKeys = [__m128i; 11];

/// Exists only where the processor has the instructions.
#[derive(Clone)]
pub(super) struct Keys {
    blocks: RoundKeys,
    end: RoundKeys,
}

// === impl Keys ===

#[allow(
    unsafe_code,
    reason = "whether the processor has the instructions is known only where it runs"
)]
impl Keys {
    pub(super) fn new(blocks: [u8; 16], end: [u8; 16]) -> Option<Self> {
        // SAFETY: the processor was asked.
        let expand = |key| unsafe { expand(u128::from_le_bytes(key)) };
        is_x86_feature_detected!("aes").then(|| Self { blocks: expand(blocks), end: expand(end) })
    }

    #[inline]
    pub(super) fn sum(&self, start: u128, text: &[u8]) -> u128 {
        // SAFETY: there are no such keys where the processor has no such instructions.
        unsafe { sum(self, start, text) }
    }
}

#[target_feature(enable = "aes")]
fn sum(keys: &Keys, start: u128, text: &[u8]) -> u128 {
    let mut sum = wide(start);
    each_block(text, |block| sum = _mm_xor_si128(sum, encipher(&keys.blocks, wide(block))));
    narrow(encipher(&keys.end, sum))
}

#[target_feature(enable = "aes")]
fn encipher(keys: &RoundKeys, block: __m128i) -> __m128i {
    let [first, between @ .., last] = keys;
    let mut block = _mm_xor_si128(block, *first);
    for key in between {
        block = _mm_aesenc_si128(block, *key);
    }
    _mm_aesenclast_si128(block, *last)
}

/// The key schedule of AES-128.
#[target_feature(enable = "aes")]
fn expand(key: u128) -> RoundKeys {
    let k0 = wide(key);
    let k1 = next::<0x01>(k0);
    let k2 = next::<0x02>(k1);
    let k3 = next::<0x04>(k2);
    let k4 = next::<0x08>(k3);
    let k5 = next::<0x10>(k4);
    let k6 = next::<0x20>(k5);
    let k7 = next::<0x40>(k6);
    let k8 = next::<0x80>(k7);
    let k9 = next::<0x1b>(k8);
    [k0, k1, k2, k3, k4, k5, k6, k7, k8, k9, next::<0x36>(k9)]
}

#[target_feature(enable = "aes")]
fn next<const ROUND: i32>(key: __m128i) -> __m128i {
    let word = _mm_shuffle_epi32::<0xff>(_mm_aeskeygenassist_si128::<ROUND>(key));
    let mut key = key;
    for _ in 0..3 {
        key = _mm_xor_si128(key, _mm_slli_si128::<4>(key));
    }
    _mm_xor_si128(key, word)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "the same bits")]
#[target_feature(enable = "aes")]
fn wide(block: u128) -> __m128i {
    _mm_set_epi64x((block >> 64) as i64, block as i64)
}

#[allow(clippy::cast_sign_loss, reason = "the same bits")]
#[target_feature(enable = "aes")]
fn narrow(block: __m128i) -> u128 {
    let low = _mm_cvtsi128_si64(block) as u64;
    let high = _mm_cvtsi128_si64(_mm_unpackhi_epi64(block, block)) as u64;
    u128::from(low) | u128::from(high) << 64
}
