//! What leaves the server: the exact envelope, nothing null, and every reply within its own description.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};
use tollkeeper_wire::{
    Described, Empty, Failure, FieldError, LimitReply, LivenessReply, MultiLimitLine,
    MultiLimitReply, OverrideReply, Pagination, PeekReply, Problem, ResetReply, SetOverrideReply,
    Success,
};

fn described<T: Described + Serialize>(reply: &T, expected: &Value) {
    let value = serde_json::to_value(reply).expect("replies serialize");
    assert_eq!(&value, expected);
    assert_eq!(T::SHAPE.faults(&value), []);
}

fn limit_reply() -> LimitReply<'static> {
    LimitReply {
        success: true,
        limit: 10,
        remaining: 9,
        reset: 1_700_000_000_000,
        override_id: None,
        retry_after_ms: None,
        degraded: false,
    }
}

#[test]
fn replies_omit_what_they_do_not_have_and_fit_their_description() {
    let plain =
        json!({"success": true, "limit": 10, "remaining": 9, "reset": 1_700_000_000_000_u64});
    described(&limit_reply(), &plain);
    let mut full = plain.clone();
    full["overrideId"] = json!("rlor_1");
    full["retryAfterMs"] = json!(250);
    full["degraded"] = json!(true);
    let reply = LimitReply {
        override_id: Some(Cow::Borrowed("rlor_1")),
        retry_after_ms: Some(250),
        degraded: true,
        ..limit_reply()
    };
    described(&reply, &full);

    let line = MultiLimitLine {
        namespace: "api".into(),
        identifier: "ann".into(),
        limit: 10,
        remaining: 0,
        reset: 5,
        passed: false,
        override_id: None,
        retry_after_ms: Some(3),
        degraded: false,
    };
    described(
        &MultiLimitReply { passed: false, limits: vec![line] },
        &json!({"passed": false, "limits": [{"namespace": "api", "identifier": "ann", "limit": 10, "remaining": 0,
            "reset": 5, "passed": false, "retryAfterMs": 3}]}),
    );
    described(
        &OverrideReply {
            override_id: "rlor_1".into(),
            identifier: "a*".into(),
            limit: 0,
            duration: 1000,
        },
        &json!({"overrideId": "rlor_1", "identifier": "a*", "limit": 0, "duration": 1000}),
    );
    described(&SetOverrideReply { override_id: "rlor_1".into() }, &json!({"overrideId": "rlor_1"}));
    described(
        &PeekReply { limit: 10, used: 4, remaining: 6, reset: 9, degraded: false },
        &json!({"limit": 10, "used": 4, "remaining": 6, "reset": 9}),
    );
    described(&ResetReply { cells: 2 }, &json!({"cells": 2}));
    described(&LivenessReply::OK, &json!({"message": "we're cooking"}));
    described(&Empty {}, &json!({}));
}

#[test]
fn a_success_is_meta_and_data_and_a_list_adds_pagination() {
    let plain = serde_json::to_value(Success::new("req_1", Empty {})).expect("serializes");
    assert_eq!(plain, json!({"meta": {"requestId": "req_1"}, "data": {}}));
    let page = Success::new("req_1", [1, 2]).paged(Pagination::continues_at("c"));
    assert_eq!(
        serde_json::to_value(page).expect("serializes"),
        json!({"meta": {"requestId": "req_1"}, "data": [1, 2], "pagination": {"cursor": "c", "hasMore": true}})
    );
    let last = serde_json::to_value(Pagination::last_page()).expect("serializes");
    assert_eq!(last, json!({"hasMore": false}));
}

#[test]
fn a_problem_of_the_400_class_always_carries_a_list_of_errors_and_others_do_not() {
    let body = |status| {
        let problem = Problem::new(status, "https://tollkeeper.dev/errors/x", "Title", "Detail");
        serde_json::to_value(Failure::new("req_1", problem)).expect("serializes")
    };
    assert_eq!(
        body(400),
        json!({"meta": {"requestId": "req_1"}, "error": {"title": "Title", "detail": "Detail", "status": 400,
            "type": "https://tollkeeper.dev/errors/x", "errors": []}})
    );
    assert_eq!(body(404)["error"]["errors"], json!([]));
    assert!(body(500)["error"].get("errors").is_none());
}

#[test]
fn a_client_reads_back_what_the_server_wrote_and_overlooks_what_is_new() {
    let fault = FieldError { location: "body".into(), message: "Is empty.".into(), fix: None };
    let sent =
        Failure::new("req_1", Problem::new(400, "t", "a", "b").with_errors(vec![fault.clone()]));
    let text = serde_json::to_string(&sent).expect("serializes");
    assert!(!text.contains("null"));
    let read: Failure<'static> = serde_json::from_str(&text).expect("reads back");
    assert_eq!(read.error.into_errors(), [fault]);

    let newer = r#"{"meta":{"requestId":"r","region":"eu"},"data":{"success":true,"limit":1,"remaining":0,"reset":1,"more":2}}"#;
    let read: Success<'static, LimitReply<'static>> = serde_json::from_str(newer).expect("reads");
    assert!(read.data.success && !read.data.degraded);
}
