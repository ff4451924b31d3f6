//! What a shared cell is called: the same on every node, and never by a random id.

use std::hash::Hasher;
use std::sync::Arc;

use siphasher::sip::SipHasher13;

/// The first part of a cell's name, shared by all cells of a namespace or of an owner of limits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope {
    pub tenant: Arc<str>,
    /// A namespace's name, or an owner's id, or a rule's limit.
    pub space: Arc<str>,
    /// The limits of a key, an identity or a rule, and not of a namespace.
    pub of_owner: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CellName {
    pub scope: Arc<Scope>,
    pub identifier: Box<str>,
}

// === impl Scope ===

impl Scope {
    pub fn namespace(tenant: &str, name: &str) -> Self {
        Self { tenant: tenant.into(), space: name.into(), of_owner: false }
    }

    pub fn owner(tenant: &str, id: &str) -> Self {
        Self { tenant: tenant.into(), space: id.into(), of_owner: true }
    }

    /// The limit `rule/limit`, counted by these scopes. No id has a colon in it, so none can be taken for it.
    pub fn rule(tenant: &str, scopes: &str, name: &str) -> Self {
        Self::owner(tenant, &format!("rule:{scopes}:{name}"))
    }
}

// === impl CellName ===

impl CellName {
    pub fn new(scope: &Arc<Scope>, identifier: &str) -> Self {
        Self { scope: Arc::clone(scope), identifier: identifier.into() }
    }

    /// Of this scope, and of this identifier where one is named?
    pub fn is_among(&self, scope: &Scope, identifier: Option<&str>) -> bool {
        *self.scope == *scope && identifier.is_none_or(|one| *one == *self.identifier)
    }

    /// One of 1,024 tags, the same on every node: cells of one tag live on one server. The hash is no secret, but
    /// nothing of the name itself decides where the cell goes.
    #[allow(clippy::cast_possible_truncation, reason = "a remainder below 1,024")]
    pub fn tag(&self) -> u16 {
        let mut hasher = SipHasher13::new_with_keys(0, 0);
        hasher.write_u8(u8::from(self.scope.of_owner));
        for part in [&*self.scope.tenant, &*self.scope.space, &*self.identifier] {
            hasher.write_u64(part.len() as u64);
            hasher.write(part.as_bytes());
        }
        (hasher.finish() % 1024) as u16
    }
}
