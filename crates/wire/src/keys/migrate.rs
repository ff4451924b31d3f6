//! `keys.migrateKeys`: keys that were made elsewhere, brought in by their hashes so that nobody has to change theirs.

use std::borrow::Cow;

use crate::credits::Credits;
use crate::key_text::KeyText;
use crate::keys::{EXPIRES_MS, NAME, NAME_ABOUT, PERMISSIONS, ROLES};
use crate::metadata::{METADATA, Metadata};
use crate::part::Text;
use crate::reply::reply;
use crate::request::request;
use crate::schema::{Chars, Described, Shape};
use crate::signature::{SIGNING, SIGNING_ABOUT};
use crate::spelling::{EXTERNAL_ID, ID, IP_ALLOWLIST, KEY_HASH, TIER};
use crate::stored_limit::{LIMITS, NAMES_DIFFER, RatelimitRequest, limit_names_differ};

pub const MIGRATE_MAX: usize = 100;

/// The one reason that is none to worry about: an import may be run again.
pub const KNOWN_ALREADY: &str =
    "There is a key with this hash already, or it stands in the list twice.";

pub(crate) const MIGRATION_ID: Shape = Shape::Text(Chars { min: 1, max: 256 });
const HASH_ABOUT: &str = "SHA-256 of the key in hexadecimal or base64.";

request! {
    /// One key of `keys.migrateKeys`.
    MigratingKey<'a> {
        required hash "hash": Text<'a> = KEY_HASH, HASH_ABOUT;
        optional name "name": Text<'a> = NAME, NAME_ABOUT;
        optional external_id "externalId": Text<'a> = EXTERNAL_ID, "Whose key it is, by your own name.";
        optional meta "meta": Metadata<'a> = METADATA, "Anything you want back with every verification.";
        optional roles "roles": Vec<Text<'a>> = ROLES, "Names of existing roles.";
        optional permissions "permissions": Vec<Text<'a>> = PERMISSIONS, "Direct permissions; new ones are made.";
        optional expires "expires": u64 = EXPIRES_MS, "When it stops working, unix milliseconds.";
        optional enabled "enabled": bool = Shape::Flag, "Default true.";
        optional credits "credits": Credits = Credits::SHAPE, "What it may spend in total. Default: without end.";
        optional ratelimits "ratelimits": Vec<RatelimitRequest<'a>> = LIMITS, "Its own limits.";
        optional tier "tier": Text<'a> = TIER, "Which rules apply to it. Default: the identity's.";
        optional ip_allowlist "ipAllowlist": Vec<Text<'a>> = IP_ALLOWLIST,
            "Addresses and ranges that may use it. Default: all.";
        optional signing "signing": KeyText<'a> = SIGNING, SIGNING_ABOUT;
    }
    rules {
        NAMES_DIFFER => |it| limit_names_differ(it.ratelimits.as_ref());
    }
}

request! {
    /// Body of `keys.migrateKeys`.
    MigrateKeysRequest<'a> {
        required migration_id "migrationId": Text<'a> = MIGRATION_ID, "Your name for this migration.";
        required api_id "apiId": Text<'a> = ID, "The project that the keys open.";
        required keys "keys": Vec<MigratingKey<'a>> =
            Shape::List { of: &MigratingKey::SHAPE, min: 1, max: MIGRATE_MAX }, "The keys, by their hashes.";
    }
}

reply! {
    /// A key that was brought in.
    MigratedKey<'a> {
        required hash "hash": Cow<'a, str> = KEY_HASH, "As it was given.";
        required key_id "keyId": Cow<'a, str> = ID, "Its id from now on.";
    }
}

reply! {
    /// A key that was not brought in.
    UnmigratedKey<'a> {
        required hash "hash": Cow<'a, str> = KEY_HASH, "As it was given.";
        required reason "reason": Cow<'a, str> = Shape::Text(Chars { min: 1, max: 512 }), "What is wrong, in a sentence.";
    }
}

reply! {
    /// Answer of `keys.migrateKeys`.
    MigrateKeysReply<'a> {
        required migrated "migrated": Vec<MigratedKey<'a>> =
            Shape::List { of: &MigratedKey::SHAPE, min: 0, max: MIGRATE_MAX }, "Keys that were brought in.";
        required failed "failed": Vec<Cow<'a, str>> =
            Shape::List { of: &KEY_HASH, min: 0, max: MIGRATE_MAX }, "Hashes of keys that were not brought in, as they were given.";
        optional reasons "reasons": Vec<UnmigratedKey<'a>> =
            Shape::List { of: &UnmigratedKey::SHAPE, min: 1, max: MIGRATE_MAX }, "Why, for each of them. Absent where none failed.";
    }
}
