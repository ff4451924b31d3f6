//! Secrets at rest: AES-256-GCM under a key that lives outside the database, bound to the row they belong to.
//! A sealed text names the key it was sealed with, so that another one can take over.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use zeroize::Zeroizing;

/// Names today's key in every sealed text.
const KEY_ID: u8 = 1;

pub struct Envelope {
    key: LessSafeKey,
}

// === impl Envelope ===

impl Envelope {
    pub fn new(key: [u8; 32]) -> Option<Self> {
        let key = UnboundKey::new(&AES_256_GCM, &key).ok()?;
        Some(Self { key: LessSafeKey::new(key) })
    }

    /// `row` is what the text belongs to: under another row it cannot be opened.
    pub fn seal(&self, row: &str, text: &[u8]) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).ok()?;
        let mut sealed = Vec::with_capacity(1 + NONCE_LEN + text.len() + AES_256_GCM.tag_len());
        sealed.push(KEY_ID);
        sealed.extend(nonce);
        let mut body = text.to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce);
        self.key.seal_in_place_append_tag(nonce, Aad::from(bound(row)), &mut body).ok()?;
        sealed.append(&mut body);
        Some(sealed)
    }

    /// `None` for anything that was not sealed here for this row.
    pub fn open(&self, row: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (key_id, rest) = sealed.split_first()?;
        let (nonce, body) = rest.split_first_chunk::<NONCE_LEN>()?;
        if *key_id != KEY_ID {
            return None;
        }
        // What is handed out is the caller's to wipe; this copy is ours.
        let mut body = Zeroizing::new(body.to_vec());
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let text = self.key.open_in_place(nonce, Aad::from(bound(row)), &mut body).ok()?;
        Some(text.to_vec())
    }
}

/// What a sealed text is bound to: the key's name and its row.
fn bound(row: &str) -> Vec<u8> {
    let mut bytes = vec![KEY_ID];
    bytes.extend(row.as_bytes());
    bytes
}

impl std::fmt::Debug for Envelope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Envelope(secret)")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_text_opens_only_for_its_row_its_key_and_unchanged() {
        let envelope = Envelope::new([7; 32]).unwrap();
        let sealed = envelope.seal("key_1", b"secret").unwrap();
        assert_eq!(envelope.open("key_1", &sealed).unwrap(), b"secret");
        assert_ne!(envelope.seal("key_1", b"secret").unwrap(), sealed);
        assert_eq!(envelope.open("key_2", &sealed), None);
        assert_eq!(Envelope::new([8; 32]).unwrap().open("key_1", &sealed), None);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(envelope.open("key_1", &changed), None, "byte {at}");
            assert_eq!(envelope.open("key_1", &sealed[..at]), None);
        }
    }
}
