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

    /// The first of `wanted` that these do not cover: what would make whoever has them wider than us.
    pub fn first_beyond<'w>(&self, wanted: &'w Self) -> Option<&'w str> {
        wanted.iter().find(|grant| !self.cover(grant))
    }

    /// Is everything that this grant allows allowed here? A grant that is no tuple of three is covered by itself only.
    fn cover(&self, grant: &str) -> bool {
        let for_all = |grant: &str| {
            let (resource, rest) = grant.split_once('.')?;
            let (id, action) = rest.split_once('.')?;
            let plain = !id.is_empty() && !action.contains('.');
            plain.then(|| format!("{resource}.*.{action}"))
        };
        self.everything
            || (grant != EVERYTHING
                && self.grants.iter().any(|own| {
                    **own == *grant || for_all(grant).is_some_and(|wide| **own == *wide)
                }))
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
    use proptest::prelude::*;

    use super::*;

    /// Few words, so that grants meet; dots and stars inside, so that they try to pass for others.
    fn word() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec!["a", "b", "*", "", "a.b", "*.b", "a.*"])
    }

    fn grant() -> impl Strategy<Value = String> {
        let tuple = (word(), word(), word()).prop_map(|(a, b, c)| format!("{a}.{b}.{c}"));
        prop_oneof![8 => tuple, 1 => word().prop_map(str::to_owned)]
    }

    fn permissions() -> impl Strategy<Value = Permissions> {
        prop::collection::vec(grant(), 0..5)
            .prop_map(|grants| grants.iter().map(String::as_str).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn what_a_covered_set_allows_its_parent_allows(
            parent in permissions(),
            child in permissions(),
            asks in prop::collection::vec((word(), word(), word()), 1..20),
        ) {
            // Most pairs do not cover each other; those say nothing, and need not be drawn again.
            if parent.first_beyond(&child).is_some() {
                return Ok(());
            }
            for (resource, id, action) in asks {
                prop_assert!(
                    !child.allow(resource, id, action) || parent.allow(resource, id, action),
                    "{parent:?} covers {child:?}, which allows {resource} {id} {action}"
                );
            }
        }

        #[test]
        fn a_set_covers_itself_and_everything_covers_any(own in permissions()) {
            prop_assert_eq!(own.first_beyond(&own), None);
            prop_assert_eq!(Permissions::everything().first_beyond(&own), None);
        }

        #[test]
        fn a_plain_grant_is_beyond_exactly_those_who_do_not_allow_it(
            parent in permissions(),
            (resource, id, action) in ("[ab]", "[ab*]", "[ab]"),
        ) {
            let text = format!("{resource}.{id}.{action}");
            let child: Permissions = [text.as_str()].into_iter().collect();
            let beyond = parent.first_beyond(&child).is_some();
            prop_assert_eq!(beyond, !parent.allow(&resource, &id, &action));
        }
    }

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
