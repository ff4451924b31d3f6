//! What a key is made of when somebody asks for one: its secret as we keep it, and its terms.

use tollkeeper_core::{Cidr, Millis, SealedSecret};
use tollkeeper_decide::KeyHash;

use crate::{Credits, LimitTerms, Store, StoreError, ids};

#[derive(Clone, Debug)]
pub struct NewKey {
    /// From [`Store::fresh_key_id`], where a ciphertext had to be bound to it beforehand.
    pub id: Option<String>,
    pub project_id: String,
    pub secret: KeySecret,
    pub terms: KeyTerms,
}

/// All that is kept of a key's text.
#[derive(Clone)]
pub struct KeySecret {
    pub hash: KeyHash,
    pub pepper_id: i64,
    pub start: String,
    pub prefix: Option<String>,
    pub byte_length: Option<u32>,
    /// The text itself as a ciphertext, of a key that can be shown again.
    pub recoverable: Option<Vec<u8>>,
}

#[derive(Clone, Debug)]
pub struct KeyTerms {
    pub name: Option<String>,
    /// A JSON object as it was given.
    pub meta: Option<String>,
    pub enabled: bool,
    pub expires: Option<Millis>,
    pub ip_allowlist: Vec<Cidr>,
    pub tier: Option<String>,
    /// What its requests have to be signed with, bound to its id.
    pub signing: Option<SealedSecret>,
    /// The identity of this name is made where there is none.
    pub external_id: Option<String>,
    /// `None`: unlimited.
    pub credits: Option<Credits>,
    pub limits: Vec<LimitTerms>,
    /// Slugs; unknown ones are made.
    pub permissions: Vec<String>,
    /// Names or ids; an unknown one is an error.
    pub roles: Vec<String>,
}

// === impl Store ===

impl Store {
    /// For what has to know the id of a key before the key is made.
    pub fn fresh_key_id() -> Result<String, StoreError> {
        Ok(ids::fresh(ids::KEY)?)
    }
}

// === impl KeySecret ===

impl std::fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeySecret").field("start", &self.start).finish_non_exhaustive()
    }
}

// === impl KeyTerms ===

impl Default for KeyTerms {
    /// A key that may be used, for ever, by anybody who has it.
    fn default() -> Self {
        Self {
            name: None,
            meta: None,
            enabled: true,
            expires: None,
            ip_allowlist: Vec::new(),
            tier: None,
            signing: None,
            external_id: None,
            credits: None,
            limits: Vec::new(),
            permissions: Vec::new(),
            roles: Vec::new(),
        }
    }
}
