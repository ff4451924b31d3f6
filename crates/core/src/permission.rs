//! What a root key may do: `resource.<id|*>.action` tuples, matched exactly.

/// All permissions, as the bootstrap root key carries them.
const EVERYTHING: &str = "*";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    everything: bool,
    grants: Vec<Box<str>>,
}

// === impl Permissions ===

impl Permissions {
    pub fn everything() -> Self {
        Self { everything: true, grants: Vec::new() }
    }

    /// Is `action` granted on this `id` of `resource`, by name or for all of them?
    pub fn allow(&self, resource: &str, id: &str, action: &str) -> bool {
        self.everything
            || self.grants.iter().any(|grant| {
                let rest = grant.strip_prefix(resource).and_then(|rest| rest.strip_prefix('.'));
                let scope = rest
                    .and_then(|rest| rest.strip_suffix(action))
                    .and_then(|rest| rest.strip_suffix('.'));
                scope.is_some_and(|scope| scope == "*" || scope == id)
            })
    }

    /// The grants as they are stored.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let everything = self.everything.then_some(EVERYTHING);
        everything.into_iter().chain(self.grants.iter().map(AsRef::as_ref))
    }
}

impl<'a> FromIterator<&'a str> for Permissions {
    fn from_iter<I: IntoIterator<Item = &'a str>>(grants: I) -> Self {
        let mut permissions = Self::default();
        for grant in grants {
            if grant == EVERYTHING {
                permissions.everything = true;
            } else {
                permissions.grants.push(grant.into());
            }
        }
        permissions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_covers_its_own_id_or_all_of_them_and_nothing_else() {
        let narrow: Permissions =
            ["ratelimit.rlns_1.limit", "ratelimit.*.read_override"].into_iter().collect();
        assert!(narrow.allow("ratelimit", "rlns_1", "limit"));
        assert!(!narrow.allow("ratelimit", "rlns_2", "limit"));
        assert!(narrow.allow("ratelimit", "rlns_2", "read_override"));
        assert!(!narrow.allow("ratelimit", "*", "limit"));
        assert!(!narrow.allow("rate", "rlns_1", "limit"));
        assert!(Permissions::everything().allow("api", "x", "delete_api"));
    }

    #[test]
    fn an_id_that_looks_like_a_wildcard_grants_nothing_more() {
        let narrow: Permissions = ["ratelimit.a.b.limit"].into_iter().collect();
        assert!(!narrow.allow("ratelimit", "a", "limit"));
        assert!(!Permissions::default().allow("ratelimit", "*", "limit"));
    }
}
