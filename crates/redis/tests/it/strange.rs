//! Answers that a server should never give, or gives on bad days only: each becomes an error of the right kind.

use std::time::Duration;

use tollkeeper_redis::{CallError, Refusal, Trouble};

use crate::fake::Fake;
use crate::{ECHO, PATIENT, start, until};

async fn answered(bytes: &[u8], deadline: Duration) -> CallError {
    let server = Fake { answer: bytes.to_vec(), ..Fake::default() }.start().await;
    let redis = start(&server.url());
    until("it is connected", async || redis.servers()[0].connected).await;
    redis.run(1, ECHO, &[b"k:{1}"], &[], deadline).await.unwrap_err()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_refusal_has_its_kind_and_was_not_applied() {
    for (bytes, refusal) in [
        ("-READONLY You can't write", Refusal::ReadOnly),
        ("-MASTERDOWN Link with MASTER is down", Refusal::ReadOnly),
        ("-OOM command not allowed. script: 0, on @user_script:1.", Refusal::OutOfMemory),
        ("-LOADING Redis is loading", Refusal::Loading),
        ("-TRYAGAIN Multiple keys", Refusal::Moving),
        ("-CLUSTERDOWN Hash slot not served", {
            Refusal::ClusterDown("CLUSTERDOWN Hash slot not served".into())
        }),
        ("-NOAUTH Authentication required.", {
            Refusal::NoAuth("NOAUTH Authentication required.".into())
        }),
        ("-BUSY Redis is busy", Refusal::Other("BUSY Redis is busy".into())),
        ("-MISCONF Errors writing", Refusal::Other("MISCONF Errors writing".into())),
        ("-ERR", Refusal::Other("ERR ".into())),
    ] {
        let failed = answered(format!("{bytes}\r\n").as_bytes(), PATIENT).await;
        assert_eq!(failed, CallError::Refused(refusal));
        assert!(!failed.maybe_applied());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_answer_at_all_is_maybe_applied_and_never_a_panic() {
    for bytes in [
        "-MOVED\r\n",
        "-MOVED x 127.0.0.1:1\r\n",
        "-ASK 1 nowhere\r\n",
        "-WRONGTYPE Operation. script: 0, on @user_script:1.\r\n",
        "?what\r\n",
        ":12x\r\n",
        "*1\r\n",
        "$99999999999999999999\r\n",
        "",
    ] {
        let failed = answered(bytes.as_bytes(), Duration::from_millis(200)).await;
        assert!(failed.maybe_applied(), "{bytes:?} became {failed:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_server_and_one_that_changes_under_the_connection_are_refused_in_words() {
    for (fake, trouble, word) in [
        (Fake { version: "6.2.14", ..Fake::default() }, Trouble::TooOld("6.2.14".into()), "7.0"),
        (Fake { run_ids: vec!["aa", "cc"], ..Fake::default() }, Trouble::Switched, "proxy"),
        (
            Fake { run_ids: vec!["a'b"], ..Fake::default() },
            Trouble::Strange("a run id that is not hexadecimal".into()),
            "run id",
        ),
    ] {
        let server = fake.start().await;
        let redis = start(&server.url());
        until("the reason is known", async || redis.servers()[0].trouble.is_some()).await;
        let said = redis.servers()[0].trouble.clone().unwrap();
        assert!(said == trouble && said.to_string().contains(word), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_said_something_strange_is_replaced() {
    let server = Fake::default().start().await;
    let redis = start(&server.url());
    until("it is connected", async || redis.servers()[0].connected).await;
    server.answer(b"-MOVED\r\n");
    assert!(redis.run(1, ECHO, &[b"k:{1}"], &[], PATIENT).await.is_err());
    server.answer(b"+OK\r\n");
    until("it works again", async || redis.run(1, ECHO, &[b"k:{1}"], &[], PATIENT).await.is_ok())
        .await;
    assert_eq!(redis.servers()[0].generation, 2);
}
