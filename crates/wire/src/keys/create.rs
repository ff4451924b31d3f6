//! `keys.createKey`. The answer is the only place where a key that is not recoverable is ever shown.

use std::borrow::Cow;

use crate::credits::Credits;
use crate::key_text::{KEY, KeyText};
use crate::metadata::{METADATA, Metadata};
use crate::part::Text;
use crate::reply::reply;
use crate::request::request;
use crate::roles::ROLE;
use crate::schema::{Chars, Described, Shape, Whole};
use crate::signature::{SIGNING, SIGNING_ABOUT};
use crate::spelling::{EXTERNAL_ID, ID, IP_ALLOWLIST, PERMISSION_SLUG, PREFIX, TIER};
use crate::stored_limit::{LIMITS, NAMES_DIFFER, RatelimitRequest, limit_names_differ};

pub const KEY_NAME: Chars = Chars { min: 1, max: 255 };
pub const BYTE_LENGTH: Whole = Whole { min: 16, max: 255 };
/// Until the end of the year 2099, in unix milliseconds.
pub const EXPIRES: Whole = Whole { min: 0, max: 4_102_444_800_000 };

pub(crate) const NAME: Shape = Shape::Text(KEY_NAME);
pub(crate) const EXPIRES_MS: Shape = Shape::Integer(EXPIRES);
pub(crate) const PERMISSIONS: Shape = Shape::List { of: &PERMISSION_SLUG, min: 0, max: 1_000 };
pub(crate) const ROLES: Shape = Shape::List { of: &ROLE, min: 0, max: 100 };
pub(crate) const NAME_ABOUT: &str = "For people; need not be unique.";

request! {
    /// Body of `keys.createKey`.
    CreateKeyRequest<'a> {
        required api_id "apiId": Text<'a> = ID, "The project that the key opens.";
        optional prefix "prefix": Text<'a> = PREFIX, "Stands before the key, joined by `_`.";
        optional name "name": Text<'a> = NAME, NAME_ABOUT;
        optional byte_length "byteLength": u64 = Shape::Integer(BYTE_LENGTH), "Random bytes of the key. Default 20.";
        optional external_id "externalId": Text<'a> = EXTERNAL_ID,
            "Whose key it is, by your own name; the identity is made if it is new.";
        optional meta "meta": Metadata<'a> = METADATA, "Anything you want back with every verification.";
        optional roles "roles": Vec<Text<'a>> = ROLES, "Names of existing roles.";
        optional permissions "permissions": Vec<Text<'a>> = PERMISSIONS, "Direct permissions; new ones are made.";
        optional expires "expires": u64 = EXPIRES_MS, "When it stops working, unix milliseconds.";
        optional credits "credits": Credits = Credits::SHAPE, "What it may spend in total. Default: without end.";
        optional ratelimits "ratelimits": Vec<RatelimitRequest<'a>> = LIMITS, "Its own limits.";
        optional enabled "enabled": bool = Shape::Flag, "Default true.";
        flagged recoverable "recoverable": bool = Shape::Flag,
            "Whether the key is kept encrypted, to be shown again. Default false.";
        optional tier "tier": Text<'a> = TIER, "Which rules apply to it. Default: the identity's.";
        optional ip_allowlist "ipAllowlist": Vec<Text<'a>> = IP_ALLOWLIST,
            "Addresses and ranges that may use it. Default: all.";
        optional signing "signing": KeyText<'a> = SIGNING, SIGNING_ABOUT;
    }
    rules {
        NAMES_DIFFER => |it| limit_names_differ(it.ratelimits.as_ref());
    }
}

reply! {
    /// Answer of `keys.createKey`, `keys.rerollKey` and their likes for root keys.
    KeyReply<'a> {
        required key_id "keyId": Cow<'a, str> = ID, "Id of the new key.";
        required key "key": KeyText<'a> = KEY, "The key itself. It is not shown again.";
    }
}
