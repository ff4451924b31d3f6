//! Caddy's `forward_auth`: the original request stands in `X-Forwarded-*`, which Caddy sets itself, over whatever the
//! client sent.
//!
//! Of `X-Forwarded-For` the last entry counts, and no other. Caddy puts there the address that it saw; what stands before
//! it was said by somebody else, the client included. Behind another proxy that address is the other proxy's: then Caddy
//! has to be told whom to trust, and to send what it found (`header_up X-Forwarded-For {client_ip}`).

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;

use super::Original;
use crate::status::Refusal;

const METHOD: &str = "x-forwarded-method";
const URI: &str = "x-forwarded-uri";
const FOR: &str = "x-forwarded-for";

pub fn original(headers: &HeaderMap) -> Result<Original<'_>, Refusal> {
    let method = only(headers, METHOD)?;
    let upper = method.bytes().any(|byte| byte.is_ascii_lowercase());
    Ok(Original {
        method: if upper { method.to_ascii_uppercase().into() } else { method },
        uri: only(headers, URI)?,
        ip: last_address(headers).ok_or(Refusal::ProxySilent { header: FOR })?,
    })
}

/// Set by the proxy, and so there exactly once. Bytes that are no text are no path that any rule names.
fn only<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<Cow<'a, str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) if !value.is_empty() => Ok(String::from_utf8_lossy(value.as_bytes())),
        _ => Err(Refusal::ProxySilent { header: name }),
    }
}

fn last_address(headers: &HeaderMap) -> Option<IpAddr> {
    let line = headers.get_all(FOR).iter().next_back()?.to_str().ok()?;
    let last = line.rsplit(',').next()?.trim();
    last.parse().ok().or_else(|| last.parse::<SocketAddr>().ok().map(|socket| socket.ip()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use http::HeaderName;

    use super::*;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let line = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), value.parse().unwrap())
        };
        let mut headers = HeaderMap::new();
        for (name, value) in lines.iter().map(line) {
            headers.append(name, value);
        }
        headers
    }

    #[test]
    fn only_the_last_address_counts_however_many_lines_there_are() {
        for (lines, ip) in [
            (&["203.0.113.9"][..], "203.0.113.9"),
            (&["1.1.1.1, 203.0.113.9"], "203.0.113.9"),
            (&["1.1.1.1", "2.2.2.2,203.0.113.9 "], "203.0.113.9"),
            (&["2001:db8::1"], "2001:db8::1"),
            (&["203.0.113.9:4711"], "203.0.113.9"),
            (&["[2001:db8::1]:4711"], "2001:db8::1"),
        ] {
            let lines: Vec<_> = lines.iter().map(|line| (FOR, *line)).collect();
            assert_eq!(last_address(&headers(&lines)), Some(ip.parse().unwrap()), "{lines:?}");
        }
        for nobody in ["", "203.0.113.9,", "203.0.113.9, unknown"] {
            assert_eq!(last_address(&headers(&[(FOR, nobody)])), None, "{nobody}");
        }
    }

    #[test]
    fn a_request_that_is_not_told_of_once_and_whole_is_refused() {
        let whole = [(METHOD, "get"), (URI, "/a?b"), (FOR, "::1")];
        let all = headers(&whole);
        let told = original(&all).unwrap();
        assert_eq!((&*told.method, &*told.uri), ("GET", "/a?b"));
        for at in 0..whole.len() {
            let mut fewer = whole.to_vec();
            let (missing, _) = fewer.remove(at);
            let headers = headers(&fewer);
            let refused = original(&headers).unwrap_err();
            assert!(matches!(refused, Refusal::ProxySilent { header } if header == missing));
        }
        let twice = headers(&[&whole[..], &[(URI, "/other")]].concat());
        assert!(original(&twice).is_err());
    }
}
