//! `identities.*`: the people and companies whose keys these are. An identity is named by its id or by your own name.

use std::borrow::Cow;

use crate::metadata::{METADATA, Metadata};
use crate::page::{CURSOR_ABOUT, IDENTITY_CURSOR, LIMIT_ABOUT, PAGE_LIMIT, PAGE_SEARCH};
use crate::part::Text;
use crate::reply::reply;
use crate::request::request;
use crate::schema::{Chars, Shape};
use crate::spelling::{EXTERNAL_ID, ID};
use crate::stored_limit::{LIMITS, NAMES_DIFFER, RatelimitRequest, limit_names_differ};

const IDENTITY: Shape = Shape::Text(Chars { min: 1, max: 255 });
const IDENTITY_ABOUT: &str = "Its id or your own name for it.";
const META_ABOUT: &str = "Anything you want back with every verification.";

request! {
    /// Body of `identities.createIdentity`.
    CreateIdentityRequest<'a> {
        required external_id "externalId": Text<'a> = EXTERNAL_ID, "Your own name for it.";
        optional meta "meta": Metadata<'a> = METADATA, META_ABOUT;
        optional ratelimits "ratelimits": Vec<RatelimitRequest<'a>> = LIMITS, "Limits that all its keys share.";
    }
    rules {
        NAMES_DIFFER => |it| limit_names_differ(it.ratelimits.as_ref());
    }
}

reply! {
    /// Answer of `identities.createIdentity`.
    CreateIdentityReply<'a> {
        required identity_id "identityId": Cow<'a, str> = ID, "Id of the new identity.";
    }
}

request! {
    /// Body of `identities.getIdentity` and `identities.deleteIdentity`, which ask alike.
    GetIdentityRequest<'a> {
        required identity "identity": Text<'a> = IDENTITY, IDENTITY_ABOUT;
    }
}

pub type DeleteIdentityRequest<'a> = GetIdentityRequest<'a>;

request! {
    /// Body of `identities.listIdentities`.
    ListIdentitiesRequest<'a> {
        optional limit "limit": u64 = PAGE_LIMIT, LIMIT_ABOUT;
        optional cursor "cursor": Text<'a> = IDENTITY_CURSOR, CURSOR_ABOUT;
        optional search "search": Text<'a> = PAGE_SEARCH, "Only identities whose name or id holds this.";
    }
}

request! {
    /// Body of `identities.updateIdentity`.
    UpdateIdentityRequest<'a> {
        required identity "identity": Text<'a> = IDENTITY, IDENTITY_ABOUT;
        optional meta "meta": Metadata<'a> = METADATA, "Replaces all of it.";
        optional ratelimits "ratelimits": Vec<RatelimitRequest<'a>> = LIMITS,
            "Replaces all of them; one that keeps its name keeps its id.";
    }
    rules {
        NAMES_DIFFER => |it| limit_names_differ(it.ratelimits.as_ref());
    }
}
