//! `audit.*`: what was decided, what was changed, and whether the record of changes is whole.

use std::borrow::Cow;

use crate::choice::choice;
use crate::metadata::{METADATA, Metadata};
use crate::page::{
    CURSOR_ABOUT, DECISION_CURSOR, LIMIT_ABOUT, NUMBER_CURSOR, PAGE_LIMIT, PAGE_SEARCH,
};
use crate::part::Text;
use crate::ratelimit::IDENTIFIER;
use crate::reply::reply;
use crate::request::request;
use crate::schema::{Chars, Shape};
use crate::span::{ENDS_AFTER_IT_BEGINS, ends_after_it_begins};
use crate::spelling::ID;
use crate::verdict::COUNT;

const NUMBER: Shape = Shape::Integer(COUNT);
const WORD: Shape = Shape::Text(Chars { min: 1, max: 512 });
const DECISION: Shape = Shape::Choice(Decision::WORDS);
/// An identity, or what `ratelimit.*` counts: any text.
const SUBJECT: Shape = Shape::Raw(IDENTIFIER);
const PATH: Shape = Shape::Text(Chars { min: 1, max: 4_096 });
const ACTION: Shape = Shape::Text(Chars { min: 1, max: 128 });

const FROM_ABOUT: &str = "From this moment on, unix milliseconds.";
const TO_ABOUT: &str = "Before this moment, unix milliseconds.";

choice! {
    /// How a request ended.
    Decision {
        Allowed = "allowed",
        /// Not now: a limit, credits, or counters out of reach.
        Throttled = "throttled",
        /// Not with this key, or not at all.
        Blocked = "blocked",
    }
}

request! {
    /// Body of `audit.search`; what is left out matches all.
    SearchAuditRequest<'a> {
        optional from "from": u64 = NUMBER, FROM_ABOUT;
        optional to "to": u64 = NUMBER, TO_ABOUT;
        optional key_id "keyId": Text<'a> = ID, "Decisions on this key.";
        optional external_id "externalId": Text<'a> = SUBJECT,
            "Decisions on keys of this identity, and of `ratelimit.*` on this identifier.";
        optional decision "decision": Decision = DECISION, "How they ended.";
        optional path "path": Text<'a> = PATH, "Exactly this path; with `*` at its end, all that begin so.";
        optional text "text": Text<'a> = PAGE_SEARCH,
            "Anywhere in code, path, endpoint, rule, limit, address or request id, whatever its case.";
        optional limit "limit": u64 = PAGE_LIMIT, LIMIT_ABOUT;
        optional cursor "cursor": Text<'a> = DECISION_CURSOR, CURSOR_ABOUT;
    }
    rules {
        ENDS_AFTER_IT_BEGINS => |it| ends_after_it_begins(it.from, it.to);
    }
}

reply! {
    /// One decision.
    AuditedDecision<'a> {
        required at "at": u64 = NUMBER, "Unix milliseconds.";
        required request_id "requestId": Cow<'a, str> = WORD, "The request that it answered.";
        required decision "decision": Decision = DECISION, "How it ended.";
        required code "code": Cow<'a, str> = WORD, "The verdict.";
        required status "status": u64 = NUMBER, "What a proxy sends its client for it.";
        optional key_id "keyId": Cow<'a, str> = ID, "The key.";
        optional external_id "externalId": Cow<'a, str> = WORD, "The key's identity, or the identifier of `ratelimit.*`.";
        optional ip "ip": Cow<'a, str> = WORD, "Address of the end user.";
        optional method "method": Cow<'a, str> = WORD, "Method of the end user's request.";
        optional endpoint "endpoint": Cow<'a, str> = WORD, "The pattern that its path matched.";
        optional path "path": Cow<'a, str> = PATH, "Its path, without the query.";
        optional rule "rule": Cow<'a, str> = WORD, "The rule that decided.";
        optional limit "limit": Cow<'a, str> = WORD, "The limit that decided, or else the one that leaves least.";
        optional count "count": u64 = NUMBER, "What was used of that limit.";
        optional retry_after_ms "retryAfterMs": u64 = NUMBER, "Time until the same would have fit.";
        required node "node": Cow<'a, str> = WORD, "The node that decided.";
        optional region "region": Cow<'a, str> = WORD, "Its region.";
        required latency_us "latencyUs": u64 = NUMBER, "From the whole request to the decision, in microseconds.";
        flagged degraded "degraded": bool = Shape::Flag, "True when decided without the shared state.";
    }
}

request! {
    /// Body of `audit.changes`; what is left out matches all.
    ListChangesRequest<'a> {
        optional from "from": u64 = NUMBER, FROM_ABOUT;
        optional to "to": u64 = NUMBER, TO_ABOUT;
        optional action "action": Text<'a> = ACTION, "What was done, such as `keys.create`.";
        optional target "target": Text<'a> = WORD, "Id of what it was done to.";
        optional root_key_id "rootKeyId": Text<'a> = ID, "Who did it.";
        optional limit "limit": u64 = PAGE_LIMIT, LIMIT_ABOUT;
        optional cursor "cursor": Text<'a> = NUMBER_CURSOR, CURSOR_ABOUT;
    }
    rules {
        ENDS_AFTER_IT_BEGINS => |it| ends_after_it_begins(it.from, it.to);
    }
}

reply! {
    /// One change by an admin.
    AdminChange<'a> {
        optional position "position": u64 = NUMBER, "Its place in the chain, from 1; left out for what is older than the chain.";
        required at "at": u64 = NUMBER, "Unix milliseconds.";
        optional root_key_id "rootKeyId": Cow<'a, str> = ID, "Who did it; left out for what the server did by itself.";
        required action "action": Cow<'a, str> = ACTION, "What was done.";
        required target "target": Cow<'a, str> = WORD, "Id of what it was done to.";
        optional before "before": Metadata<'a> = METADATA, "What it was before, without secrets.";
        optional after "after": Metadata<'a> = METADATA, "What it is since then, without secrets.";
    }
}

request! {
    /// Body of `audit.verify`.
    VerifyAuditRequest {}
}

reply! {
    /// Whether the record of changes is whole. The operator's key has the chains of all tenants looked at.
    VerifyAuditReply<'a> {
        required rows "rows": u64 = NUMBER, "Changes that were looked at.";
        required ok "ok": bool = Shape::Flag, "Whether every one is as it was written, in its place, and none is missing.";
        optional first_bad "firstBad": u64 = NUMBER, "Place of the first that is not, from 1; 0 for what is older than the chain.";
        optional reason "reason": Cow<'a, str> = WORD, "What is wrong there.";
        optional tenant_id "tenantId": Cow<'a, str> = ID, "In whose chain.";
        optional head "head": Cow<'a, str> = WORD, "Place and hash of the last change of the caller's own chain: keep it elsewhere, and a later one must contain it.";
    }
}
