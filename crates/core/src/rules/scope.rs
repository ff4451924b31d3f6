//! Whose requests share a counter: one scope, or several together.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RuleScope {
    Global,
    Tenant,
    Project,
    User,
    Key,
    Ip,
    Endpoint,
}

/// At least one scope, each once, in the order that they were given.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScopeList(Box<[RuleScope]>);

// === impl RuleScope ===

impl RuleScope {
    pub const ALL: [Self; 7] = [
        Self::Global,
        Self::Tenant,
        Self::Project,
        Self::User,
        Self::Key,
        Self::Ip,
        Self::Endpoint,
    ];

    /// The contract's word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Tenant => "tenant",
            Self::Project => "project",
            Self::User => "user",
            Self::Key => "key",
            Self::Ip => "ip",
            Self::Endpoint => "endpoint",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.word() == word)
    }
}

impl fmt::Display for RuleScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

// === impl ScopeList ===

impl ScopeList {
    /// `None` when it is empty or one stands in it twice.
    pub fn new(scopes: &[RuleScope]) -> Option<Self> {
        let once = scopes.iter().enumerate().all(|(at, scope)| !scopes[..at].contains(scope));
        (once && !scopes.is_empty()).then(|| Self(scopes.into()))
    }

    pub fn as_slice(&self) -> &[RuleScope] {
        &self.0
    }
}

impl From<RuleScope> for ScopeList {
    fn from(scope: RuleScope) -> Self {
        Self(Box::new([scope]))
    }
}

/// `user+endpoint`
impl fmt::Display for ScopeList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, scope) in self.0.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { "+" })?;
            f.write_str(scope.word())?;
        }
        Ok(())
    }
}
