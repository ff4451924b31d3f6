//! `rootKeys.*`: the keys with which this API itself is called. Rows carry explicit nulls, which clients insist on here.

use std::borrow::Cow;

use crate::keys::{EXPIRES_MS, NAME, NAME_ABOUT, RerollKeyRequest};
use crate::page::{CURSOR_ABOUT, LIMIT_ABOUT, PAGE_LIMIT, ROOT_KEY_CURSOR};
use crate::part::Text;
use crate::reply::reply;
use crate::request::request;
use crate::schema::{Chars, Shape};
use crate::spelling::{ID, PERMISSION};
use crate::verdict::COUNT;

/// Longer than a key's own permissions may be: there is an id in the middle.
const ROOT_PERMISSION: Shape = Shape::Spelled(Chars { min: 1, max: 512 }, &PERMISSION);
const PERMISSIONS: Shape = Shape::List { of: &ROOT_PERMISSION, min: 0, max: 1_000 };
const PERMISSIONS_ABOUT: &str = "What it may do: `group.id.action`, with `*` for any id.";
const EDGE: Shape = Shape::Text(Chars { min: 0, max: 32 });

request! {
    /// Body of `rootKeys.createKey`.
    CreateRootKeyRequest<'a> {
        required permissions "permissions": Vec<Text<'a>> = PERMISSIONS, PERMISSIONS_ABOUT;
        optional name "name": Text<'a> = NAME, NAME_ABOUT;
        patch expires "expires": u64 = EXPIRES_MS, "When it stops working, unix milliseconds; null: never.";
    }
}

request! {
    /// Body of `rootKeys.listKeys`.
    ListRootKeysRequest<'a> {
        optional limit "limit": u64 = PAGE_LIMIT, LIMIT_ABOUT;
        optional cursor "cursor": Text<'a> = ROOT_KEY_CURSOR, CURSOR_ABOUT;
    }
}

request! {
    /// Body of `rootKeys.updateKey`; what is left out stays.
    UpdateRootKeyRequest<'a> {
        required key_id "keyId": Text<'a> = ID, "Id of the root key.";
        patch name "name": Text<'a> = NAME, NAME_ABOUT;
        optional enabled "enabled": bool = Shape::Flag, "Switches it on or off.";
        optional permissions "permissions": Vec<Text<'a>> = PERMISSIONS, "Replaces all of them.";
    }
}

request! {
    /// Body of `rootKeys.deleteKey`.
    DeleteRootKeyRequest<'a> {
        required key_id "keyId": Text<'a> = ID, "Id of the root key.";
    }
}

pub type RerollRootKeyRequest<'a> = RerollKeyRequest<'a>;

reply! {
    /// One row of `rootKeys.listKeys`.
    RootKey<'a> {
        required key_id "keyId": Cow<'a, str> = ID, "Its id.";
        nullable name "name": Cow<'a, str> = NAME, NAME_ABOUT;
        required start "start": Cow<'a, str> = EDGE, "Its first characters, to recognise it by.";
        required end "end": Cow<'a, str> = EDGE, "Its last characters.";
        required enabled "enabled": bool = Shape::Flag, "Whether it is switched on.";
        required created_at "createdAt": u64 = Shape::Integer(COUNT), "Unix milliseconds.";
        required last_used_at "lastUsedAt": u64 = Shape::Integer(COUNT), "Unix milliseconds; 0: never.";
        nullable expires "expires": u64 = EXPIRES_MS, "Unix milliseconds; null: never.";
        required permissions "permissions": Cow<'a, [Box<str>]> = PERMISSIONS, PERMISSIONS_ABOUT;
    }
}
