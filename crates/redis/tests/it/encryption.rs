//! TLS with certificates of our own making: believed by the given file, refused without it or under a wrong name.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use tollkeeper_redis::{CallError, Trouble};
use tollkeeper_testkit::RedisServer;

use crate::{connected, echo, start, until};

/// One certificate that signs itself, for `127.0.0.1` only.
pub(crate) fn certificate(folder: &Path) -> (PathBuf, PathBuf) {
    let (key, certificate) = (folder.join("key.pem"), folder.join("certificate.pem"));
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
        ])
        .args(["-days", "1", "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    (key, certificate)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_encrypted_server_is_used_only_if_its_certificate_is_believed() {
    let folder = TempDir::new().unwrap();
    let (key, certificate) = certificate(folder.path());
    let (key, certificate) = (key.display().to_string(), certificate.display().to_string());
    let spare = RedisServer::start().unwrap();
    let port = spare.port().to_string();
    drop(spare);
    let _server = RedisServer::start_with(&[
        "--tls-port",
        &port,
        "--tls-cert-file",
        &certificate,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &certificate,
        "--tls-auth-clients",
        "no",
    ])
    .unwrap();
    let redis = connected(&format!("rediss://127.0.0.1:{port}?ca={certificate}")).await;
    assert_eq!(echo(&redis, "x").await.unwrap().1, "x");
    for url in [
        format!("rediss://127.0.0.1:{port}"),
        format!("rediss://localhost:{port}?ca={certificate}"),
        format!("rediss://127.0.0.1:{port}?ca=/nowhere.pem"),
    ] {
        let redis = start(&url);
        until("the reason is known", async || {
            matches!(redis.servers()[0].trouble, Some(Trouble::Tls(_)))
        })
        .await;
        assert_eq!(echo(&redis, "x").await, Err(CallError::Away));
    }
}
