//! `keys.*`: the bodies of every call about a key, one file per thing that is done with it.

mod change;
mod create;
mod grant;
mod migrate;
mod read;
mod retire;
mod verified;
mod verify;

pub use change::UpdateKeyRequest;
pub use create::{BYTE_LENGTH, CreateKeyRequest, EXPIRES, KEY_NAME, KeyReply};
pub use grant::{
    AddPermissionsRequest, AddRolesRequest, RemovePermissionsRequest, RemoveRolesRequest,
    SetPermissionsRequest, SetRolesRequest,
};
pub use migrate::{
    KNOWN_ALREADY, MIGRATE_MAX, MigrateKeysReply, MigrateKeysRequest, MigratedKey, MigratingKey,
    UnmigratedKey,
};
pub use read::{GetKeyRequest, Key, WhoamiRequest};
pub use retire::{DeleteKeyRequest, RerollKeyRequest, RevokeKeyReply, RevokeKeyRequest};
pub use verified::{Code, VerifiedLimit, VerifyKeyReply};
pub use verify::{SpendCredits, VerifyKeyRequest, VerifyRatelimit};

pub(crate) use create::{EXPIRES_MS, NAME, NAME_ABOUT, PERMISSIONS, ROLES};
pub(crate) use verify::{METHOD, ORIGIN, PATH, PERMISSION_QUERY, TAGS, VERIFY_LIMITS};
