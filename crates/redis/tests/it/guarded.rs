//! TLS and logins where there are several servers: behind sentinels, in a cluster, on a ring. Every one of them is dialled
//! encrypted and with its login, also those that are only heard of later.

use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::timeout;
use tollkeeper_redis::{CallError, Heard, Redis, Refusal, Trouble};
use tollkeeper_testkit::RedisServer;

use crate::encryption::certificate;
use crate::{PATIENT, connected, count, echo, start, until};

const LOGIN: &str = "tk:right%20word";
const USER: [&str; 7] = ["--user", "tk", "on", ">right word", "~*", "&*", "+@all"];

/// Signs with the key at hand, and puts the certificate where the good one was.
const EXPIRED: &str = "[ca]\ndefault_ca = own\n[own]\ndatabase = index\nprivate_key = key.pem\nnew_certs_dir = .\n\
    default_md = sha256\nrand_serial = yes\ndefault_startdate = 20200101000000Z\n\
    default_enddate = 20200102000000Z\npolicy = any\nx509_extensions = server\n[any]\ncommonName = supplied\n\
    [server]\nsubjectAltName = IP:127.0.0.1\nbasicConstraints = critical,CA:FALSE\n";

/// One certificate for all servers of a test.
struct Guard {
    folder: TempDir,
    key: String,
    certificate: String,
}

/// A server that can be asked by the test in the clear, and by nobody else.
struct Guarded {
    server: RedisServer,
    tls_port: u16,
}

// === impl Guard ===

impl Guard {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let (key, certificate) = certificate(folder.path());
        let (key, certificate) = (key.display().to_string(), certificate.display().to_string());
        Self { folder, key, certificate }
    }

    /// With a certificate that was good for a day, years ago.
    fn expired() -> Self {
        let guard = Self::new();
        let folder = guard.folder.path();
        std::fs::write(folder.join("index"), "").unwrap();
        std::fs::write(folder.join("ca.conf"), EXPIRED).unwrap();
        let run = |args: &[&str]| {
            let done = Command::new("openssl").args(args).current_dir(folder).output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        };
        run(&["req", "-new", "-key", "key.pem", "-subj", "/CN=test", "-out", "request.pem"]);
        run(&[
            "ca",
            "-config",
            "ca.conf",
            "-batch",
            "-selfsign",
            "-notext",
            "-in",
            "request.pem",
            "-out",
            "certificate.pem",
        ]);
        guard
    }

    fn settings(&self, tls_port: u16) -> Vec<(&'static str, String)> {
        vec![
            ("tls-port", tls_port.to_string()),
            ("tls-cert-file", self.certificate.clone()),
            ("tls-key-file", self.key.clone()),
            ("tls-ca-cert-file", self.certificate.clone()),
            ("tls-auth-clients", "no".to_owned()),
            ("tls-replication", "yes".to_owned()),
        ]
    }

    fn start(&self, more: &[&str]) -> Guarded {
        let tls_port = free_port();
        let settings = self.settings(tls_port);
        let mut args: Vec<String> = Vec::new();
        for (name, value) in settings {
            args.extend([format!("--{name}"), value]);
        }
        args.extend(USER.iter().chain(more).map(|arg| (*arg).to_owned()));
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        Guarded { server: RedisServer::start_with(&args).unwrap(), tls_port }
    }

    /// `scheme://login@hosts path?tls…`
    fn url(&self, scheme: &str, login: &str, ports: &[u16], path: &str) -> String {
        let hosts: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let (hosts, ca) = (hosts.join(","), &self.certificate);
        format!("{scheme}://{login}@{hosts}{path}?tls=true&ca={ca}")
    }
}

// === impl Guarded ===

impl Guarded {
    /// Everybody who is connected but for the one that asks and for sentinels: under which name, and over which port.
    fn clients(&self) -> Vec<String> {
        let all = self.server.ask(&["CLIENT", "LIST", "TYPE", "normal"]);
        let told =
            |line: &str| !line.contains("cmd=client|list") && !line.contains("name=sentinel");
        all.lines().filter(|line| told(line)).map(str::to_owned).collect()
    }

    fn assert_guarded(&self) {
        let clients = self.clients();
        let guarded = |line: &String| {
            line.contains("user=tk") && line.contains(&format!("laddr=127.0.0.1:{}", self.tls_port))
        };
        assert!(!clients.is_empty() && clients.iter().all(guarded), "{clients:#?}");
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

async fn until_refused(url: &str, expected: impl Fn(&Trouble) -> bool) {
    let redis = start(url);
    until("the reason is known", async || {
        redis.servers().iter().any(|view| view.trouble.as_ref().is_some_and(&expected))
    })
    .await;
    assert_eq!(count(&redis, 1, PATIENT).await, Err(CallError::Away));
}

async fn hears(redis: &Redis) {
    let mut subscription = redis.subscribe("tk:bus");
    assert_eq!(timeout(PATIENT, subscription.next()).await.unwrap(), Heard::Gap);
    redis.publish("tk:bus", b"hello", PATIENT).await.unwrap();
    let heard = timeout(PATIENT, subscription.next()).await.unwrap();
    assert_eq!(heard, Heard::Message(b"hello".to_vec()));
}

fn no_login(trouble: &Trouble) -> bool {
    matches!(trouble, Trouble::Refused(Refusal::NoAuth(_)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ring_is_dialled_encrypted_and_with_its_login() {
    let guard = Guard::new();
    let servers = [guard.start(&[]), guard.start(&[])];
    let ports = [servers[0].tls_port, servers[1].tls_port];
    let redis = connected(&guard.url("redis-ring", LOGIN, &ports, "")).await;
    for tag in 0..40 {
        assert_eq!(count(&redis, tag, PATIENT).await, Ok(1), "{tag}");
    }
    hears(&redis).await;
    servers.iter().for_each(Guarded::assert_guarded);
    until_refused(&guard.url("redis-ring", "tk:wrong", &ports, ""), no_login).await;
    let unknown = guard.url("redis-ring", LOGIN, &ports, "").replace("ca=", "ca=/nowhere");
    until_refused(&unknown, |trouble| matches!(trouble, Trouble::Tls(_))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_dialled_encrypted_and_with_its_login_also_after_a_redirect() {
    const SLOT: &str = "12304";
    const TAG: u16 = 17;
    let guard = Guard::new();
    let servers: Vec<(Guarded, u16)> = (0..2)
        .map(|_| {
            let bus = free_port();
            let more = ["--cluster-enabled", "yes", "--tls-cluster", "yes", "--cluster-port"];
            (guard.start(&[&more[..], &[&bus.to_string()]].concat()), bus)
        })
        .collect();
    for (place, ((guarded, _), slots)) in
        servers.iter().zip([("0", "8191"), ("8192", "16383")]).enumerate()
    {
        guarded.server.ask(&["CLUSTER", "ADDSLOTSRANGE", slots.0, slots.1]);
        guarded.server.ask(&["CLUSTER", "SET-CONFIG-EPOCH", &(place + 1).to_string()]);
    }
    let (second, bus) = (&servers[1].0, servers[1].1.to_string());
    servers[0].0.server.ask(&["CLUSTER", "MEET", "127.0.0.1", &second.tls_port.to_string(), &bus]);
    for (guarded, _) in &servers {
        guarded.server.ask_until(&["CLUSTER", "INFO"], "cluster_state:ok").unwrap();
        guarded.server.ask_until(&["CLUSTER", "INFO"], "cluster_size:2").unwrap();
    }
    // Only one of them is named; the other is heard of from it.
    let named = [servers[0].0.tls_port];
    let redis = connected(&guard.url("redis-cluster", LOGIN, &named, "")).await;
    for tag in 0..40 {
        assert_eq!(count(&redis, tag, PATIENT).await, Ok(1), "{tag}");
    }
    hears(&redis).await;
    for (guarded, _) in &servers {
        guarded.assert_guarded();
    }
    // The slot moves without its keys; what matters here is that the way there is the same.
    let id = servers[0].0.server.ask(&["CLUSTER", "MYID"]);
    second.server.ask(&["DEL", "count:{17}"]);
    for (guarded, _) in &servers {
        guarded.server.ask(&["CLUSTER", "SETSLOT", SLOT, "NODE", &id]);
    }
    until("the slot is followed", async || count(&redis, TAG, PATIENT).await.is_ok()).await;
    assert_ne!(servers[0].0.server.ask(&["GET", "count:{17}"]), "");
    for (guarded, _) in &servers {
        guarded.assert_guarded();
    }
    until_refused(&guard.url("redis-cluster", "tk:wrong", &named, ""), no_login).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_and_their_primaries_are_dialled_encrypted_each_with_its_own_login() {
    let guard = Guard::new();
    let mut primary = guard.start(&["--repl-diskless-sync-delay", "0"]);
    let port = primary.tls_port.to_string();
    let replica = guard.start(&["--replicaof", "127.0.0.1", &port]);
    replica.server.ask_until(&["INFO", "replication"], "master_link_status:up").unwrap();
    let sentinel = sentinel(&guard, primary.tls_port);
    sentinel.server.ask_until(&["SENTINEL", "REPLICAS", "main"], "slave").unwrap();
    let watched = [sentinel.tls_port];
    let url = |login: &str, password: &str| {
        let url = guard.url("redis-sentinel", login, &watched, "/main");
        format!("{url}&sentinel_user=watcher&sentinel_password={password}")
    };
    let redis = connected(&url(LOGIN, "eye")).await;
    let (first, _) = echo(&redis, "x").await.unwrap();
    hears(&redis).await;
    primary.assert_guarded();
    let heard = sentinel.server.ask(&["CLIENT", "LIST"]);
    assert!(heard.contains("user=watcher"), "{heard}");
    for (wrong, word) in [(url(LOGIN, "wrong"), "WRONGPASS"), (url("tk:wrong", "eye"), "")] {
        until_refused(&wrong, |trouble| match trouble {
            Trouble::NoPrimary(why) => !word.is_empty() && why.contains(word),
            other => word.is_empty() && no_login(other),
        })
        .await;
    }
    primary.server.kill();
    until("the new primary answers", async || {
        echo(&redis, "x").await.is_ok_and(|(run, _)| run != first)
    })
    .await;
    replica.assert_guarded();
}

/// One is enough to decide, for a quorum of one.
fn sentinel(guard: &Guard, primary: u16) -> Guarded {
    let tls_port = free_port();
    let mut lines = vec![
        "bind 127.0.0.1".to_owned(),
        "user watcher on >eye ~* &* +@all".to_owned(),
        format!("sentinel monitor main 127.0.0.1 {primary} 1"),
        "sentinel down-after-milliseconds main 1000".to_owned(),
        "sentinel failover-timeout main 1500".to_owned(),
    ];
    let settings = guard.settings(tls_port);
    lines.extend(settings.iter().map(|(name, value)| format!("{name} {value}")));
    let folder = TempDir::new().unwrap().keep();
    let path = folder.join("sentinel.conf");
    std::fs::write(&path, lines.join("\n")).unwrap();
    let args = vec![path.display().to_string(), "--sentinel".to_owned()];
    Guarded { server: RedisServer::start_in(folder, args).unwrap(), tls_port }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_that_has_expired_is_named_and_asked_for_again_only_with_pauses() {
    let guard = Guard::expired();
    let server = guard.start(&[]);
    let redis = start(&format!("rediss://127.0.0.1:{}?ca={}", server.tls_port, guard.certificate));
    until("the reason is known", async || {
        matches!(&redis.servers()[0].trouble, Some(Trouble::Tls(why)) if why.contains("xpired"))
    })
    .await;
    let before = redis.stats().connects_failed;
    let _ = timeout(Duration::from_secs(2), std::future::pending::<()>()).await;
    let tried = redis.stats().connects_failed - before;
    assert!((1..=40).contains(&tried), "{tried} attempts in two seconds");
    assert_eq!(echo(&redis, "x").await, Err(CallError::Away));
}
