//! What a URL means, and what is said of a wrong one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;

fn problems(text: &str) -> String {
    RedisUrl::parse(text).unwrap_err().to_string()
}

#[test]
fn every_layout_is_read() {
    let url = RedisUrl::parse("redis://h").unwrap();
    assert_eq!(url.layout, Layout::Single(Address::new("h", 6379)));
    let url = RedisUrl::parse("rediss://:p@[::1]:7000/3?ca=/etc/ca.pem").unwrap();
    assert_eq!((url.db, url.tls.unwrap().ca), (3, Some("/etc/ca.pem".into())));
    assert_eq!(url.layout, Layout::Single(Address::new("::1", 7000)));
    let url = RedisUrl::parse("redis-sentinel://u:p@a,b:1/main/2?sentinel_password=s").unwrap();
    let login = Login { user: None, password: Some("s".into()) };
    let sentinels = vec![Address::new("a", 26379), Address::new("b", 1)];
    assert_eq!(url.layout, Layout::Sentinel { sentinels, name: "main".into(), login });
    assert_eq!((url.db, url.login.user.as_deref()), (2, Some("u")));
    let url = RedisUrl::parse("redis-cluster://a,b?tls=true").unwrap();
    assert_eq!(url.layout, Layout::Cluster(vec![Address::new("a", 6379), Address::new("b", 6379)]));
    assert!(url.tls.is_some());
    assert!(matches!(RedisUrl::parse("redis-ring://a,b/1").unwrap().layout, Layout::Ring(_)));
}

#[test]
fn a_password_is_read_whatever_is_in_it_and_shown_nowhere() {
    for text in ["redis://u:se/cr?et@h:1", "redis://u:se%2Fcr%3Fet@h:1", "redis://:se/cr?et@h"] {
        let url = RedisUrl::parse(text).unwrap();
        assert_eq!(url.login.password.as_deref(), Some("se/cr?et"));
        assert!(!format!("{url} {url:?} {url:#?}").contains("cr"), "{url:?}");
    }
    assert_eq!(RedisUrl::parse("redis://u:x@h:1/2").unwrap().to_string(), "redis://u:***@h:1/2");
    for wrong in ["redis://u:se/cret@h:port", "redis-x://u:se/cret@h", "redis://u:se@cret@,"] {
        assert!(!problems(wrong).contains("cret"), "{}", problems(wrong));
    }
}

#[test]
fn all_problems_are_said_at_once_and_in_words() {
    let said = problems("redis://user@a:0,b/x?tls=maybe&fast=1");
    for part in ["no password", "`a:0`", "number of a database", "tls must be", "`fast`"] {
        assert!(said.contains(part), "{said}");
    }
    assert!(problems("redis://a,b").contains("redis-cluster://"));
    assert!(problems("redis-sentinel://a").contains("names no primary"));
    assert!(problems("redis-cluster://a/1").contains("database 0"));
    assert!(problems("redis-ring://a,a").contains("twice"));
    assert!(problems("redis://a?ca=x").contains("tls=true"));
    assert!(problems("localhost:6379").contains("redis://HOST:PORT"));
    assert!(problems("http://a").contains("unknown scheme"));
}
