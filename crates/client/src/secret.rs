//! A root key on its way into a header. It is wiped when dropped and never shown, not even by `Debug`.

use std::fmt;

use reqwest::header::HeaderValue;
use zeroize::Zeroizing;

/// A root key.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// The `Authorization` value, or nothing when the text cannot stand in a header.
    pub(crate) fn into_bearer(self) -> Option<HeaderValue> {
        let printable = !self.0.is_empty() && self.0.bytes().all(|b| matches!(b, b' '..=b'~'));
        let text = Zeroizing::new(format!("Bearer {}", self.0.as_str()));
        let mut value = printable.then(|| HeaderValue::from_str(&text).ok()).flatten()?;
        // Keeps the HTTP library from logging it and from remembering it in header compression.
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn a_secret_is_never_shown() {
        let secret = Secret::new("hunter2-hunter2-hunter2");
        assert_eq!(format!("{secret:?}"), "[redacted]");
        assert!(!format!("{:?}", secret.into_bearer()).contains("hunter2"));
    }

    #[test]
    fn a_secret_that_cannot_stand_in_a_header_has_no_bearer() {
        for unfit in ["", "line\nbreak-and-more", "schlüssel-schlüssel"] {
            assert!(Secret::new(unfit).into_bearer().is_none());
        }
    }
}
