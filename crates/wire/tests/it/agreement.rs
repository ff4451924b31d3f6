//! The fast path and the description agree: bodies are grown from the description itself, and both must say the same.
//! It never asks for a particular message. A new request type is one more line.

use proptest::prelude::*;
use serde_json::Value;
use tollkeeper_wire::{FieldError, Request, parse};

use crate::grown::{Slips, breaches, grown};

fn agree<'a, T: Request<'a>>(body: &Value, text: &'a str) -> Result<(), TestCaseError> {
    let faults = T::SHAPE.faults(body);
    match parse::<T>(text.as_bytes()) {
        Ok(request) => {
            prop_assert!(request.within_bounds());
            prop_assert!(faults.is_empty(), "accepted {text}, though {faults:?}");
        }
        // Nesting is found before anything else is looked at.
        Err(found) if found.iter().all(|fault| fault.message.starts_with("Nests deeper")) => {
            prop_assert!(!faults.is_empty(), "refused {text}: {found:?}");
        }
        Err(found) => prop_assert!(
            !faults.is_empty() && found == faults,
            "refused {text}: {found:?}, not {faults:?}"
        ),
    }
    Ok(())
}

/// Without slips only a rule across fields can refuse, so the accepting side is really walked.
fn accepted<'a, T: Request<'a> + serde::Serialize>(
    body: &Value,
    text: &'a str,
) -> Result<(), TestCaseError> {
    let told: fn(&FieldError) -> &str = |fault| &fault.message;
    match parse::<T>(text.as_bytes()) {
        Ok(request) => prop_assert_eq!(
            T::SHAPE.faults(&serde_json::to_value(request).expect("serializes")),
            []
        ),
        Err(found) => {
            let breaches = breaches(T::SHAPE, body);
            prop_assert!(
                found.iter().all(|fault| breaches.iter().any(|b| b == told(fault))),
                "{:?}",
                found
            );
        }
    }
    Ok(())
}

macro_rules! agreement {
    ($($name:ident: $request:ident;)+) => {
        $(mod $name {
            use tollkeeper_wire::{$request, Described};

            use super::*;

            proptest! {
                #![proptest_config(ProptestConfig::with_cases(1_000))]

                #[test]
                fn is_accepted_exactly_when_its_description_finds_no_fault(body in grown($request::SHAPE, Slips(40))) {
                    agree::<$request<'_>>(&body, &body.to_string())?;
                }
            }

            proptest! {
                #![proptest_config(ProptestConfig::with_cases(200))]

                #[test]
                fn is_accepted_and_written_as_described(body in grown($request::SHAPE, Slips(0))) {
                    accepted::<$request<'_>>(&body, &body.to_string())?;
                }
            }
        })+
    };
}

agreement! {
    limit: LimitRequest;
    multi_limit: MultiLimitRequest;
    set_override: SetOverrideRequest;
    get_override: GetOverrideRequest;
    list_overrides: ListOverridesRequest;
    delete_namespace: DeleteNamespaceRequest;
    peek: PeekRequest;
    reset: ResetRequest;
    create_key: CreateKeyRequest;
    verify_key: VerifyKeyRequest;
    gate_check: CheckRequest;
    gate_explain: ExplainRequest;
    get_key: GetKeyRequest;
    whoami: WhoamiRequest;
    update_key: UpdateKeyRequest;
    update_credits: UpdateCreditsRequest;
    delete_key: DeleteKeyRequest;
    revoke_key: RevokeKeyRequest;
    reroll_key: RerollKeyRequest;
    add_permissions: AddPermissionsRequest;
    set_permissions: SetPermissionsRequest;
    add_roles: AddRolesRequest;
    set_roles: SetRolesRequest;
    migrate_keys: MigrateKeysRequest;
    create_api: CreateApiRequest;
    get_api: GetApiRequest;
    list_keys: ListKeysRequest;
    create_project: CreateProjectRequest;
    get_project: GetProjectRequest;
    list_projects: ListProjectsRequest;
    update_project: UpdateProjectRequest;
    set_mode: SetModeRequest;
    create_tenant: CreateTenantRequest;
    list_tenants: ListTenantsRequest;
    update_tenant: UpdateTenantRequest;
    create_identity: CreateIdentityRequest;
    get_identity: GetIdentityRequest;
    list_identities: ListIdentitiesRequest;
    update_identity: UpdateIdentityRequest;
    create_permission: CreatePermissionRequest;
    get_permission: GetPermissionRequest;
    list_permissions: ListPermissionsRequest;
    update_permission: UpdatePermissionRequest;
    create_role: CreateRoleRequest;
    get_role: GetRoleRequest;
    list_roles: ListRolesRequest;
    update_role: UpdateRoleRequest;
    set_role_permissions: SetRolePermissionsRequest;
    create_root_key: CreateRootKeyRequest;
    list_root_keys: ListRootKeysRequest;
    update_root_key: UpdateRootKeyRequest;
    delete_root_key: DeleteRootKeyRequest;
    list_rules: ListRulesRequest;
    get_rule: GetRuleRequest;
    get_quota: GetQuotaRequest;
    set_quota: SetQuotaRequest;
    block: BlockRequest;
    stats: StatsRequest;
    query_usage: QueryUsageRequest;
    export_usage: ExportUsageRequest;
    search_audit: SearchAuditRequest;
    list_changes: ListChangesRequest;
    query_stats: QueryStatsRequest;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn no_bytes_make_the_parser_panic_and_a_refusal_always_says_why(
        body in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..200),
            "[\\[\\]{}\",:0-9a-z\\\\. eE+-]{0,80}".prop_map(String::into_bytes),
        ]
    ) {
        if let Err(faults) = parse::<tollkeeper_wire::LimitRequest>(&body) {
            prop_assert!(!faults.is_empty());
        }
        if let Err(faults) = parse::<tollkeeper_wire::UpdateKeyRequest>(&body) {
            prop_assert!(!faults.is_empty());
        }
        if let Err(faults) = parse::<tollkeeper_wire::MultiLimitRequest>(&body) {
            prop_assert!(!faults.is_empty());
        }
    }
}
