//! The answer of `keys.verifyKey`. Every verdict is a 200; lists are borrowed from the cached key.

use std::borrow::Cow;

use crate::choice::choice;
use crate::credits::CREDITS;
use crate::identity::Identity;
use crate::keys::{EXPIRES_MS, NAME, NAME_ABOUT, PERMISSIONS, ROLES};
use crate::metadata::{METADATA, Metadata};
use crate::reply::reply;
use crate::schema::{Chars, Shape};
use crate::spelling::ID;
use crate::verdict::COUNT;

choice! {
    /// The verdict on a key. The first eight are the contract's.
    Code {
        Valid = "VALID",
        NotFound = "NOT_FOUND",
        Forbidden = "FORBIDDEN",
        InsufficientPermissions = "INSUFFICIENT_PERMISSIONS",
        UsageExceeded = "USAGE_EXCEEDED",
        RateLimited = "RATE_LIMITED",
        Disabled = "DISABLED",
        Expired = "EXPIRED",
        /// Withdrawn by `keys.revoke`.
        Revoked = "REVOKED",
        /// Refused by a rule or a block on its identity.
        Blocked = "BLOCKED",
        /// Shared state is away, and a limit says to deny then.
        Unavailable = "UNAVAILABLE",
    }
}

/// Key, identity and request may each bring fifty, a quota four, and rules 256.
const LIMITS_MAX: usize = 410;

reply! {
    /// One limit of a verification.
    VerifiedLimit<'a> {
        required id "id": Cow<'a, str> = Shape::Text(Chars { min: 0, max: 255 }), "Its id; empty if it is not stored.";
        required name "name": Cow<'a, str> = Shape::Text(Chars { min: 3, max: 255 }), "Its name.";
        required limit "limit": u64 = Shape::Integer(COUNT), "Units that fit at once: of a token bucket its capacity.";
        required duration "duration": u64 = Shape::Integer(COUNT), "Length of the window in milliseconds.";
        required reset "reset": u64 = Shape::Integer(COUNT), "When the window ends, unix milliseconds.";
        required remaining "remaining": u64 = Shape::Integer(COUNT), "Units left, also after a denial.";
        required exceeded "exceeded": bool = Shape::Flag, "Whether this limit had no room for the cost.";
        required auto_apply "autoApply": bool = Shape::Flag, "Whether it counts in every verification.";
        optional retry_after_ms "retryAfterMs": u64 = Shape::Integer(COUNT),
            "Time until this cost fits; absent when it fits or never will.";
        flagged degraded "degraded": bool = Shape::Flag, "True when decided without the shared state.";
    }
}

reply! {
    /// Answer of `keys.verifyKey`. With `NOT_FOUND` it says nothing else.
    VerifyKeyReply<'a> {
        required valid "valid": bool = Shape::Flag, "Whether to let the request through.";
        required code "code": Code = Shape::Choice(Code::WORDS), "Why, or why not.";
        optional key_id "keyId": Cow<'a, str> = ID, "Id of the key.";
        optional keyspace_id "keyspaceId": Cow<'a, str> = ID, "The project that the key opens.";
        optional name "name": Cow<'a, str> = NAME, NAME_ABOUT;
        optional meta "meta": Metadata<'a> = METADATA, "The key's, as it was given.";
        optional expires "expires": u64 = EXPIRES_MS, "When the key stops working, unix milliseconds.";
        optional credits "credits": u64 = Shape::Integer(CREDITS), "Credits left; absent is without end.";
        optional enabled "enabled": bool = Shape::Flag, "Whether the key is switched on.";
        listed permissions "permissions": Cow<'a, [Box<str>]> = PERMISSIONS, "Its own and those of its roles, sorted.";
        listed roles "roles": Cow<'a, [Box<str>]> = ROLES, "Names of its roles, sorted.";
        optional identity "identity": Identity<'a> = Identity::SHAPE, "Whose key it is.";
        listed ratelimits "ratelimits": Cow<'a, [VerifiedLimit<'a>]> =
            Shape::List { of: &VerifiedLimit::SHAPE, min: 0, max: LIMITS_MAX }, "Every limit that was looked at.";
        optional delay_ms "delayMs": u64 = Shape::Integer(COUNT),
            "Valid, but throttled: let the request through after so long.";
        optional revoked_at "revokedAt": u64 = Shape::Integer(COUNT), "With `REVOKED`: since when, unix milliseconds.";
    }
}

impl VerifyKeyReply<'_> {
    /// A verdict and nothing else.
    pub fn bare(code: Code) -> Self {
        Self {
            valid: code == Code::Valid,
            code,
            key_id: None,
            keyspace_id: None,
            name: None,
            meta: None,
            expires: None,
            credits: None,
            enabled: None,
            permissions: Cow::default(),
            roles: Cow::default(),
            identity: None,
            ratelimits: Cow::default(),
            delay_ms: None,
            revoked_at: None,
        }
    }
}
