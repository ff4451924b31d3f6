//! Signed requests: a key's signing secret is sealed here, and opened only for as long as one signature is checked.
//! It is in no answer, log or cache in the clear.

use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tollkeeper_core::{Millis, SealedSecret, Signature};
use tollkeeper_store::Reseal;
use tollkeeper_wire as wire;
use zeroize::Zeroizing;

use crate::keyring::Keyring;
use crate::status::Refusal;

/// The first line of every signed text, so that a later form cannot be taken for this one.
const VERSION: &str = "tollkeeper-v1";
const DIGEST_BYTES: usize = 32;

pub fn seal(keyring: &Keyring, key_id: &str, secret: &str) -> Result<SealedSecret, Refusal> {
    let sealed = sealed(keyring, key_id, secret.as_bytes());
    sealed.ok_or_else(|| Refusal::Unexpected("a signing secret could not be sealed".into()))
}

/// For a key that takes the place of another.
pub fn reseal(keyring: Arc<Keyring>, from: &str, to: &str) -> Reseal {
    let (from, to) = (from.to_owned(), to.to_owned());
    Reseal::new(move |secret| resealed(&keyring, (&from, &to), secret))
}

fn resealed(
    keyring: &Keyring,
    (from, to): (&str, &str),
    secret: &SealedSecret,
) -> Option<SealedSecret> {
    sealed(keyring, to, &opened(keyring, from, secret)?)
}

fn sealed(keyring: &Keyring, key_id: &str, secret: &[u8]) -> Option<SealedSecret> {
    keyring.envelope().seal(&row(key_id), secret).map(SealedSecret::new)
}

fn opened(keyring: &Keyring, key_id: &str, sealed: &SealedSecret) -> Option<Zeroizing<Vec<u8>>> {
    keyring.envelope().open(&row(key_id), sealed.bytes()).map(Zeroizing::new)
}

/// Apart from the key's own text, which may be sealed for the same key.
fn row(key_id: &str) -> String {
    format!("signing {key_id}")
}

/// What a request says of itself, and the signature over it. Made only where there is one.
#[derive(Debug)]
pub struct SignedRequest<'a> {
    keyring: &'a Keyring,
    made_at: Millis,
    mac: [u8; DIGEST_BYTES],
    /// In lower case, so that one signature has one name.
    value: String,
    method: &'a str,
    path: &'a str,
    /// In lower case; empty where the body was not signed.
    body_sha256: String,
}

/// A signature as it was spelled, whichever way it came.
#[derive(Clone, Copy, Debug)]
pub struct Spelled<'a> {
    pub timestamp: u64,
    pub value: &'a str,
    pub body_sha256: Option<&'a str>,
}

// === impl SignedRequest ===

impl<'a> SignedRequest<'a> {
    /// `None` for digests that are none.
    pub fn new(
        keyring: &'a Keyring,
        spelled: Spelled<'_>,
        method: Option<&'a str>,
        path: Option<&'a str>,
    ) -> Option<Box<Self>> {
        let body_sha256 = spelled.body_sha256.unwrap_or_default();
        if !body_sha256.is_empty() {
            digest(body_sha256)?;
        }
        Some(Box::new(Self {
            keyring,
            made_at: Millis(spelled.timestamp),
            mac: digest(spelled.value)?,
            value: spelled.value.to_ascii_lowercase(),
            method: method.unwrap_or_default(),
            path: path.unwrap_or_default(),
            body_sha256: body_sha256.to_ascii_lowercase(),
        }))
    }

    /// The signature in the body of a call about a request, which the wire has checked.
    pub fn told(
        keyring: &'a Keyring,
        given: Option<&wire::RequestSignature<'_>>,
        method: Option<&'a str>,
        path: Option<&'a str>,
    ) -> Option<Box<Self>> {
        let wire::RequestSignature { timestamp, value, body_sha256 } = given?;
        let body_sha256 = body_sha256.as_deref();
        let spelled = Spelled { timestamp: *timestamp, value, body_sha256 };
        Self::new(keyring, spelled, method, path)
    }

    /// Feeds the signed text to the hash, without ever holding it as one.
    fn hash(&self, mac: &mut Hmac<Sha256>) {
        let timestamp = self.made_at.0.to_string();
        let lines = [VERSION, &timestamp, self.method, self.path, &self.body_sha256];
        for (at, line) in lines.into_iter().enumerate() {
            if at > 0 {
                mac.update(b"\n");
            }
            mac.update(line.as_bytes());
        }
    }
}

impl Signature for SignedRequest<'_> {
    fn made_at(&self) -> Millis {
        self.made_at
    }

    /// A secret that does not open fits nothing: its requests are refused until it is set anew.
    fn fits(&self, key_id: &str, secret: &SealedSecret) -> bool {
        let Some(secret) = opened(self.keyring, key_id, secret) else { return false };
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&secret) else { return false };
        self.hash(&mut mac);
        // In constant time.
        mac.verify_slice(&self.mac).is_ok()
    }

    fn value(&self) -> &str {
        &self.value
    }
}

fn digest(hex: &str) -> Option<[u8; DIGEST_BYTES]> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut bytes = [0; DIGEST_BYTES];
    if hex.len() != 2 * DIGEST_BYTES {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    const SECRET: &str = "a signing secret of 36 characters!!!";
    /// Of `{"amount":5}`.
    const BODY: &str = "7e84cbf0f7a7c92c037058665d66152f8eb8580ab2534e52c877bccceb9cc7bf";
    /// Made with Python's `hmac`; what other languages make must be the same.
    const VALUE: &str = "1332b28baaa85a2f728cf17330f90cf6f4c4936f047a76040c38bab256f89156";
    /// The same without method, path and body.
    const BARE: &str = "3a047fa52eab383c4a5e26ecbb45b1465ada15da9df2987f2879bfe7d05a64d1";

    fn keyring() -> Arc<Keyring> {
        Arc::new(Keyring::derive("0123456789abcdef0123456789abcdef").unwrap())
    }

    fn spelled(value: &str) -> Spelled<'_> {
        Spelled { timestamp: 1_700_000_000_000, value, body_sha256: Some(BODY) }
    }

    #[test]
    fn a_signature_made_elsewhere_fits_its_request_and_no_other() {
        let keyring = keyring();
        let secret = seal(&keyring, "key_1", SECRET).unwrap();
        let fits = |spelled: Spelled<'_>, method, path| {
            SignedRequest::new(&keyring, spelled, method, path).unwrap().fits("key_1", &secret)
        };
        let (method, path) = (Some("POST"), Some("/v1/pay?currency=EUR"));
        assert!(fits(spelled(VALUE), method, path));
        assert!(fits(spelled(&VALUE.to_uppercase()), method, path));
        let upper = BODY.to_uppercase();
        assert!(fits(Spelled { body_sha256: Some(&upper), ..spelled(VALUE) }, method, path));
        let bare = Spelled { body_sha256: None, ..spelled(BARE) };
        assert!(fits(bare, None, None));

        assert!(!fits(spelled(BARE), method, path));
        assert!(!fits(spelled(VALUE), Some("PUT"), path));
        assert!(!fits(spelled(VALUE), method, Some("/v1/pay")));
        assert!(!fits(spelled(VALUE), method, None));
        assert!(!fits(Spelled { timestamp: 1_700_000_000_001, ..spelled(VALUE) }, method, path));
        assert!(!fits(Spelled { body_sha256: None, ..spelled(VALUE) }, method, path));
    }

    #[test]
    fn a_secret_belongs_to_one_key_and_goes_over_to_another_only_by_being_sealed_anew() {
        let keyring = keyring();
        let secret = seal(&keyring, "key_1", SECRET).unwrap();
        assert_eq!(opened(&keyring, "key_1", &secret).unwrap().as_slice(), SECRET.as_bytes());
        assert_eq!(opened(&keyring, "key_2", &secret), None);
        assert_eq!(keyring.envelope().open("key_1", secret.bytes()), None);
        let bare = Spelled { body_sha256: None, ..spelled(BARE) };
        let request = SignedRequest::new(&keyring, bare, None, None).unwrap();
        assert!(request.fits("key_1", &secret) && !request.fits("key_2", &secret));
        let anew = resealed(&keyring, ("key_1", "key_2"), &secret).unwrap();
        assert!(request.fits("key_2", &anew) && !request.fits("key_1", &anew));
        assert_eq!(resealed(&keyring, ("key_2", "key_3"), &secret), None);
    }

    #[test]
    fn what_is_no_digest_is_no_signature() {
        let keyring = keyring();
        let short = &VALUE[1..];
        let long = format!("{VALUE}0");
        let odd = VALUE.replace(|sign: char| sign.is_ascii_digit(), "g");
        for value in ["", short, &long, &odd] {
            assert!(SignedRequest::new(&keyring, spelled(value), None, None).is_none(), "{value}");
        }
        let body = Spelled { body_sha256: Some("abc"), ..spelled(VALUE) };
        assert!(SignedRequest::new(&keyring, body, None, None).is_none());
    }

    #[test]
    fn a_signed_request_does_not_print_secrets() {
        let keyring = keyring();
        let request = SignedRequest::new(&keyring, spelled(VALUE), None, None).unwrap();
        assert!(format!("{request:?}").contains("Keyring(secret)"));
    }
}
