//! `projects.*`: a project with all that belongs to it, of which `apis.*` shows the name only.

use std::borrow::Cow;

use crate::apis::{GetApiRequest, NAME, NAME_ABOUT};
use crate::page::{CURSOR_ABOUT, LIMIT_ABOUT, PAGE_LIMIT, PROJECT_CURSOR};
use crate::part::Text;
use crate::reply::reply;
use crate::request::request;
use crate::schema::{Chars, Shape};
use crate::spelling::{HOSTS, ID, PROJECT_SLUG};
use crate::stored_limit::{
    DEFAULT_LIMITS, DEFAULT_NAMES_DIFFER, DefaultLimit, DefaultLimitReply, default_names_differ,
};
use crate::verdict::COUNT;

/// An id, a slug, or a tenant's slug, `/` and a slug.
const PROJECT: Shape = Shape::Text(Chars { min: 1, max: 255 });
const SLUG_ABOUT: &str = "Its name in URLs, unique in the tenant.";
const REFERERS_ABOUT: &str = "Hosts of pages that may use its keys; none: all.";
const SOURCES_ABOUT: &str = "Hosts of sites and programs that may use its keys; none: all.";
const LIMITS_ABOUT: &str = "Limits of keys to which no other stored limit applies by itself.";
const PROTECTION_ABOUT: &str = "Whether deleting it is refused.";

request! {
    /// Body of `projects.create`.
    CreateProjectRequest<'a> {
        required name "name": Text<'a> = NAME, NAME_ABOUT;
        optional slug "slug": Text<'a> = PROJECT_SLUG, "Its name in URLs. Default: made from the name.";
        optional allowed_referers "allowedReferers": Vec<Text<'a>> = HOSTS, REFERERS_ABOUT;
        optional allowed_sources "allowedSources": Vec<Text<'a>> = HOSTS, SOURCES_ABOUT;
        optional default_limits "defaultLimits": Vec<DefaultLimit<'a>> = DEFAULT_LIMITS,
            "Limits of keys to which no other stored limit applies by itself. Default: 60 per minute and 10000 per day.";
        flagged delete_protection "deleteProtection": bool = Shape::Flag, PROTECTION_ABOUT;
    }
    rules {
        DEFAULT_NAMES_DIFFER => |it| default_names_differ(it.default_limits.as_ref());
    }
}

reply! {
    /// Answer of `projects.create`.
    CreateProjectReply<'a> {
        required api_id "apiId": Cow<'a, str> = ID, "Id of the new project.";
        required slug "slug": Cow<'a, str> = PROJECT_SLUG, SLUG_ABOUT;
    }
}

request! {
    /// Body of `projects.get`.
    GetProjectRequest<'a> {
        required project "project": Text<'a> = PROJECT, "Its id, its slug, or the tenant's slug, `/` and its slug.";
    }
}

request! {
    /// Body of `projects.list`.
    ListProjectsRequest<'a> {
        optional limit "limit": u64 = PAGE_LIMIT, LIMIT_ABOUT;
        optional cursor "cursor": Text<'a> = PROJECT_CURSOR, CURSOR_ABOUT;
    }
}

request! {
    /// Body of `projects.update`; what is left out stays.
    UpdateProjectRequest<'a> {
        required api_id "apiId": Text<'a> = ID, "Id of the project.";
        optional name "name": Text<'a> = NAME, NAME_ABOUT;
        optional slug "slug": Text<'a> = PROJECT_SLUG, SLUG_ABOUT;
        optional allowed_referers "allowedReferers": Vec<Text<'a>> = HOSTS, REFERERS_ABOUT;
        optional allowed_sources "allowedSources": Vec<Text<'a>> = HOSTS, SOURCES_ABOUT;
        optional default_limits "defaultLimits": Vec<DefaultLimit<'a>> = DEFAULT_LIMITS, LIMITS_ABOUT;
        optional delete_protection "deleteProtection": bool = Shape::Flag, PROTECTION_ABOUT;
    }
    rules {
        DEFAULT_NAMES_DIFFER => |it| default_names_differ(it.default_limits.as_ref());
    }
}

pub type DeleteProjectRequest<'a> = GetApiRequest<'a>;

reply! {
    /// Answer of `projects.get`, and one row of `projects.list`.
    Project<'a> {
        required api_id "apiId": Cow<'a, str> = ID, "Its id.";
        required name "name": Cow<'a, str> = NAME, NAME_ABOUT;
        required slug "slug": Cow<'a, str> = PROJECT_SLUG, SLUG_ABOUT;
        required delete_protection "deleteProtection": bool = Shape::Flag, PROTECTION_ABOUT;
        required created_at "createdAt": u64 = Shape::Integer(COUNT), "Unix milliseconds.";
        listed allowed_referers "allowedReferers": Cow<'a, [Box<str>]> = HOSTS, REFERERS_ABOUT;
        listed allowed_sources "allowedSources": Cow<'a, [Box<str>]> = HOSTS, SOURCES_ABOUT;
        listed default_limits "defaultLimits": Vec<DefaultLimitReply<'a>> = DEFAULT_LIMITS, LIMITS_ABOUT;
    }
}
