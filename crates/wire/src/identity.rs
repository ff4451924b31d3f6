//! An identity as every reading call shows it: whose key it is, and what that person or company may do in total.

use std::borrow::Cow;

use crate::metadata::{METADATA, Metadata};
use crate::reply::reply;
use crate::spelling::{EXTERNAL_ID, ID};
use crate::stored_limit::{LIMIT_REPLIES, RatelimitReply};

reply! {
    /// Answer of `identities.getIdentity` and `identities.updateIdentity`, and one row of `identities.listIdentities`.
    written Identity<'a> {
        required id "id": Cow<'a, str> = ID, "Its id.";
        required external_id "externalId": Cow<'a, str> = EXTERNAL_ID, "Your own name for it.";
        optional meta "meta": Metadata<'a> = METADATA, "As it was given.";
        listed ratelimits "ratelimits": Cow<'a, [RatelimitReply<'a>]> = LIMIT_REPLIES,
            "Limits that all its keys share.";
    }
}
