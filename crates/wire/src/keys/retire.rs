//! The ends of a key: deleted and unknown, revoked and known as such, or replaced by a new one.

use crate::keys::EXPIRES_MS;
use crate::part::Text;
use crate::reply::reply;
use crate::request::request;
use crate::schema::{Chars, Shape};
use crate::spelling::ID;
use crate::verdict::COUNT;

pub(crate) const REASON: Shape = Shape::Text(Chars { min: 1, max: 512 });

request! {
    /// Body of `keys.deleteKey`.
    DeleteKeyRequest<'a> {
        required key_id "keyId": Text<'a> = ID, "Id of the key.";
        flagged permanent "permanent": bool = Shape::Flag, "Whether its row goes too. Default false.";
    }
}

request! {
    /// Body of `keys.revoke`.
    RevokeKeyRequest<'a> {
        required key_id "keyId": Text<'a> = ID, "Id of the key.";
        optional reason "reason": Text<'a> = REASON, "For people who ask later why.";
    }
}

reply! {
    /// Answer of `keys.revoke`.
    RevokeKeyReply {
        required revoked_at "revokedAt": u64 = Shape::Integer(COUNT),
            "When it was revoked, unix milliseconds; the first time, if it was revoked before.";
    }
}

request! {
    /// Body of `keys.rerollKey`.
    RerollKeyRequest<'a> {
        required key_id "keyId": Text<'a> = ID, "Id of the key to be replaced.";
        nullable expiration "expiration": u64 = EXPIRES_MS,
            "For how many milliseconds the old key still works; null leaves its expiry as it is.";
    }
}
