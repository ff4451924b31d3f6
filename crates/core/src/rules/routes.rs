//! Endpoint patterns as a tree of their segments: a path is taken down every branch that it fits, and meets the rules
//! of all its patterns on the way, however many others there are.

use super::RequestPath;
use super::hash::Map;
use super::path::Segments;
use super::pattern::{PIECES_MAX, PathPattern, Piece};
use super::places::{Marks, Places};

/// A literal segment of some pattern, by number. Two numbers stand for none.
type Symbol = u32;
const UNHEARD: Symbol = u32::MAX;
const NOT_LITERAL: Symbol = u32::MAX - 1;
const ROOT: u32 = 0;

#[derive(Clone, Debug, Default)]
pub(super) struct Routes {
    symbols: Map<Box<str>, Symbol>,
    nodes: Vec<Node>,
    literals: Map<(u32, Symbol), u32>,
    /// By the node before their first `**` and the literal that they end with.
    tails: Map<(u32, Symbol), Vec<Tail>>,
    deepest: usize,
}

#[derive(Clone, Debug, Default)]
struct Node {
    has_literals: bool,
    has_tails: bool,
    one: Option<u32>,
    /// Rules with a pattern that ends here.
    here: Places,
    /// Rules with a pattern that ends here in `**`.
    below: Places,
}

/// A pattern that goes on behind a `**`: it is compared as a whole.
#[derive(Clone, Debug)]
struct Tail {
    pattern: PathPattern,
    place: u16,
}

/// A path on its way down.
struct Sought<'p> {
    path: &'p RequestPath<'p>,
    /// It has more segments than any pattern before its first `**`.
    longer: bool,
    last: Symbol,
}

// === impl Routes ===

impl Routes {
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub(super) fn put(&mut self, pattern: &PathPattern, place: u16, words: usize) {
        if self.nodes.is_empty() {
            self.nodes.push(Node::default());
        }
        let pieces = pattern.pieces();
        let fixed = pieces.iter().position(|piece| *piece == Piece::Any).unwrap_or(pieces.len());
        self.deepest = self.deepest.max(fixed);
        let end = pieces[..fixed].iter().fold(ROOT, |node, piece| self.child(node, piece));
        let node = &mut self.nodes[end as usize];
        match pieces.len() - fixed {
            0 => node.here.put(place, words),
            1 => node.below.put(place, words),
            _ => {
                node.has_tails = true;
                let last = match pieces.last() {
                    Some(Piece::Literal(text)) => self.symbol(text),
                    _ => NOT_LITERAL,
                };
                let tail = Tail { pattern: pattern.clone(), place };
                self.tails.entry((end, last)).or_default().push(tail);
            }
        }
    }

    fn child(&mut self, parent: u32, piece: &Piece) -> u32 {
        let next = u32::try_from(self.nodes.len()).unwrap_or(UNHEARD);
        let child = match piece {
            Piece::Literal(text) => {
                let symbol = self.symbol(text);
                self.nodes[parent as usize].has_literals = true;
                *self.literals.entry((parent, symbol)).or_insert(next)
            }
            Piece::One | Piece::Any => *self.nodes[parent as usize].one.get_or_insert(next),
        };
        if child == next {
            self.nodes.push(Node::default());
        }
        child
    }

    fn symbol(&mut self, text: &str) -> Symbol {
        let next = u32::try_from(self.symbols.len()).unwrap_or(UNHEARD);
        *self.symbols.entry(text.into()).or_insert(next)
    }

    fn heard(&self, segment: &str) -> Symbol {
        self.symbols.get(segment).copied().unwrap_or(UNHEARD)
    }

    /// Marks every rule that has a pattern which this path matches.
    pub(super) fn mark(&self, path: &RequestPath<'_>, marks: &mut Marks<'_>) {
        let mut symbols = [UNHEARD; PIECES_MAX];
        let mut segments: Segments<'_> = path.segments();
        let mut depth = 0;
        while depth < self.deepest
            && let Some(segment) = segments.next()
        {
            symbols[depth] = self.heard(segment);
            depth += 1;
        }
        let longer = segments.clone().next().is_some();
        let last = match symbols[..depth].last() {
            _ if self.tails.is_empty() => UNHEARD,
            _ if longer => segments.last().map_or(UNHEARD, |segment| self.heard(segment)),
            last => last.copied().unwrap_or(UNHEARD),
        };
        self.descend(ROOT, &symbols[..depth], &Sought { path, longer, last }, marks);
    }

    /// As deep as the patterns are, [`PIECES_MAX`] at most. Each node has one way that leads to it, so none is met twice.
    fn descend(&self, at: u32, ahead: &[Symbol], sought: &Sought<'_>, marks: &mut Marks<'_>) {
        let node = &self.nodes[at as usize];
        marks.add(&node.below);
        if node.has_tails {
            self.mark_tails((at, sought.last), sought, marks);
            self.mark_tails((at, NOT_LITERAL), sought, marks);
        }
        let Some((symbol, ahead)) = ahead.split_first() else {
            if !sought.longer {
                marks.add(&node.here);
            }
            return;
        };
        if let Some(one) = node.one {
            self.descend(one, ahead, sought, marks);
        }
        if node.has_literals
            && *symbol != UNHEARD
            && let Some(child) = self.literals.get(&(at, *symbol))
        {
            self.descend(*child, ahead, sought, marks);
        }
    }

    fn mark_tails(&self, key: (u32, Symbol), sought: &Sought<'_>, marks: &mut Marks<'_>) {
        for tail in self.tails.get(&key).into_iter().flatten() {
            if tail.pattern.matches(sought.path) {
                marks.set(tail.place);
            }
        }
    }
}
