//! The 1,024 fixed tags that cells hash to, and sets of them.

use std::fmt;

/// Cells hash to this many tags; every key of a cell carries its tag as `{tag}`, so that one script finds all in one slot.
pub const TAGS: u16 = 1024;

/// Keys of [`At::Home`] carry this, so that a cluster keeps them together.
pub const HOME: &str = "{home}";

const WORDS: usize = TAGS as usize / 64;

/// Whom a call is for: the server of a tag, or the one fixed server for what the whole fleet shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum At {
    Tag(u16),
    /// The server of keys with [`HOME`] in their name, and of publications.
    Home,
}

/// A set of tags, and whether the home keys belong to it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Tags {
    words: [u64; WORDS],
    home: bool,
}

// === impl At ===

impl At {
    /// Every place there is, in the order of [`At::index`].
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..TAGS).map(Self::Tag).chain([Self::Home])
    }

    pub(crate) const COUNT: usize = TAGS as usize + 1;

    /// Below [`At::COUNT`] for every tag that exists.
    pub(crate) fn index(self) -> usize {
        match self {
            Self::Tag(tag) => usize::from(tag),
            Self::Home => usize::from(TAGS),
        }
    }

    pub(crate) fn exists(self) -> bool {
        self.index() < Self::COUNT && self != Self::Tag(TAGS)
    }
}

// === impl Tags ===

impl Tags {
    pub fn all() -> Self {
        Self { words: [u64::MAX; WORDS], home: true }
    }

    pub fn contains(&self, at: At) -> bool {
        match at {
            At::Tag(tag) => self.word(tag).is_some_and(|word| word & bit(tag) != 0),
            At::Home => self.home,
        }
    }

    /// The tags in it, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        (0..TAGS).filter(|tag| self.contains(At::Tag(*tag)))
    }

    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0 && !self.home
    }

    pub(crate) fn insert(&mut self, at: At) {
        match at {
            At::Tag(tag) => {
                if let Some(word) = self.words.get_mut(usize::from(tag / 64)) {
                    *word |= bit(tag);
                }
            }
            At::Home => self.home = true,
        }
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        At::all().filter(|at| self.contains(*at) && other.contains(*at)).collect()
    }

    pub(crate) fn is_within(&self, other: &Self) -> bool {
        let tags = self.words.iter().zip(&other.words).all(|(mine, theirs)| mine & !theirs == 0);
        tags && (other.home || !self.home)
    }

    fn word(&self, tag: u16) -> Option<u64> {
        self.words.get(usize::from(tag / 64)).copied()
    }
}

impl fmt::Debug for Tags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tags{}", self.len(), if self.home { " and home" } else { "" })
    }
}

impl FromIterator<At> for Tags {
    fn from_iter<I: IntoIterator<Item = At>>(places: I) -> Self {
        let mut tags = Self::default();
        places.into_iter().for_each(|at| tags.insert(at));
        tags
    }
}

fn bit(tag: u16) -> u64 {
    1 << (tag % 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_in_and_nothing_else() {
        let some: Tags =
            [At::Tag(0), At::Tag(63), At::Tag(64), At::Tag(1023)].into_iter().collect();
        assert_eq!(some.iter().collect::<Vec<_>>(), [0, 63, 64, 1023]);
        assert!(!some.contains(At::Home) && !some.contains(At::Tag(1024)));
        assert!(some.is_within(&Tags::all()) && !Tags::all().is_within(&some));
        assert_eq!(Tags::all().len(), usize::from(TAGS));
        let home: Tags = [At::Home].into_iter().collect();
        assert!(!home.is_empty() && !home.is_within(&some));
        assert_eq!(At::all().filter(|at| at.exists()).count(), At::COUNT);
        assert!(!At::Tag(TAGS).exists());
    }
}
