//! Names for URLs, made from names for people.

use crate::{Fault, ids};

/// Long enough to be told apart, short enough to be typed.
const LENGTH_MAX: usize = 48;

/// `My API (test)` becomes `my-api-test`; what has no letter at all is called `unnamed`.
pub(crate) fn slug_of(name: &str) -> String {
    let words =
        name.split(|sign: char| !sign.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut slug = words.collect::<Vec<_>>().join("-").to_ascii_lowercase();
    slug.truncate(LENGTH_MAX);
    if slug.is_empty() { "unnamed".to_owned() } else { slug }
}

/// For a slug that somebody has already.
pub(crate) fn with_tail(slug: &str) -> Result<String, Fault> {
    let random = ids::fresh(slug)?.to_ascii_lowercase();
    let tail: String = random.chars().rev().take(6).collect();
    Ok(format!("{slug}-{tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_has_small_letters_digits_and_single_dashes() {
        for (name, slug) in [
            ("My API (test)", "my-api-test"),
            ("  a--b ", "a-b"),
            ("日本", "unnamed"),
            ("Ünit 7", "nit-7"),
        ] {
            assert_eq!(slug_of(name), slug);
        }
        assert_eq!(slug_of(&"x".repeat(100)).len(), LENGTH_MAX);
    }
}
