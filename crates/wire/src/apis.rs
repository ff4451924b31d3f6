//! `apis.*`: the contract's view of a project, and the list of its keys.

use std::borrow::Cow;

use crate::page::{CURSOR_ABOUT, KEY_CURSOR, LIMIT_ABOUT, PAGE_LIMIT};
use crate::part::Text;
use crate::reply::reply;
use crate::request::request;
use crate::schema::{Chars, Shape};
use crate::spelling::{EXTERNAL_ID, ID};

pub const API_NAME: Chars = Chars { min: 3, max: 256 };

pub(crate) const NAME: Shape = Shape::Text(API_NAME);
pub(crate) const NAME_ABOUT: &str = "For people; need not be unique.";
const API_ABOUT: &str = "Id of the project.";

request! {
    /// Body of `apis.createApi`.
    CreateApiRequest<'a> {
        required name "name": Text<'a> = NAME, NAME_ABOUT;
    }
}

reply! {
    /// Answer of `apis.createApi`.
    CreateApiReply<'a> {
        required api_id "apiId": Cow<'a, str> = ID, "Id of the new project.";
    }
}

request! {
    /// Body of `apis.getApi`, `apis.deleteApi` and `projects.delete`, which ask alike.
    GetApiRequest<'a> {
        required api_id "apiId": Text<'a> = ID, API_ABOUT;
    }
}

pub type DeleteApiRequest<'a> = GetApiRequest<'a>;

reply! {
    /// Answer of `apis.getApi`.
    Api<'a> {
        required id "id": Cow<'a, str> = ID, API_ABOUT;
        required name "name": Cow<'a, str> = NAME, NAME_ABOUT;
    }
}

request! {
    /// Body of `apis.listKeys`.
    ListKeysRequest<'a> {
        required api_id "apiId": Text<'a> = ID, API_ABOUT;
        optional limit "limit": u64 = PAGE_LIMIT, LIMIT_ABOUT;
        optional cursor "cursor": Text<'a> = KEY_CURSOR, CURSOR_ABOUT;
        optional external_id "externalId": Text<'a> = EXTERNAL_ID, "Only keys of this identity.";
        flagged decrypt "decrypt": bool = Shape::Flag, "Whether to show recoverable keys themselves. Default false.";
        flagged revalidate_keys_cache "revalidateKeysCache": bool = Shape::Flag,
            "Accepted for compatibility; the list is never cached.";
    }
}
