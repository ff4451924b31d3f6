//! Durable records behind one API: tenants, root keys, namespaces, overrides and parked cells, in SQLite.
//! It implements the engine's ports and the admin's writes. It never sees a key's text, reads no clock,
//! and is never on the path of a decision whose cells and namespaces are near.

mod bootstrap;
mod directory;
mod error;
mod fault;
mod ids;
mod namespaces;
mod overrides;
mod parked;
mod shelf;
mod sqlite;
mod store;

pub use bootstrap::{BootstrapKey, Bootstrapped, KeyOrigin};
pub use error::StoreError;
pub use fault::Fault;
pub use namespaces::NamespaceRef;
pub use overrides::{OverrideSet, Page};
pub use store::Store;
