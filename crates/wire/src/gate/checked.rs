//! The answer of `gate.check`. Every verdict is a 200; `status` is what a proxy should send in its place.

use std::borrow::Cow;

use crate::credits::CREDITS;
use crate::identity::Identity;
use crate::keys::Code;
use crate::ratelimit::Algorithm;
use crate::reply::reply;
use crate::schema::{Chars, Described, Shape, Whole};
use crate::spelling::ID;
use crate::verdict::COUNT;

/// What HTTP has.
pub(super) const STATUS: Shape = Shape::Integer(Whole { min: 100, max: 599 });
/// Names of rules and limits, alone or joined.
pub(super) const NAME: Shape = Shape::Text(Chars { min: 0, max: 1_024 });
/// Values of several scopes in one.
const IDENTIFIER: Shape = Shape::Text(Chars { min: 0, max: 65_536 });
pub(super) const SENTENCE: Shape = Shape::Text(Chars { min: 0, max: 4_096 });
/// A tenant has at most 10,000 rules, with few limits each.
pub(super) const ROWS_MAX: usize = 1_000_000;
pub(super) const LIMITS: Shape = Shape::List { of: &CheckedLimit::SHAPE, min: 0, max: ROWS_MAX };

reply! {
    /// One limit that was looked at.
    written CheckedLimit<'a> {
        required name "name": Cow<'a, str> = NAME, "Its name; of a rule's limit the rule's name, `/` and its own.";
        required scope "scope": Cow<'a, str> = NAME, "Whose counter it is: `key`, `user`, or what its rule says, joined by `+`.";
        required identifier "identifier": Cow<'a, str> = IDENTIFIER, "Which key, user, address, … it counts for.";
        required algorithm "algorithm": Algorithm = Shape::Choice(Algorithm::WORDS), "How it counts.";
        required limit "limit": u64 = Shape::Integer(COUNT), "Units that fit at once: of a token bucket its capacity.";
        required remaining "remaining": u64 = Shape::Integer(COUNT), "Units left, also after a denial.";
        required reset "reset": u64 = Shape::Integer(COUNT), "When it has all its units again, unix milliseconds.";
        optional retry_after_ms "retryAfterMs": u64 = Shape::Integer(COUNT),
            "Time until this cost fits; absent when it fits or never will.";
        required exceeded "exceeded": bool = Shape::Flag, "Whether this limit had no room for the cost.";
        flagged shadow "shadow": bool = Shape::Flag, "True of a limit that only counts and never denies.";
    }
}

reply! {
    /// Answer of `gate.check`.
    written CheckReply<'a> {
        required allowed "allowed": bool = Shape::Flag, "Whether to let the request through.";
        required code "code": Code = Shape::Choice(Code::WORDS), "Why, or why not.";
        required status "status": u64 = STATUS, "The status that a proxy should answer with.";
        optional rule "rule": Cow<'a, str> = NAME, "The rule that decided: a block, the first exceeded one, or the one that delays.";
        optional message "message": Cow<'a, str> = SENTENCE, "With a denial: what its rule wants to be said.";
        optional delay_ms "delayMs": u64 = Shape::Integer(COUNT), "Allowed, but only after waiting so long.";
        optional retry_after_ms "retryAfterMs": u64 = Shape::Integer(COUNT),
            "With a denial: when everything would fit; absent when it never will or is not about time.";
        optional key_id "keyId": Cow<'a, str> = ID, "Id of the key.";
        optional identity "identity": Identity<'a> = Identity::SHAPE, "Who asks.";
        optional credits "credits": u64 = Shape::Integer(CREDITS), "Credits of the key that are left; absent is without end.";
        required limits "limits": Vec<CheckedLimit<'a>> = LIMITS, "Every limit that was looked at.";
        flagged degraded "degraded": bool = Shape::Flag, "True when decided without the shared state.";
    }
}
