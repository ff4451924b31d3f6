//! Random numbers that a seed brings back.

/// `SplitMix64`: small, and good enough to choose test cases.
#[derive(Debug)]
pub(super) struct Dice(u64);

// === impl Dice ===

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// 0 to `most`, both included.
    pub(super) fn up_to(&mut self, most: u64) -> u64 {
        let drawn = self.next();
        most.checked_add(1).map_or(drawn, |count| drawn % count)
    }

    pub(super) fn percent(&mut self, chance: u64) -> bool {
        self.up_to(99) < chance
    }

    pub(super) fn of<T: Copy>(&mut self, choice: &[T]) -> T {
        let last = u64::try_from(choice.len() - 1).unwrap();
        choice[usize::try_from(self.up_to(last)).unwrap()]
    }

    /// Any magnitude is as likely as any other.
    pub(super) fn magnitude(&mut self, most: u64) -> u64 {
        let bits = u64::from(u64::BITS - most.leading_zeros());
        let shift = self.up_to(bits);
        self.up_to(most >> (bits - shift).min(63))
    }
}
