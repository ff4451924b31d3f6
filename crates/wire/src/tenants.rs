//! `tenants.*`: the parties that share one server without seeing each other. Only the operator's root key may ask.

use std::borrow::Cow;

use crate::key_text::{KEY, KeyText};
use crate::page::{CURSOR_ABOUT, LIMIT_ABOUT, PAGE_LIMIT, TENANT_CURSOR};
use crate::part::Text;
use crate::reply::reply;
use crate::request::request;
use crate::schema::{Chars, INTEGER_MAX, Shape, Whole};
use crate::spelling::{ID, PROJECT_SLUG};
use crate::verdict::COUNT;

const NAME: Shape = Shape::Text(Chars { min: 1, max: 256 });
const RATE: Shape = Shape::Integer(Whole { min: 1, max: INTEGER_MAX });
const SLUG_ABOUT: &str = "Its name in URLs, unique on the server.";
const RATE_ABOUT: &str =
    "Calls of the API in a minute, over all nodes; beyond them it answers 429.";

request! {
    /// Body of `tenants.create`.
    CreateTenantRequest<'a> {
        required name "name": Text<'a> = NAME, "For people.";
    }
}

reply! {
    /// Answer of `tenants.create`.
    CreateTenantReply<'a> {
        required tenant_id "tenantId": Cow<'a, str> = ID, "Id of the new tenant.";
        required slug "slug": Cow<'a, str> = PROJECT_SLUG, SLUG_ABOUT;
        required root_key "rootKey": KeyText<'a> = KEY, "Its first root key. It is not shown again.";
    }
}

request! {
    /// Body of `tenants.list`.
    ListTenantsRequest<'a> {
        optional limit "limit": u64 = PAGE_LIMIT, LIMIT_ABOUT;
        optional cursor "cursor": Text<'a> = TENANT_CURSOR, CURSOR_ABOUT;
    }
}

request! {
    /// Body of `tenants.update`; what is left out stays.
    UpdateTenantRequest<'a> {
        required tenant_id "tenantId": Text<'a> = ID, "Id of the tenant.";
        optional enabled "enabled": bool = Shape::Flag, "Switches all its keys and root keys on or off.";
        patch requests_per_minute "requestsPerMinute": u64 = RATE, "Calls of the API in a minute; null: any number.";
    }
}

reply! {
    /// One row of `tenants.list`.
    Tenant<'a> {
        required tenant_id "tenantId": Cow<'a, str> = ID, "Its id.";
        required name "name": Cow<'a, str> = NAME, "For people.";
        required slug "slug": Cow<'a, str> = PROJECT_SLUG, SLUG_ABOUT;
        required enabled "enabled": bool = Shape::Flag, "Whether it is switched on.";
        required created_at "createdAt": u64 = Shape::Integer(COUNT), "Unix milliseconds.";
        optional requests_per_minute "requestsPerMinute": u64 = RATE, RATE_ABOUT;
    }
}
