//! Where the end user's key stands: `Authorization: Bearer` or `X-API-Key`. Two different ones are none: somebody on the
//! way would believe the one, and the API behind the other.

use http::HeaderMap;
use http::header::AUTHORIZATION;

use crate::status::Refusal;

const API_KEY: &str = "x-api-key";
const BEARER: &[u8] = b"bearer ";

/// What is no text is no key either.
pub fn key_of(headers: &HeaderMap) -> Result<&str, Refusal> {
    let bearers =
        headers.get_all(AUTHORIZATION).iter().filter_map(|value| bearer(value.as_bytes()));
    let keys = headers.get_all(API_KEY).iter().map(|value| value.as_bytes().trim_ascii());
    let mut given = bearers.chain(keys).filter(|key| !key.is_empty());
    let first = given.next().ok_or(Refusal::GateKeyMissing)?;
    if given.any(|other| other != first) {
        return Err(Refusal::GateKeysDiffer);
    }
    std::str::from_utf8(first).map_err(|_| Refusal::GateKeyMissing)
}

/// Another scheme may belong to the API behind.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, key) = value.split_at_checked(BEARER.len())?;
    scheme.eq_ignore_ascii_case(BEARER).then(|| key.trim_ascii())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use http::HeaderName;

    use super::*;

    fn key(lines: &[(&'static str, &str)]) -> Result<String, Refusal> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(HeaderName::from_static(name), value.parse().unwrap());
        }
        key_of(&headers).map(str::to_owned)
    }

    #[test]
    fn a_key_stands_in_either_header_or_the_same_in_both() {
        for lines in [
            &[("authorization", "Bearer k")][..],
            &[("authorization", "bearer  k ")],
            &[("x-api-key", "k")],
            &[("authorization", "Bearer k"), ("x-api-key", "k")],
            &[("authorization", "Basic dXNlcg=="), ("x-api-key", "k")],
            &[("authorization", "Bearer k"), ("x-api-key", "")],
        ] {
            assert_eq!(key(lines).unwrap(), "k", "{lines:?}");
        }
    }

    #[test]
    fn no_key_and_two_keys_are_told_apart() {
        let none =
            [&[][..], &[("authorization", "Basic dXNlcg==")], &[("authorization", "Bearer ")]];
        for lines in none {
            assert!(matches!(key(lines), Err(Refusal::GateKeyMissing)), "{lines:?}");
        }
        for lines in [
            [("authorization", "Bearer a"), ("x-api-key", "b")],
            [("x-api-key", "a"), ("x-api-key", "b")],
            [("authorization", "Bearer a"), ("authorization", "Bearer b")],
        ] {
            assert!(matches!(key(&lines), Err(Refusal::GateKeysDiffer)), "{lines:?}");
        }
    }
}
