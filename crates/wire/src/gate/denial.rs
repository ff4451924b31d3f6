//! What a proxy hands to the end user when it must not let a request through: a problem after RFC 9457, without envelope.
//! It goes to people outside, so it names limits and rules, and never a key, an id or an address.

use std::borrow::Cow;

use super::checked::{NAME, SENTENCE, STATUS};
use crate::keys::Code;
use crate::reply::reply;
use crate::schema::{Chars, Shape};
use crate::verdict::COUNT;

const WORD: Shape = Shape::Text(Chars { min: 1, max: 512 });

reply! {
    /// Body of a refusal at `/check/*`.
    Denial<'a> {
        required kind "type": Cow<'a, str> = WORD, "Names the kind of problem.";
        required title "title": Cow<'a, str> = WORD, "The same for people.";
        required status "status": u64 = STATUS, "The status of this answer.";
        required detail "detail": Cow<'a, str> = SENTENCE, "What is wrong, and what to do about it.";
        optional code "code": Code = Shape::Choice(Code::WORDS), "The verdict, where there was one.";
        optional rule "rule": Cow<'a, str> = NAME, "The rule that denied.";
        optional limit "limit": Cow<'a, str> = NAME, "The limit that denied.";
        optional retry_after_ms "retryAfterMs": u64 = Shape::Integer(COUNT), "When to come back.";
        listed violated_policies "violated-policies": Vec<Cow<'a, str>> =
            Shape::List { of: &NAME, min: 0, max: 1_000 }, "Every limit without room, by its name in `RateLimit-Policy`.";
        required request_id "requestId": Cow<'a, str> = WORD, "Finds this answer in logs.";
    }
}
