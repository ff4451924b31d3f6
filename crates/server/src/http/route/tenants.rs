//! The rows of `tenants.*`, which are the operator's alone.

use tollkeeper_wire as wire;
use wire::Described;

use super::{Answers, Endpoint, Route, change, post};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TenantCall {
    Create,
    List,
    Update,
}

/// In the place of a permission: none opens these.
pub const OPERATOR: &str = "the operator's root key";

pub const ROUTES: &[Route] = &[
    change::<wire::CreateTenantRequest<'static>>(
        "/v2/tenants.create",
        Endpoint::Tenants(TenantCall::Create),
        OPERATOR,
        "Make a tenant and its first root key.",
        Answers::Data(wire::CreateTenantReply::SHAPE),
    ),
    post::<wire::ListTenantsRequest<'static>>(
        "/v2/tenants.list",
        Endpoint::Tenants(TenantCall::List),
        OPERATOR,
        "All tenants, page by page.",
        Answers::Page(wire::Tenant::SHAPE),
    ),
    change::<wire::UpdateTenantRequest<'static>>(
        "/v2/tenants.update",
        Endpoint::Tenants(TenantCall::Update),
        OPERATOR,
        "Switch a tenant on or off, or bound its calls in a minute.",
        Answers::Data(wire::Empty::SHAPE),
    ),
];
