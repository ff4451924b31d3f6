//! Whose request it was. A stored identity stands at one place in memory; a name that only a request told is given one
//! here, so that all that is added up for it is added to one cell.

use std::collections::HashSet;
use std::sync::Arc;

#[derive(Clone, Copy, Debug)]
pub enum Whose<'a> {
    Stored(&'a Arc<str>),
    /// Named by the request, and nobody stored it.
    Told(&'a str),
}

/// Names that requests told since the page was last read.
#[derive(Debug, Default)]
pub(super) struct ToldNames(HashSet<Arc<str>>);

// === impl Whose ===

impl Whose<'_> {
    pub fn name(&self) -> Arc<str> {
        match self {
            Self::Stored(name) => Arc::clone(name),
            Self::Told(name) => Arc::from(*name),
        }
    }
}

// === impl ToldNames ===

impl ToldNames {
    /// The one place of this name; nothing once there are `most` others.
    pub(super) fn place(&mut self, name: &str, most: usize) -> Option<Arc<str>> {
        if let Some(known) = self.0.get(name) {
            return Some(Arc::clone(known));
        }
        (self.0.len() < most).then(|| {
            let name: Arc<str> = name.into();
            self.0.insert(Arc::clone(&name));
            name
        })
    }
}
