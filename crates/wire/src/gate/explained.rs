//! The answer of `gate.explain`: every rule there is, and what it thinks of the request. Nothing was spent.

use std::borrow::Cow;

use super::checked::{CheckedLimit, LIMITS, NAME, ROWS_MAX, SENTENCE, STATUS};
use crate::keys::Code;
use crate::reply::reply;
use crate::rules::ACTIONS;
use crate::schema::Shape;
use crate::verdict::COUNT;

reply! {
    /// One limit of a rule that matches, or a rule without limits that does.
    MatchedRule<'a> {
        required rule "rule": Cow<'a, str> = NAME, "The rule's name.";
        required action "action": Cow<'a, str> = Shape::Choice(ACTIONS), "What it does.";
        optional name "name": Cow<'a, str> = NAME, "The limit's name within its rule.";
        optional limit "limit": u64 = Shape::Integer(COUNT), "Units that fit at once.";
        optional remaining "remaining": u64 = Shape::Integer(COUNT), "Units left before this request.";
        required would_deny "wouldDeny": bool = Shape::Flag, "Whether the request fails on it.";
        required reason "reason": Cow<'a, str> = SENTENCE, "The same in a sentence.";
    }
}

reply! {
    /// A rule that has nothing to say about the request.
    UnmatchedRule<'a> {
        required rule "rule": Cow<'a, str> = NAME, "The rule's name.";
        required reason "reason": Cow<'a, str> = SENTENCE, "Why it does not match.";
    }
}

reply! {
    /// Answer of `gate.explain`.
    ExplainReply<'a> {
        required allowed "allowed": bool = Shape::Flag, "Whether the request would be let through.";
        required code "code": Code = Shape::Choice(Code::WORDS), "Why, or why not.";
        required status "status": u64 = STATUS, "The status that a proxy would answer with.";
        required reason "reason": Cow<'a, str> = SENTENCE, "The verdict in a sentence.";
        required tier "tier": Cow<'a, str> = NAME, "The tier that rules were matched for.";
        optional rule "rule": Cow<'a, str> = NAME, "The rule that would decide.";
        optional delay_ms "delayMs": u64 = Shape::Integer(COUNT), "It would be let through after waiting so long.";
        optional retry_after_ms "retryAfterMs": u64 = Shape::Integer(COUNT), "When everything would fit.";
        required matched "matched": Vec<MatchedRule<'a>> =
            Shape::List { of: &MatchedRule::SHAPE, min: 0, max: ROWS_MAX }, "Rules that match, in the order in which they are asked, a row for each limit.";
        required unmatched "unmatched": Vec<UnmatchedRule<'a>> =
            Shape::List { of: &UnmatchedRule::SHAPE, min: 0, max: ROWS_MAX }, "All other rules.";
        listed limits "limits": Vec<CheckedLimit<'a>> = LIMITS, "Every limit that would be looked at, those of keys and owners too.";
    }
}
