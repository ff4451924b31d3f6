//! The end user's signature: `X-Tollkeeper-Signature: t=<unix ms>,v1=<hex>[,body=<hex>]`, over the original request.
//! What is not spelled so, or stands there twice, is no signature: a key that wants one refuses the request then.

use http::HeaderMap;

use super::Original;
use crate::keyring::Keyring;
use crate::signing::{SignedRequest, Spelled};

const HEADER: &str = "x-tollkeeper-signature";

pub fn signature_of<'a>(
    headers: &HeaderMap,
    original: &'a Original<'_>,
    keyring: &'a Keyring,
) -> Option<Box<SignedRequest<'a>>> {
    let mut lines = headers.get_all(HEADER).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return None };
    // Bytes that are no text read alike, whichever they are: nobody can have signed these and no others.
    if original.uri.contains(char::REPLACEMENT_CHARACTER) {
        return None;
    }
    let spelled = spelled(line.to_str().ok()?)?;
    SignedRequest::new(keyring, spelled, Some(&original.method), Some(&original.uri))
}

/// Each part once, in any order, and no others.
fn spelled(line: &str) -> Option<Spelled<'_>> {
    let (mut timestamp, mut value, mut body) = (None, None, None);
    for part in line.split(',') {
        let (name, text) = part.trim_matches([' ', '\t']).split_once('=')?;
        let place = match name {
            "t" => &mut timestamp,
            "v1" => &mut value,
            "body" => &mut body,
            _ => return None,
        };
        if place.replace(text).is_some() {
            return None;
        }
    }
    let digits = timestamp.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    // An empty digest would be none, and its part need not be sent.
    let body_sha256 = match body {
        Some("") => return None,
        given => given,
    };
    Some(Spelled { timestamp: digits.parse().ok()?, value: value?, body_sha256 })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::net::Ipv4Addr;

    use http::HeaderName;

    use super::*;

    const DIGEST: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

    fn is_read(lines: &[&str]) -> bool {
        is_read_for("/", lines)
    }

    fn is_read_for(uri: &str, lines: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(HeaderName::from_static(HEADER), line.parse().unwrap());
        }
        let ip = Ipv4Addr::LOCALHOST.into();
        let original = Original { method: "GET".into(), uri: uri.into(), ip };
        let keyring = Keyring::derive("0123456789abcdef0123456789abcdef").unwrap();
        signature_of(&headers, &original, &keyring).is_some()
    }

    #[test]
    fn a_path_that_is_no_text_cannot_be_signed() {
        let good = format!("t=1,v1={DIGEST}");
        for (uri, is_text) in [(&b"/a?b=c"[..], true), (b"/a?b=\xff", false), (b"/\xfe", false)] {
            let uri = String::from_utf8_lossy(uri);
            assert_eq!(is_read_for(&uri, &[&good]), is_text, "{uri}");
        }
    }

    #[test]
    fn a_signature_is_read_whole_or_not_at_all() {
        for good in [
            format!("t=1,v1={DIGEST}"),
            format!("v1={DIGEST}, t=1"),
            format!("t=1700000000000,v1={DIGEST},body={DIGEST}"),
        ] {
            assert!(is_read(&[&good]), "{good}");
        }
        for bad in [
            String::new(),
            format!("v1={DIGEST}"),
            "t=1".to_owned(),
            format!("t=,v1={DIGEST}"),
            format!("t=-1,v1={DIGEST}"),
            format!("t=+1,v1={DIGEST}"),
            format!("t=99999999999999999999,v1={DIGEST}"),
            format!("t=1,t=2,v1={DIGEST}"),
            format!("t=1,v1={DIGEST},v1={DIGEST}"),
            format!("t=1,v1={DIGEST},v2={DIGEST}"),
            format!("t=1,v1={DIGEST},"),
            format!("t=1,v1={DIGEST},body="),
            format!("t=1,v1={DIGEST},body=abc"),
            format!("t=1;v1={DIGEST}"),
            format!("t=1,v1={DIGEST}0"),
            DIGEST.to_owned(),
        ] {
            assert!(!is_read(&[&bad]), "{bad}");
        }
        let good = format!("t=1,v1={DIGEST}");
        assert!(!is_read(&[]) && !is_read(&[&good, &good]));
    }
}
