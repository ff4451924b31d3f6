//! What a caller reads after a bad body: every mistake at once, each with its place and its remedy.

use std::borrow::Cow;

use serde_json::{Value, json};
use tollkeeper_wire::{FieldError, LimitRequest, MultiLimitRequest, PeekRequest, parse};

fn limit_body() -> Value {
    json!({"namespace": "api", "identifier": "ann", "limit": 10, "duration": 60_000})
}

fn limit_faults(body: &str) -> Vec<FieldError> {
    parse::<LimitRequest>(body.as_bytes()).expect_err("the body is bad")
}

fn faults_with(field: &str, value: Value) -> Vec<FieldError> {
    let mut body = limit_body();
    body[field] = value;
    limit_faults(&body.to_string())
}

fn only(faults: &[FieldError]) -> (&str, &str, &str) {
    assert_eq!(faults.len(), 1, "{faults:?}");
    (&faults[0].location, &faults[0].message, faults[0].fix.as_deref().unwrap_or_default())
}

#[test]
fn a_good_body_is_borrowed_and_gets_the_defaults() {
    let body = limit_body().to_string();
    let ask: LimitRequest = parse(body.as_bytes()).expect("the body is good");
    assert!(matches!(
        (&ask.namespace, &ask.identifier),
        (Cow::Borrowed("api"), Cow::Borrowed("ann"))
    ));
    assert_eq!(ask, LimitRequest::new("api", "ann", 10, 60_000));
    assert_eq!((ask.cost, ask.algorithm.as_str()), (1, "sliding_window"));
}

#[test]
fn all_faults_of_a_body_are_reported_at_once() {
    let body = json!({"identifier": 7, "limit": 0, "duration": 1.5, "cost": -1, "algorithm": "magic", "on_outage": "deny"});
    let places: Vec<_> =
        limit_faults(&body.to_string()).into_iter().map(|fault| fault.location).collect();
    assert_eq!(
        places,
        [
            "body.namespace",
            "body.identifier",
            "body.limit",
            "body.duration",
            "body.cost",
            "body.algorithm",
            "body.on_outage"
        ]
    );
}

#[test]
fn a_fault_says_what_was_found_and_what_is_expected() {
    assert_eq!(
        only(&faults_with("limit", json!(0))),
        ("body.limit", "0 is out of range.", "Send an integer from 1 to 9007199254740991.")
    );
    assert_eq!(only(&faults_with("cost", json!(-3))).1, "-3 is negative.");
    assert_eq!(only(&faults_with("cost", json!(2.5))).1, "2.5 is not an exact integer.");
    assert_eq!(only(&faults_with("cost", json!(null))).1, "Is null.");
    assert_eq!(
        only(&faults_with("consistency", json!("eventual"))),
        (
            "body.consistency",
            "\"eventual\" is not a known value.",
            "Send one of `exact`, `fast`, `local`."
        )
    );
    assert_eq!(only(&faults_with("identifier", json!("x".repeat(513)))).1, "Has 513 characters.");
    assert_eq!(only(&faults_with("identifier", json!(""))).1, "Has 0 characters.");
}

#[test]
fn the_character_nul_is_refused_where_it_would_be_stored_and_what_only_looks_like_it_is_not() {
    let body = r#"{"namespace":"a\u0000b","identifier":"\u0000","limit":10,"duration":60000}"#;
    assert_eq!(
        only(&limit_faults(body)),
        ("body.namespace", "Holds the character U+0000, which cannot be stored.", "Leave it out.")
    );
    let looks_like_it = body.replace('\\', r"\\");
    let ask: LimitRequest = parse(looks_like_it.as_bytes()).expect("a backslash is a character");
    assert_eq!((&*ask.namespace, &*ask.identifier), (r"a\u0000b", r"\u0000"));
}

#[test]
fn a_missing_field_is_named_with_what_it_should_hold() {
    let mut body = limit_body();
    body.as_object_mut().expect("an object").remove("duration");
    assert_eq!(
        only(&limit_faults(&body.to_string())),
        ("body.duration", "Is required and missing.", "Send an integer from 1000 to 2592000000.")
    );
}

#[test]
fn an_unknown_field_is_named_with_the_nearest_known_one() {
    for (slip, meant) in [
        ("on_outage", "onOutage"),
        ("Cost", "cost"),
        ("algoritm", "algorithm"),
        ("bursts", "burst"),
    ] {
        let faults = faults_with(slip, json!(1));
        let (place, message, fix) = only(&faults);
        assert_eq!(place, format!("body.{slip}"));
        assert_eq!(message, format!("\"{slip}\" is not a known field."));
        assert!(fix.contains(&format!("`{meant}`")), "{fix}");
    }
    assert!(
        only(&faults_with("x", json!(1))).2.starts_with("Remove it. Known fields: `namespace`")
    );
}

#[test]
fn hostile_names_are_shortened_and_escaped() {
    let faults = faults_with(&format!("\u{1b}[31m\n{}", "y".repeat(10_000)), json!(1));
    let (place, message, _) = only(&faults);
    assert!(place.len() < 200 && message.len() < 200);
    assert!(!faults.iter().any(|f| f.message.contains('\u{1b}') || f.location.contains('\n')));
}

#[test]
fn control_characters_and_wide_characters_are_legal_in_identifiers() {
    let body = json!({"namespace": "a\u{1}b", "identifier": "\0".to_owned() + &"🦀".repeat(511), "limit": 1, "duration": 1000}).to_string();
    assert!(parse::<LimitRequest>(body.as_bytes()).is_ok());
}

#[test]
fn faults_in_a_list_carry_the_position() {
    let body = json!([limit_body(), limit_body(), {"namespace": "api", "identifier": "ann", "limit": 10, "duration": 60_000, "cost": "x"}]);
    let faults = parse::<MultiLimitRequest>(body.to_string().as_bytes())
        .expect_err("the third entry is bad");
    assert_eq!(only(&faults).0, "body[2].cost");
}

#[test]
fn a_list_holds_one_to_a_hundred_entries() {
    let refused = |n: usize| {
        parse::<MultiLimitRequest>(json!(vec![limit_body(); n]).to_string().as_bytes()).err()
    };
    assert!(refused(1).is_none() && refused(100).is_none());
    for n in [0, 101, 5_000] {
        let faults = refused(n).expect("too few or too many");
        assert_eq!(only(&faults).1, format!("Has {n} entries."));
    }
}

#[test]
fn at_most_a_hundred_faults_are_reported() {
    let body: serde_json::Map<_, _> = (0..5_000).map(|n| (format!("field{n}"), json!(n))).collect();
    assert_eq!(limit_faults(&Value::Object(body).to_string()).len(), 100);
    let list = json!(vec![json!({}); 100]);
    assert_eq!(
        parse::<MultiLimitRequest>(list.to_string().as_bytes()).expect_err("all bad").len(),
        100
    );
}

#[test]
fn a_sliding_log_is_refused_above_ten_thousand() {
    let mut body = limit_body();
    body["algorithm"] = json!("sliding_log");
    body["limit"] = json!(10_000);
    assert!(parse::<LimitRequest>(body.to_string().as_bytes()).is_ok());
    body["limit"] = json!(10_001);
    assert_eq!(only(&limit_faults(&body.to_string())).0, "body.limit");
    let peek = r#"{"namespace":"a","identifier":"b","limit":10001,"algorithm":"sliding_log"}"#;
    assert_eq!(
        only(&parse::<PeekRequest>(peek.as_bytes()).expect_err("too large")).0,
        "body.limit"
    );
}

#[test]
fn broken_json_is_one_fault_with_line_and_column() {
    for broken in [
        "{\"namespace\":",
        "{\"a\":1,}",
        "nope",
        "{\"limit\": NaN}",
        "{} {}",
        "\u{feff}{}",
        "{\"a\":\"\\ud800\"}",
    ] {
        let faults = limit_faults(broken);
        let (place, message, _) = only(&faults);
        assert_eq!(place, "body");
        assert!(
            message.starts_with("Is not valid JSON") && message.contains("line 1 column"),
            "{broken}: {message}"
        );
    }
    let faults = parse::<LimitRequest>(b"{\"namespace\":\"\xff\xfe\"}").expect_err("not UTF-8");
    assert!(only(&faults).1.starts_with("Is not valid JSON"));
}

#[test]
fn an_empty_body_is_one_fault_that_says_what_to_send() {
    for empty in ["", " \r\n\t"] {
        let faults = limit_faults(empty);
        let (place, message, fix) = only(&faults);
        assert_eq!((place, message), ("body", "Is empty."));
        assert!(fix.contains("`namespace`, `identifier`, `limit`, `duration`"));
    }
}

#[test]
fn deep_nesting_is_one_fault_however_deep_it_goes() {
    for depth in [33, 128, 1_000_000] {
        let faults = limit_faults(&"[".repeat(depth));
        assert_eq!(only(&faults).1, "Nests deeper than 32 levels.");
    }
    let brackets_in_text =
        json!({"namespace": "[\"{".repeat(50), "identifier": "\\", "limit": 1, "duration": 1})
            .to_string();
    assert_eq!(only(&limit_faults(&brackets_in_text)).0, "body.duration");
}

#[test]
fn a_field_sent_twice_is_refused() {
    let body = r#"{"namespace":"a","identifier":"b","limit":1,"limit":1000,"duration":1000}"#;
    let faults = limit_faults(body);
    let (place, message, _) = only(&faults);
    assert_eq!(place, "body");
    assert!(message.contains("duplicate field `limit`"), "{message}");
}

#[test]
fn an_object_spelled_as_a_list_is_refused() {
    assert_eq!(only(&limit_faults(r#"["api","ann",10,60000]"#)).1, "Is a list.");
    let faults = parse::<MultiLimitRequest>(br#"[["api","ann",10,60000]]"#)
        .expect_err("entries are objects");
    assert_eq!(
        only(&faults),
        (
            "body[0]",
            "Is a list.",
            "Send an object with the fields `namespace`, `identifier`, `limit`, `duration`."
        )
    );
}
