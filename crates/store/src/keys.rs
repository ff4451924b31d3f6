//! Keys as the admin manages them, one file per thing that can be done to one.
//! Only hashes and ciphertexts come in here; a key's text never does.

pub(crate) mod audited;
pub(crate) mod create;
pub(crate) mod grants;
pub(crate) mod import;
pub(crate) mod read;
pub(crate) mod remove;
pub(crate) mod reroll;
pub(crate) mod row;
pub(crate) mod terms;
pub(crate) mod update;
