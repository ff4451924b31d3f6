//! The client against real sockets: a stub that answers one prepared text per connection and keeps what it was sent.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tollkeeper_client::wire::{
    Code, CreditsPatch, DeleteIdentityRequest, DeleteOverrideRequest, KeyText, LimitRequest,
    ListOverridesRequest, ListRootKeysRequest, Patch, PeekRequest, UpdateKeyRequest,
    VerifyKeyRequest, WhoamiRequest,
};
use tollkeeper_client::{Client, ClientError, Secret};

const ROOT_KEY: &str = "root-key-of-sixteen-or-more";

struct Stub {
    url: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Stub {
    async fn answering(status: &'static str, body: impl Into<String>) -> Self {
        let body = body.into();
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        Self::raw(format!("{head}{body}")).await
    }

    async fn raw(answer: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let request = read_request(&mut socket).await;
                kept.lock().expect("unpoisoned").push(request);
                let _ = socket.write_all(answer.as_bytes()).await;
            }
        });
        Self { url, seen }
    }

    fn client(&self) -> Client {
        Client::new(&self.url, Secret::new(ROOT_KEY)).expect("usable settings")
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().expect("unpoisoned").clone()
    }
}

async fn read_request(socket: &mut tokio::net::TcpStream) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        let count = socket.read(&mut buffer).await.expect("readable");
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if count == 0 || body.len() >= length.map_or(0, |length| length.parse().expect("a number"))
        {
            return text;
        }
    }
}

fn ask() -> LimitRequest<'static> {
    LimitRequest::new("api", "ann", 10, 60_000)
}

#[tokio::test]
async fn a_limit_is_posted_with_the_root_key_and_its_answer_read() {
    let data = r#"{"meta":{"requestId":"req_1"},"data":{"success":false,"limit":10,"remaining":2,"reset":99,"retryAfterMs":7}}"#;
    let stub = Stub::answering("200 OK", data).await;
    let reply = stub.client().limit(&ask()).await.expect("answered");
    assert_eq!(
        (reply.success, reply.remaining, reply.retry_after_ms, reply.degraded),
        (false, 2, Some(7), false)
    );

    let request = stub.seen().remove(0);
    assert!(request.starts_with("POST /v2/ratelimit.limit HTTP/1.1\r\n"), "{request}");
    assert!(request.contains(&format!("authorization: Bearer {ROOT_KEY}\r\n")));
    assert!(request.contains("content-type: application/json\r\n"));
    assert!(
        request.ends_with(
            r#"{"namespace":"api","identifier":"ann","limit":10,"duration":60000,"cost":1}"#
        ),
        "{request}"
    );
}

#[tokio::test]
async fn a_list_hands_back_its_rows_and_where_it_goes_on() {
    let body = r#"{"meta":{"requestId":"r"},"data":[{"overrideId":"rlor_1","identifier":"a*","limit":0,"duration":1000}],"pagination":{"cursor":"next","hasMore":true}}"#;
    let stub = Stub::answering("200 OK", body).await;
    let page =
        stub.client().list_overrides(&ListOverridesRequest::new("api")).await.expect("answered");
    assert_eq!((page.rows[0].identifier.as_ref(), page.next.as_deref()), ("a*", Some("next")));
}

#[tokio::test]
async fn a_refused_key_is_an_answer() {
    let body = r#"{"meta":{"requestId":"r"},"data":{"valid":false,"code":"REVOKED","keyId":"key_1","revokedAt":7,"meta":{"plan":"pro"}}}"#;
    let stub = Stub::answering("200 OK", body).await;
    let ask = VerifyKeyRequest::new(KeyText::new("prod_x"));
    let reply = stub.client().verify_key(&ask).await.expect("answered");
    assert_eq!((reply.valid, reply.code, reply.revoked_at), (false, Code::Revoked, Some(7)));
    assert_eq!(reply.meta.expect("given").as_str(), r#"{"plan":"pro"}"#);
    let request = stub.seen().remove(0);
    assert!(request.starts_with("POST /v2/keys.verifyKey "), "{request}");
    assert!(request.ends_with(r#"{"key":"prod_x"}"#), "{request}");
}

#[tokio::test]
async fn an_update_sends_null_for_what_is_cleared_and_nothing_for_what_stays() {
    let stub = Stub::answering("200 OK", r#"{"meta":{"requestId":"r"},"data":{}}"#).await;
    let credits = CreditsPatch { remaining: Patch::Set(5), ..CreditsPatch::default() };
    let ask = UpdateKeyRequest {
        name: Patch::Clear,
        credits: Patch::Set(credits),
        ..UpdateKeyRequest::new("key_1".into())
    };
    stub.client().update_key(&ask).await.expect("answered");
    let request = stub.seen().remove(0);
    assert!(
        request.ends_with(r#"{"keyId":"key_1","name":null,"credits":{"remaining":5}}"#),
        "{request}"
    );
}

#[tokio::test]
async fn an_answer_without_data_is_read_where_the_contract_has_none() {
    let stub = Stub::answering("200 OK", r#"{"meta":{"requestId":"r"}}"#).await;
    let ask = DeleteIdentityRequest::new("ann".into());
    stub.client().delete_identity(&ask).await.expect("answered");
    let whoami = WhoamiRequest::new(KeyText::new("prod_x"));
    let error = stub.client().whoami(&whoami).await.expect_err("a key is expected");
    assert!(matches!(error, ClientError::Garbled { .. }), "{error:?}");
}

#[tokio::test]
async fn rows_of_root_keys_are_read_with_their_nulls() {
    let body = r#"{"meta":{"requestId":"r"},"data":[{"keyId":"key_1","name":null,"start":"tk_ab","end":"yz","enabled":true,"createdAt":1,"lastUsedAt":0,"expires":null,"permissions":["*.*.*"]}],"pagination":{"hasMore":false}}"#;
    let stub = Stub::answering("200 OK", body).await;
    let page =
        stub.client().list_root_keys(&ListRootKeysRequest::default()).await.expect("answered");
    assert_eq!((page.rows[0].name.as_ref(), page.rows[0].permissions.len()), (None, 1));
    assert_eq!(page.next, None);
    assert!(stub.seen()[0].ends_with("\r\n\r\n{}"), "{:?}", stub.seen());
}

#[tokio::test]
async fn liveness_is_asked_without_the_root_key() {
    let stub =
        Stub::answering("200 OK", r#"{"meta":{"requestId":"r"},"data":{"message":"OK"}}"#).await;
    assert_eq!(stub.client().liveness().await.expect("answered").message, "OK");
    let request = stub.seen().remove(0);
    assert!(request.starts_with("GET /v2/liveness ") && !request.contains(ROOT_KEY));
}

#[tokio::test]
async fn a_refusal_carries_everything_the_server_said() {
    let body = r#"{"meta":{"requestId":"req_9"},"error":{"title":"Bad Request","detail":"Two faults.","status":400,"type":"https://tollkeeper.dev/errors/x","errors":[{"location":"body.limit","message":"0 is out of range."}]}}"#;
    let stub = Stub::answering("400 Bad Request", body).await;
    let error = stub.client().peek(&PeekRequest::new("api", "ann")).await.expect_err("refused");
    assert!(!error.is_transient());
    let ClientError::Refused { status, title, kind, errors, request_id, .. } = error else {
        panic!("{error:?}")
    };
    assert_eq!((status, title.as_str(), request_id.as_str()), (400, "Bad Request", "req_9"));
    assert_eq!(
        (kind.as_str(), errors[0].location.as_str()),
        ("https://tollkeeper.dev/errors/x", "body.limit")
    );
}

#[tokio::test]
async fn an_answer_that_is_not_ours_is_garbled_whatever_its_status() {
    for (status, body) in
        [("200 OK", "<html>"), ("200 OK", "{}"), ("502 Bad Gateway", "<html>"), ("302 Found", "")]
    {
        let stub = Stub::answering(status, body).await;
        let error = stub.client().limit(&ask()).await.expect_err("not Tollkeeper");
        assert!(
            matches!(&error, ClientError::Garbled { status: found, .. } if status.starts_with(&found.to_string())),
            "{error:?}"
        );
        assert_eq!(stub.seen().len(), 1);
    }
}

#[tokio::test]
async fn an_endless_answer_is_cut_off() {
    let stub = Stub::answering("200 OK", " ".repeat(5 << 20)).await;
    let error = stub.client().limit(&ask()).await.expect_err("too long");
    assert!(matches!(error, ClientError::Garbled { .. }), "{error:?}");
}

#[tokio::test]
async fn an_ask_that_may_have_been_charged_is_never_sent_twice() {
    for answer in ["", "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"] {
        let stub = Stub::raw(answer.to_owned()).await;
        let error = stub.client().limit(&ask()).await.expect_err("cut off");
        assert!(matches!(error, ClientError::Unreachable { .. }), "{error:?}");
        assert_eq!(stub.seen().len(), 1);
    }
    let stub = Stub::answering("500 Internal Server Error", "").await;
    stub.client().limit(&ask()).await.expect_err("refused");
    assert_eq!(stub.seen().len(), 1);
}

#[tokio::test]
async fn nobody_listening_is_unreachable_and_names_the_url() {
    let closed = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/", closed.local_addr().expect("bound"));
    drop(closed);
    let client = Client::new(&url, Secret::new(ROOT_KEY)).expect("usable settings");
    let ask = DeleteOverrideRequest { namespace: "api".into(), identifier: "ann".into() };
    let error = client.delete_override(&ask).await.expect_err("nobody there");
    assert!(error.is_transient());
    assert_eq!(error.to_string(), format!("no answer from {url}v2/ratelimit.deleteOverride"));
    assert!(!format!("{error:?}").contains(ROOT_KEY));
}

#[test]
fn settings_that_cannot_work_are_refused_before_anything_is_sent() {
    for url in
        ["", "127.0.0.1:7700", "ftp://host", "http://", "http://user:pass@host", "http://host/?x=1"]
    {
        let error = Client::new(url, Secret::new(ROOT_KEY)).expect_err(url);
        assert!(
            matches!(error, ClientError::Unfit { what: "the server's URL", .. }),
            "{url}: {error:?}"
        );
    }
    let error =
        Client::new("http://127.0.0.1:7700", Secret::new("two\nlines")).expect_err("unfit key");
    assert_eq!(
        error.to_string(),
        "the root key is not usable: expected printable ASCII characters"
    );
}
