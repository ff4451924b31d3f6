//! What is asked about a request that a key, an identity or nobody in particular makes.

use std::fmt::Debug;
use std::sync::Arc;

use smallvec::SmallVec;
use tollkeeper_core::{Cost, Limit, Millis, RequestPath, Sharing, Use};

use crate::loaded_key::LoadedKey;
use crate::ports::{KeyHash, RootKey};

#[derive(Debug)]
pub struct VerifyAsk<'a> {
    pub caller: Arc<RootKey>,
    pub reach: Reach,
    /// Absent where a request is checked that carries none.
    pub key: Option<KeyText>,
    pub wanted: Use<'a>,
    pub told: Told<'a>,
    /// Only keys of these projects count; empty: all.
    pub projects: SmallVec<[&'a str; 1]>,
    pub limits: Vec<AskedLimit<'a>>,
    /// What limits are charged that the request does not name: stored ones, quotas and those of rules.
    pub cost: Cost,
    pub credits: u64,
    /// What the request moves, as it says itself: metered, never limited.
    pub bytes: u64,
    pub purpose: Purpose,
    /// It may turn out to be a retry: nothing may be spent before that is known.
    pub once: bool,
    /// The moment that the key is judged for, where it is another one than now.
    pub at: Option<Millis>,
    /// Where it waits if a rule wants it to; absent: whoever asks waits by itself.
    pub waiting: Option<&'a dyn WaitingRoom>,
}

/// Where requests wait whose askers cannot. A place is asked for before anything is spent.
pub trait WaitingRoom: Debug + Send + Sync {
    fn has_place(&self) -> bool;
}

/// Which keys a caller may ask about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Those of projects whose keys it may verify.
    Verify,
    /// All of its tenant: the edge has asked whether it may.
    Tenant,
}

/// What becomes of the decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    #[default]
    Spend,
    /// What would happen: nothing is spent.
    Look,
    /// The same, with a word about every rule.
    Explain,
}

/// What the request says about itself beyond its key. Rules depend on it.
#[derive(Debug, Default)]
pub struct Told<'a> {
    /// Counts where neither key nor identity has one.
    pub tier: Option<&'a str>,
    /// Counts where the key has no identity.
    pub external_id: Option<&'a str>,
    pub method: Option<&'a str>,
    pub path: Option<RequestPath<'a>>,
}

/// A key's text after the edge: two hashes, and whether our checksum fits.
#[derive(Clone, Copy, Debug)]
pub struct KeyText {
    pub ours: KeyHash,
    pub imported: KeyHash,
    pub intact: bool,
}

/// A limit that the request names.
#[derive(Clone, Copy, Debug)]
pub struct AskedLimit<'a> {
    pub name: &'a str,
    pub cost: Cost,
    /// A limit of the request's own; without it the name must be a stored one.
    pub own: Option<Limit>,
    pub sharing: Sharing,
}

// === impl VerifyAsk ===

impl VerifyAsk<'_> {
    /// Is this key the caller's to ask about?
    pub(super) fn covers(&self, key: &LoadedKey) -> bool {
        let (record, project) = (&key.record, &key.record.project.id);
        let in_reach = match self.reach {
            Reach::Verify => self.caller.permissions.allow("api", project, "verify_key"),
            Reach::Tenant => true,
        };
        *record.tenant_id == *self.caller.tenant.id
            && in_reach
            && (self.projects.is_empty() || self.projects.contains(&&**project))
    }
}
