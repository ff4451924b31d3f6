//! The types of the HTTP API as they stand on the wire: envelopes, requests, replies, and one description per body.
//! No I/O and no domain logic. Nothing here panics on hostile input; a bad body becomes a list of field errors.

pub mod apis;
pub mod audit;
mod choice;
pub mod credits;
mod document;
pub mod envelope;
mod faults;
mod fields;
pub mod gate;
pub mod identities;
pub mod identity;
mod json;
mod json_schema;
mod key_text;
pub mod keys;
pub mod limits;
pub mod liveness;
pub mod metadata;
mod nesting;
mod object_only;
pub mod overrides;
pub mod page;
pub mod parse;
pub mod part;
mod patch;
pub mod permissions;
pub mod projects;
pub mod quotas;
pub mod ratelimit;
mod reply;
mod request;
pub mod roles;
mod room;
pub mod root_keys;
pub mod rules;
pub mod schema;
pub mod signature;
mod span;
pub mod spelling;
pub mod stats;
pub mod stored_limit;
pub mod system;
pub mod tenants;
pub mod usage;
pub mod verdict;

pub use apis::{
    Api, CreateApiReply, CreateApiRequest, DeleteApiRequest, GetApiRequest, ListKeysRequest,
};
pub use audit::{
    AdminChange, AuditedDecision, Decision, ListChangesRequest, SearchAuditRequest,
    VerifyAuditReply, VerifyAuditRequest,
};
pub use credits::{
    CreditOperation, Credits, CreditsPatch, CreditsReply, Refill, RefillInterval, RefillReply,
    UpdateCreditsRequest,
};
pub use document::document;
pub use envelope::{Done, Failure, FieldError, Meta, Pagination, Problem, Success};
pub use gate::{
    CheckReply, CheckRequest, CheckedLimit, Denial, ExplainReply, ExplainRequest, MatchedRule,
    UnmatchedRule,
};
pub use identities::{
    CreateIdentityReply, CreateIdentityRequest, DeleteIdentityRequest, GetIdentityRequest,
    ListIdentitiesRequest, UpdateIdentityRequest,
};
pub use identity::Identity;
pub use json::Json;
pub use key_text::{KEY_TEXT, KeyText};
pub use keys::{
    AddPermissionsRequest, AddRolesRequest, Code, CreateKeyRequest, DeleteKeyRequest,
    GetKeyRequest, Key, KeyReply, MigrateKeysReply, MigrateKeysRequest, MigratedKey, MigratingKey,
    RemovePermissionsRequest, RemoveRolesRequest, RerollKeyRequest, RevokeKeyReply,
    RevokeKeyRequest, SetPermissionsRequest, SetRolesRequest, SpendCredits, UnmigratedKey,
    UpdateKeyRequest, VerifiedLimit, VerifyKeyReply, VerifyKeyRequest, VerifyRatelimit,
    WhoamiRequest,
};
pub use limits::{
    PeekReply, PeekRequest, ResetReply, ResetRequest, StatKind, StatsReply, StatsRequest,
};
pub use liveness::LivenessReply;
pub use metadata::Metadata;
pub use overrides::{
    DeleteNamespaceRequest, DeleteOverrideRequest, Empty, GetOverrideRequest, ListOverridesRequest,
    OverrideReply, SetOverrideReply, SetOverrideRequest,
};
pub use parse::{Request, parse};
pub use part::Text;
pub use patch::Patch;
pub use permissions::{
    CreatePermissionReply, CreatePermissionRequest, DeletePermissionRequest, GetPermissionRequest,
    ListPermissionsRequest, Permission, UpdatePermissionRequest,
};
pub use projects::{
    CreateProjectReply, CreateProjectRequest, DeleteProjectRequest, GetProjectRequest,
    ListProjectsRequest, Project, UpdateProjectRequest,
};
pub use quotas::{
    BlockRequest, GetQuotaRequest, QuotaLimits, QuotaReply, QuotaTotals, SetQuotaRequest,
    UnblockRequest,
};
pub use ratelimit::{Algorithm, Consistency, LimitRequest, MultiLimitRequest, OnOutage};
pub use roles::{
    CreateRoleReply, CreateRoleRequest, DeleteRoleRequest, GetRoleRequest, ListRolesRequest, Role,
    SetRolePermissionsRequest, UpdateRoleRequest,
};
pub use root_keys::{
    CreateRootKeyRequest, DeleteRootKeyRequest, ListRootKeysRequest, RerollRootKeyRequest, RootKey,
    UpdateRootKeyRequest,
};
pub use rules::{
    ApplyRulesReply, ApplyRulesRequest, DeleteRuleReply, DeleteRuleRequest, FieldDiff,
    GetRuleRequest, ListRulesRequest, RollbackRulesRequest, Rule, RuleDiff, RuleFile, RuleReply,
    RuleTurn,
};
pub use schema::{Described, Shape};
pub use signature::RequestSignature;
pub use stats::{QueryStatsRequest, StatsGrain, StatsLine};
pub use stored_limit::{DefaultLimit, DefaultLimitReply, RatelimitReply, RatelimitRequest};
pub use system::{
    ClockStand, DatabaseKind, DatabaseStatus, Link, Mode, RedisServer, SetModeRequest, ShadowLine,
    StatusReply, StatusRequest, TenantMode,
};
pub use tenants::{
    CreateTenantReply, CreateTenantRequest, ListTenantsRequest, Tenant, UpdateTenantRequest,
};
pub use usage::{
    ExportUsageRequest, FlushUsageReply, FlushUsageRequest, QueryUsageRequest, UsageBy,
    UsageFormat, UsageRow,
};
pub use verdict::{LimitReply, MultiLimitLine, MultiLimitReply};
