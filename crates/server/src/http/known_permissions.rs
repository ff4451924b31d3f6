//! Which permissions a root key can be given: those that the table of routes asks for, and those that handlers ask for beside
//! them. A word that opens nothing is a slip of the pen, and whoever made it learns so before the key is in use.

use super::route::routes;

/// Asked for inside of calls, or known to clients of the contract for what is not here yet.
const BESIDE_ROUTES: &[(&str, &str)] = &[
    ("api", "encrypt_key"),
    ("api", "decrypt_key"),
    ("api", "update_api"),
    ("api", "read_analytics"),
    ("ratelimit", "create_namespace"),
    ("ratelimit", "read_namespace"),
    ("ratelimit", "update_namespace"),
];

/// `*`, or `group.id.action` with a group and an action that there are, and one id or `*`.
pub fn is_known(grant: &str) -> bool {
    let mut parts = grant.split('.');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some("*"), None, ..) => true,
        (Some(group), Some(id), Some(action), None) => {
            !id.is_empty() && (in_routes(group, action) || BESIDE_ROUTES.contains(&(group, action)))
        }
        _ => false,
    }
}

fn in_routes(group: &str, action: &str) -> bool {
    // A route that needs two says `one and the other`; what stands between the dots is a person's description of an id.
    let asked = routes().filter_map(|route| route.permission).flat_map(|text| text.split(" and "));
    asked.filter_map(ends).any(|pair| pair == (group, action))
}

/// The first part and the last.
fn ends(permission: &str) -> Option<(&str, &str)> {
    Some((permission.split_once('.')?.0, permission.rsplit_once('.')?.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_a_route_asks_for_can_be_given() {
        let asked = routes().filter_map(|route| route.permission);
        for permission in asked.flat_map(|text| text.split(" and ")).filter(|text| *text != "*") {
            let Some((group, action)) = ends(permission) else { continue };
            for id in ["*", "id_1"] {
                let grant = format!("{group}.{id}.{action}");
                assert!(is_known(&grant), "{grant}");
            }
        }
        assert!(is_known("*") && is_known("rbac.*.remove_permission_from_role"));
    }

    #[test]
    fn what_opens_nothing_is_not_known() {
        for grant in [
            "junk",
            "",
            ".",
            "..",
            "api",
            "api.*",
            "api.*.",
            "api..create_key",
            "*.*.*",
            "api.*.create_keys",
            "apis.*.create_key",
            "api.a.b.create_key",
            "api.*.peek",
            "**",
            "API.*.create_key",
            "*.",
        ] {
            assert!(!is_known(grant), "{grant}");
        }
    }
}
