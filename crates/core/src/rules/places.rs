//! Sets of rules by their place in a block: as marks, one bit per rule, and as lists where only a few belong.

/// Rules of one block: all that one `rules.apply` may bring (10,000), so that a tenant's rules are one block,
/// and its marks are little enough for the stack.
pub(super) const BLOCK: usize = 10_240;
/// Most tenants have fewer rules than this, and need not have the marks of a whole block made ready.
pub(super) const SMALL_BLOCK: usize = 1_024;

/// One bit per rule of a block.
#[derive(Debug)]
pub(super) struct Marks<'m>(&'m mut [u64]);

/// The rules that a request still meets, and those that its next value satisfies.
#[derive(Debug)]
pub(super) struct Narrowing<'m> {
    met: &'m mut [u64],
    fits: Marks<'m>,
}

/// Rules that have one value in common.
#[derive(Clone, Debug)]
pub(super) enum Places {
    Few(Vec<u16>),
    /// As soon as going through the list would take longer than going through the words.
    Many(Box<[u64]>),
}

// === impl Marks ===

impl Marks<'_> {
    pub(super) fn add(&mut self, places: &Places) {
        match places {
            Places::Few(places) => {
                for place in places {
                    mark(self.0, *place);
                }
            }
            Places::Many(words) => {
                for (own, other) in self.0.iter_mut().zip(words) {
                    *own |= other;
                }
            }
        }
    }

    pub(super) fn set(&mut self, place: u16) {
        mark(self.0, place);
    }
}

pub(super) fn mark(words: &mut [u64], place: u16) {
    words[usize::from(place) / 64] |= 1 << (place % 64);
}

/// How many words the marks of this many rules take.
pub(super) const fn words_of(rules: usize) -> usize {
    rules.div_ceil(64)
}

/// Marks to be kept, none of them set.
pub(super) fn blank(rules: usize) -> Box<[u64]> {
    vec![0; words_of(rules)].into()
}

// === impl Narrowing ===

impl<'m> Narrowing<'m> {
    /// `room` is twice what the marks take, or more.
    pub(super) fn of(all: &[u64], room: &'m mut [u64]) -> Self {
        let (met, rest) = room.split_at_mut(all.len());
        met.copy_from_slice(all);
        Self { met, fits: Marks(&mut rest[..all.len()]) }
    }

    /// Only the open ones are left, and those that `mark` marks.
    pub(super) fn to(&mut self, open: &[u64], mark: impl FnOnce(&mut Marks<'_>)) {
        self.fits.0.copy_from_slice(open);
        mark(&mut self.fits);
        for (own, other) in self.met.iter_mut().zip(&*self.fits.0) {
            *own &= other;
        }
    }

    pub(super) fn without(&mut self, others: &[u64]) {
        for (own, other) in self.met.iter_mut().zip(others) {
            *own &= !other;
        }
    }

    /// The places that are left, in ascending order.
    pub(super) fn places(&self) -> impl Iterator<Item = usize> {
        self.met.iter().enumerate().flat_map(|(at, word)| {
            let following = |left: &u64| Some(left & (left - 1)).filter(|left| *left != 0);
            let lefts = std::iter::successors((*word != 0).then_some(*word), following);
            lefts.map(move |left| at * 64 + left.trailing_zeros() as usize)
        })
    }
}

// === impl Places ===

impl Default for Places {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl Places {
    /// `words`: how many the marks of this block take.
    pub(super) fn put(&mut self, place: u16, words: usize) {
        match self {
            // A rule may come twice in a row, with two values that mean the same.
            Self::Few(places) if places.last() == Some(&place) => {}
            Self::Few(places) if places.len() < words => places.push(place),
            Self::Few(places) => {
                let mut many = vec![0; words].into_boxed_slice();
                for place in places.iter().chain([&place]) {
                    mark(&mut many, *place);
                }
                *self = Self::Many(many);
            }
            Self::Many(many) => mark(many, place),
        }
    }
}
