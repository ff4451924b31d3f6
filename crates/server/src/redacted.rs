//! A value that must not be seen: it prints as a placeholder and is wiped when dropped.
//! It never compares or formats its content; `expose` is the one, searchable, way to read it.

use std::fmt;

use zeroize::Zeroize;

/// What stands in logs and errors where the content would have been.
const PLACEHOLDER: &str = "[redacted]";

#[derive(Clone)]
pub struct Redacted<T: Zeroize>(T);

impl<T: Zeroize> Redacted<T> {
    pub const fn new(content: T) -> Self {
        Self(content)
    }

    /// Every call of this is a place where a secret leaves its wrapper; keep them few.
    pub const fn expose(&self) -> &T {
        &self.0
    }
}

impl<T: Zeroize> fmt::Debug for Redacted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PLACEHOLDER)
    }
}

impl<T: Zeroize> fmt::Display for Redacted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PLACEHOLDER)
    }
}

impl<T: Zeroize> Drop for Redacted<T> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::Redacted;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use zeroize::Zeroize;

    #[test]
    fn no_format_shows_the_content() {
        let hidden = Redacted::new(String::from("hunter2"));
        let printed = format!("{hidden} {hidden:?} {hidden:#?} {hidden:>40}");
        assert!(!printed.contains("hunter2"), "{printed}");
        assert!(printed.contains("[redacted]"));
        assert_eq!(hidden.expose(), "hunter2");
    }

    struct Watched(Arc<AtomicBool>);

    impl Zeroize for Watched {
        fn zeroize(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    #[test]
    fn the_content_is_wiped_when_dropped() {
        let wiped = Arc::new(AtomicBool::new(false));
        drop(Redacted::new(Watched(Arc::clone(&wiped))));
        assert!(wiped.load(Ordering::SeqCst));
    }
}
