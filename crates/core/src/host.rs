//! Host patterns of referers and sources: a name, or `*.name` for it and everything below it.
//! The value to match may be a bare host or a whole URL.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern {
    name: Box<str>,
    below: bool,
}

// === impl HostPattern ===

impl HostPattern {
    /// `None` when it is no host name: empty, or with characters that none has.
    pub fn parse(text: &str) -> Option<Self> {
        let lower = text.trim_end_matches('.').to_ascii_lowercase();
        let (name, below) = match lower.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (lower.as_str(), false),
        };
        let fits = !name.is_empty() && name.len() <= 253 && name.chars().all(is_host_char);
        fits.then(|| Self { name: name.into(), below })
    }

    pub fn matches(&self, host: &str) -> bool {
        if host.eq_ignore_ascii_case(&self.name) {
            return true;
        }
        let Some(at) = host.len().checked_sub(self.name.len()).filter(|at| *at > 0) else {
            return false;
        };
        match host.split_at_checked(at) {
            Some((front, tail)) => {
                self.below && front.ends_with('.') && tail.eq_ignore_ascii_case(&self.name)
            }
            None => false,
        }
    }
}

impl std::fmt::Display for HostPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", if self.below { "*." } else { "" }, self.name)
    }
}

/// The host of a URL, or the text itself where it is none: without scheme, user, port and path.
pub fn host_of(value: &str) -> &str {
    let rest = value.split_once("://").map_or(value, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or(rest);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    // An IPv6 address keeps its colons inside brackets.
    let host = match host.strip_prefix('[') {
        Some(inside) => inside.split(']').next().unwrap_or(inside),
        None => host.split(':').next().unwrap_or(host),
    };
    host.trim_end_matches('.')
}

fn is_host_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':')
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn matches(pattern: &str, value: &str) -> bool {
        HostPattern::parse(pattern).unwrap().matches(host_of(value))
    }

    #[test]
    fn a_name_matches_itself_and_a_star_also_what_is_below() {
        for (pattern, value, expected) in [
            ("example.com", "example.com", true),
            ("example.com", "https://user:pw@Example.COM:8443/path?q#f", true),
            ("example.com", "a.example.com", false),
            ("*.example.com", "a.b.example.com", true),
            ("*.example.com", "example.com", true),
            ("*.example.com", "badexample.com", false),
            ("*.example.com", "example.com.evil.org", false),
            ("example.com", "https://evil.org/?x=example.com", false),
            ("example.com", "https://example.com@evil.org/", false),
            ("example.com", "https://evil.org\\@example.com", false),
            ("::1", "http://[::1]:80/", true),
        ] {
            assert_eq!(matches(pattern, value), expected, "{pattern} {value}");
        }
    }

    #[test]
    fn what_is_no_host_name_is_refused() {
        for text in ["", "*.", "a b", "a/b", "*", "exa*mple.com"] {
            assert!(HostPattern::parse(text).is_none(), "{text}");
        }
    }
}
