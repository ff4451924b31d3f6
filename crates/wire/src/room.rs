//! How much an object of the caller's own making may hold. The fast path and the walk over faults measure alike.

use crate::nesting::nests_deeper;

/// Bounds of a free object, all included.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    pub properties_max: usize,
    /// Of its JSON without white space.
    pub bytes_max: usize,
    /// Levels of nesting, its own braces among them.
    pub depth_max: usize,
}

impl Room {
    /// What is too much about an object with so many properties and this compact text.
    pub(crate) fn excess(self, properties: usize, text: &str) -> Option<String> {
        if properties > self.properties_max {
            Some(format!("Has {properties} properties."))
        } else if text.len() > self.bytes_max {
            Some(format!("Has {} bytes.", text.len()))
        } else if nests_deeper(text.as_bytes(), self.depth_max) {
            Some(format!("Nests deeper than {} levels.", self.depth_max))
        } else {
            None
        }
    }
}
