//! The rows of `rules.*`.

use tollkeeper_wire as wire;
use wire::Described;
use wire::rules::RULES_BYTES_MAX;

use super::{Answers, Endpoint, Route, change, post};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RuleCall {
    Apply,
    List,
    Get,
    Delete,
    Rollback,
}

pub const ROUTES: &[Route] = &[
    Route {
        body_max: RULES_BYTES_MAX,
        ..change::<wire::ApplyRulesRequest>(
            "/v2/rules.apply",
            Endpoint::Rules(RuleCall::Apply),
            "rules.*.apply",
            "Make the rules what is given, all or nothing; `dryRun` only says what would change.",
            Answers::Data(wire::ApplyRulesReply::SHAPE),
        )
    },
    post::<wire::ListRulesRequest<'static>>(
        "/v2/rules.list",
        Endpoint::Rules(RuleCall::List),
        "rules.*.list",
        "All rules by name, page by page, as `rules.apply` takes them.",
        Answers::Page(wire::Rule::SHAPE),
    ),
    post::<wire::GetRuleRequest<'static>>(
        "/v2/rules.get",
        Endpoint::Rules(RuleCall::Get),
        "rules.*.get",
        "One rule, with its id and its making.",
        Answers::Data(wire::RuleReply::SHAPE),
    ),
    change::<wire::DeleteRuleRequest<'static>>(
        "/v2/rules.delete",
        Endpoint::Rules(RuleCall::Delete),
        "rules.*.delete",
        "Delete one rule.",
        Answers::Data(wire::DeleteRuleReply::SHAPE),
    ),
    change::<wire::RollbackRulesRequest>(
        "/v2/rules.rollback",
        Endpoint::Rules(RuleCall::Rollback),
        "rules.*.rollback",
        "Make the rules what they were at a version, as a new one. The last hundred versions are kept.",
        Answers::Data(wire::ApplyRulesReply::SHAPE),
    ),
];
