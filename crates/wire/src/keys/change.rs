//! `keys.updateKey`: absent keeps, null clears, a value replaces.

use crate::credits::CreditsPatch;
use crate::key_text::KeyText;
use crate::keys::{EXPIRES_MS, NAME, NAME_ABOUT, PERMISSIONS, ROLES};
use crate::metadata::{METADATA, Metadata};
use crate::part::Text;
use crate::request::request;
use crate::schema::{Described, Shape};
use crate::signature::SIGNING;
use crate::spelling::{EXTERNAL_ID, ID, IP_ALLOWLIST, TIER};
use crate::stored_limit::{LIMITS, NAMES_DIFFER, RatelimitRequest, limit_names_differ};

request! {
    /// Body of `keys.updateKey`.
    UpdateKeyRequest<'a> {
        required key_id "keyId": Text<'a> = ID, "Id of the key.";
        patch name "name": Text<'a> = NAME, NAME_ABOUT;
        patch external_id "externalId": Text<'a> = EXTERNAL_ID, "Whose key it is; null: nobody's.";
        patch meta "meta": Metadata<'a> = METADATA, "Replaces all of it.";
        patch expires "expires": u64 = EXPIRES_MS, "When it stops working, unix milliseconds; null: never.";
        patch credits "credits": CreditsPatch = CreditsPatch::SHAPE, "What it may spend; null: without end.";
        patch ratelimits "ratelimits": Vec<RatelimitRequest<'a>> = LIMITS,
            "Replaces all of them; one that keeps its name keeps its id.";
        optional enabled "enabled": bool = Shape::Flag, "Switches it on or off.";
        optional roles "roles": Vec<Text<'a>> = ROLES, "Replaces all of them.";
        optional permissions "permissions": Vec<Text<'a>> = PERMISSIONS, "Replaces the direct ones; new ones are made.";
        patch tier "tier": Text<'a> = TIER, "Which rules apply to it; null: the identity's.";
        patch ip_allowlist "ipAllowlist": Vec<Text<'a>> = IP_ALLOWLIST, "Addresses that may use it; null: all.";
        patch signing "signing": KeyText<'a> = SIGNING,
            "A secret that its requests have to be signed with, never shown; null: they need not be signed.";
    }
    rules {
        NAMES_DIFFER => |it| limit_names_differ(it.ratelimits.value());
    }
}
