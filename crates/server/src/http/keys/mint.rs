//! A new key's text, and all that may be kept of it. The text goes to whoever asked and nowhere else.

use tollkeeper_core::{key_start, key_text};
use tollkeeper_store::KeySecret;
use tollkeeper_wire as wire;
use zeroize::Zeroize;

use crate::keyring::{Keyring, PEPPER_ID};
use crate::status::Refusal;

/// 160 bits: beyond guessing, and still short enough to be copied by hand.
const BYTES: u32 = 20;

/// How a key's text is to be made.
#[derive(Clone, Copy, Debug)]
pub struct Recipe<'a> {
    pub prefix: Option<&'a str>,
    pub byte_length: Option<u32>,
    /// Whether the text is kept sealed, to be shown again.
    pub recoverable: bool,
}

#[derive(Debug)]
pub struct Minted {
    pub text: wire::KeyText<'static>,
    pub secret: KeySecret,
}

/// The key's id comes first, because a sealed text is bound to it.
pub fn mint(keyring: &Keyring, key_id: &str, recipe: Recipe<'_>) -> Result<Minted, Refusal> {
    let byte_length = recipe.byte_length.unwrap_or(BYTES);
    let mut random = vec![0; byte_length as usize];
    getrandom::fill(&mut random).map_err(|error| Refusal::Unexpected(error.to_string()))?;
    let text = key_text(recipe.prefix, &random);
    random.zeroize();
    let sealed = recipe.recoverable.then(|| {
        let sealed = keyring.envelope().seal(key_id, text.as_bytes());
        sealed.ok_or_else(|| Refusal::Unexpected("a key's text could not be sealed".into()))
    });
    let secret = KeySecret {
        hash: keyring.hash(text.as_bytes()),
        pepper_id: PEPPER_ID,
        start: key_start(recipe.prefix, &text),
        prefix: recipe.prefix.map(str::to_owned),
        byte_length: Some(byte_length),
        recoverable: sealed.transpose()?,
    };
    Ok(Minted { text: wire::KeyText::new(text), secret })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_a_key_holds_its_start_and_only_a_recoverable_one_can_be_opened() {
        let keyring = Keyring::derive("0123456789abcdef0123456789abcdef").unwrap();
        let recipe = Recipe { prefix: Some("my_app"), byte_length: None, recoverable: false };
        let minted = mint(&keyring, "key_1", recipe).unwrap();
        let text = minted.text.reveal();
        assert!(tollkeeper_core::key_is_intact(text) && text.starts_with("my_app_"));
        assert_eq!(minted.secret.start, text[.."my_app_".len() + 4]);
        assert_eq!(minted.secret.recoverable, None);
        let kept = mint(&keyring, "key_1", Recipe { recoverable: true, ..recipe }).unwrap();
        let sealed = kept.secret.recoverable.unwrap();
        let opened = keyring.envelope().open("key_1", &sealed).unwrap();
        assert_eq!(opened, kept.text.reveal().as_bytes());
        assert_ne!(text, kept.text.reveal());
    }
}
