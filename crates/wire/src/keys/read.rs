//! `keys.getKey` and `keys.whoami`, and a key as every reading call shows it.

use std::borrow::Cow;

use crate::credits::CreditsReply;
use crate::identity::Identity;
use crate::key_text::{KEY, KeyText};
use crate::keys::{EXPIRES_MS, NAME, NAME_ABOUT, PERMISSIONS, ROLES};
use crate::metadata::{METADATA, Metadata};
use crate::part::Text;
use crate::reply::reply;
use crate::request::request;
use crate::schema::{Chars, Shape};
use crate::spelling::{ID, IP_ALLOWLIST, TIER};
use crate::stored_limit::{LIMIT_REPLIES, RatelimitReply};
use crate::verdict::COUNT;

const START: Shape = Shape::Text(Chars { min: 1, max: 32 });

request! {
    /// Body of `keys.getKey`.
    GetKeyRequest<'a> {
        required key_id "keyId": Text<'a> = ID, "Id of the key.";
        flagged decrypt "decrypt": bool = Shape::Flag, "Whether to show a recoverable key itself. Default false.";
    }
}

request! {
    /// Body of `keys.whoami`.
    WhoamiRequest<'a> {
        required key "key": KeyText<'a> = KEY, "The key itself.";
    }
}

reply! {
    /// Answer of `keys.getKey` and `keys.whoami`, and one row of `apis.listKeys`.
    Key<'a> {
        required key_id "keyId": Cow<'a, str> = ID, "Its id.";
        required start "start": Cow<'a, str> = START, "Prefix and first characters, to recognise it by.";
        required enabled "enabled": bool = Shape::Flag, "Whether it is switched on.";
        required created_at "createdAt": u64 = Shape::Integer(COUNT), "Unix milliseconds.";
        optional name "name": Cow<'a, str> = NAME, NAME_ABOUT;
        optional meta "meta": Metadata<'a> = METADATA, "As it was given.";
        optional updated_at "updatedAt": u64 = Shape::Integer(COUNT), "Unix milliseconds.";
        optional last_used_at "lastUsedAt": u64 = Shape::Integer(COUNT), "Unix milliseconds, to within half a minute.";
        optional expires "expires": u64 = EXPIRES_MS, "When it stops working, unix milliseconds.";
        listed permissions "permissions": Cow<'a, [Box<str>]> = PERMISSIONS, "Its own and those of its roles, sorted.";
        listed roles "roles": Cow<'a, [Box<str>]> = ROLES, "Names of its roles, sorted.";
        optional credits "credits": CreditsReply = CreditsReply::SHAPE, "What it may spend; absent is without end.";
        optional identity "identity": Identity<'a> = Identity::SHAPE, "Whose key it is.";
        optional plaintext "plaintext": KeyText<'a> = KEY, "The key itself, where it is recoverable and was asked for.";
        listed ratelimits "ratelimits": Cow<'a, [RatelimitReply<'a>]> = LIMIT_REPLIES, "Its own limits.";
        optional tier "tier": Cow<'a, str> = TIER, "Which rules apply to it.";
        listed ip_allowlist "ipAllowlist": Cow<'a, [Box<str>]> = IP_ALLOWLIST, "Addresses that may use it; absent is all.";
        flagged signing "signing": bool = Shape::Flag, "Whether its requests have to be signed; absent is false.";
        optional revoked_at "revokedAt": u64 = Shape::Integer(COUNT), "When it was revoked, unix milliseconds.";
        optional revoked_reason "revokedReason": Cow<'a, str> = super::retire::REASON, "Why it was revoked.";
    }
}
