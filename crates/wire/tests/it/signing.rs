//! Signing secrets and signatures as bodies carry them: every fault is named, and no secret is quoted or printed.

use serde_json::{Value, json};
use tollkeeper_wire::{
    CheckRequest, CreateKeyRequest, FieldError, KeyText, UpdateKeyRequest, VerifyKeyRequest, parse,
};

const DIGEST: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

fn places(faults: &[FieldError]) -> Vec<&str> {
    faults.iter().map(|fault| &*fault.location).collect()
}

#[test]
fn a_signing_secret_is_16_to_512_printable_characters_and_a_bad_one_is_not_quoted() {
    let faults = |signing: &Value| {
        let body = json!({"apiId": "api_1", "signing": signing}).to_string();
        parse::<CreateKeyRequest<'_>>(body.as_bytes()).err().unwrap_or_default()
    };
    for good in ["x".repeat(16), "x".repeat(512), " !\"#$%&'()~ ABCxyz".to_owned()] {
        assert_eq!(faults(&json!(good)), [], "{good}");
    }
    let long = "x".repeat(513);
    for bad in ["", "fifteen letters", &long, "tab\tin a long secret", "ä secret of 16 and more"] {
        let found = faults(&json!(bad));
        assert_eq!(places(&found), ["body.signing"], "{bad}");
        assert!(bad.is_empty() || !format!("{found:?}").contains(bad), "{found:?}");
    }
    assert_eq!(places(&faults(&json!(null))), ["body.signing"]);
    assert_eq!(places(&faults(&json!(1))), ["body.signing"]);
}

#[test]
fn an_update_takes_a_secret_or_null_and_prints_none() {
    let body = r#"{"keyId":"key_1","signing":"a secret of 16 characters"}"#;
    let update: UpdateKeyRequest<'_> = parse(body.as_bytes()).expect("good");
    assert_eq!(update.signing.value().map(KeyText::reveal), Some("a secret of 16 characters"));
    assert!(!format!("{update:?}").contains("a secret"));
    let body = r#"{"keyId":"key_1","signing":null}"#;
    let update: UpdateKeyRequest<'_> = parse(body.as_bytes()).expect("good");
    assert!(update.signing.value().is_none() && !update.signing.is_keep());
}

#[test]
fn everything_wrong_with_a_signature_is_said_at_once() {
    let faults = |signature: &Value| {
        let body = json!({"key": "k", "signature": signature}).to_string();
        let verify = parse::<VerifyKeyRequest<'_>>(body.as_bytes()).err().unwrap_or_default();
        let check = parse::<CheckRequest<'_>>(body.as_bytes()).err().unwrap_or_default();
        assert_eq!(verify, check);
        verify
    };
    assert_eq!(faults(&json!({"timestamp": 1, "value": DIGEST})), []);
    assert_eq!(
        faults(&json!({"timestamp": 1, "value": DIGEST.to_uppercase(), "bodySha256": DIGEST})),
        []
    );
    let all_wrong = json!({"timestamp": -1, "value": "xyz", "bodySha256": "", "more": 1});
    assert_eq!(
        places(&faults(&all_wrong)),
        [
            "body.signature.timestamp",
            "body.signature.value",
            "body.signature.bodySha256",
            "body.signature.more",
        ]
    );
    assert_eq!(places(&faults(&json!({}))), ["body.signature.timestamp", "body.signature.value"]);
    let odd = DIGEST.replace('2', "g");
    assert_eq!(places(&faults(&json!({"timestamp": 1, "value": odd}))), ["body.signature.value"]);
    assert_eq!(places(&faults(&json!("t=1"))), ["body.signature"]);
}
