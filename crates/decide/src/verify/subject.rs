//! Whose request it is: a key, the identity behind it or named with it, or nobody that is known.

use tollkeeper_core::{Facts, IdentityRecord, Millis, Use, Verdict, judge};

use super::VerifyAsk;
use super::made::{identity_of, tier_of};
use crate::loaded_key::{LoadedIdentity, LoadedKey, LoadedLimit};
use crate::ports::Tenant;
use crate::{CellHasher, NamespaceTag};

#[derive(Clone, Copy, Debug)]
pub(super) struct Subject<'a> {
    pub(super) tenant: &'a Tenant,
    pub(super) key: Option<&'a LoadedKey>,
    pub(super) named: Option<&'a LoadedIdentity>,
    /// Whose counters the limits of the request itself are.
    pub(super) owner: &'a NamespaceTag,
}

/// Whose counters they are where neither key nor identity is known. No id has a colon in it.
pub(super) fn stranger(hasher: &CellHasher, ask: &VerifyAsk<'_>) -> NamespaceTag {
    let name = ask.told.external_id.map_or_else(|| "nobody:".to_owned(), |id| format!("user:{id}"));
    hasher.owner(&ask.caller.tenant.slug, &name)
}

// === impl Subject ===

impl<'a> Subject<'a> {
    pub(super) fn identity(&self) -> Option<&'a IdentityRecord> {
        identity_of(self.key, self.named)
    }

    pub(super) fn limits(&self) -> impl Iterator<Item = &'a LoadedLimit> + use<'a> {
        let own = self.key.map_or(&[][..], |key| &key.limits);
        let theirs = self.named.map_or(&[][..], |named| &named.limits);
        let of_name = |name: &str| own.iter().any(|loaded| *loaded.stored.name == *name);
        own.iter().chain(theirs.iter().filter(move |one| !of_name(&one.stored.name)))
    }

    /// The verdict before anything is spent.
    pub(super) fn judge(&self, wanted: &Use<'_>, now: Millis) -> Verdict {
        let verdict = self.key.map_or(Verdict::Valid, |key| judge(&key.record, wanted, now));
        if verdict == Verdict::Valid && self.named.is_some_and(|named| named.record.is_blocked(now))
        {
            return Verdict::Blocked;
        }
        // Nobody has permissions but keys.
        if verdict == Verdict::Valid && self.key.is_none() && wanted.permissions.is_some() {
            return Verdict::InsufficientPermissions;
        }
        verdict
    }

    /// What rules may depend on.
    pub(super) fn facts(&self, ask: &'a VerifyAsk<'_>) -> Facts<'a> {
        let project = self.key.map(|key| &key.record.project);
        let identity = self.identity();
        Facts {
            tier: tier_of(self.key, identity, ask.told.tier),
            method: ask.told.method,
            path: ask.told.path.as_ref(),
            ip: ask.wanted.ip,
            project_id: project.map(|project| &*project.id),
            project_slug: project.map(|project| &*project.slug),
            key_id: self.key.map(|key| &*key.record.id),
            // An identity that nobody stored counts by the name that the request gives.
            user: identity.map(|identity| &*identity.external_id).or(ask.told.external_id),
            tenant: &self.tenant.slug,
        }
    }
}
