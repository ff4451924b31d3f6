//! Where one server listens, and who we are to it. A password is in no text that this file makes.

use std::fmt;

/// Host and port as they were written; a name is resolved at every connection, never remembered.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    pub host: String,
    pub port: u16,
}

/// User and password of one kind of server. Without a user the password is that of `default`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Login {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
}

// === impl Address ===

impl Address {
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port }
    }

    /// `host:port` as a server writes it in a redirect: an IPv6 address stands there without brackets, and no host
    /// means the one that was asked.
    pub(crate) fn from_redirect(text: &str, asked: &Self) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let port = port.parse().ok()?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        // `?` is what a cluster says of a node whose name it was told to use but does not know.
        let unknown = host.is_empty() || host == "?";
        Some(Self::new(if unknown { asked.host.as_str() } else { host }, port))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

// === impl Login ===

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let password = self.password.as_ref().map(|_| "***");
        f.debug_struct("Login").field("user", &self.user).field("password", &password).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_without_a_host_means_the_server_that_was_asked() {
        let asked = Address::new("10.0.0.1", 6379);
        let to = |text| Address::from_redirect(text, &asked);
        assert_eq!(to(":6381"), Some(Address::new("10.0.0.1", 6381)));
        assert_eq!(to("?:6381"), Some(Address::new("10.0.0.1", 6381)));
        assert_eq!(to("10.0.0.2:6381"), Some(Address::new("10.0.0.2", 6381)));
        assert_eq!(to("2001:db8::1:6381"), Some(Address::new("2001:db8::1", 6381)));
        assert_eq!(to("nonsense"), None);
    }
}
