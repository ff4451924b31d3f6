//! A key as a person or a script sees it: what it is called, whose it is, and what is left of it. Never its text.

use tollkeeper_client::wire::{Key, Metadata};

use crate::moment;
use crate::output::printable;

/// What a list shows of a key.
pub(crate) fn row(key: &Key<'_>) -> Vec<(&'static str, String)> {
    vec![
        ("key_id", printable(&key.key_id)),
        ("start", printable(&key.start)),
        ("name", text(key.name.as_deref())),
        ("owner", text(key.identity.as_ref().map(|identity| &*identity.external_id))),
        ("state", state(key).to_owned()),
        ("credits", credits(key)),
        ("expires", moment::shown(key.expires)),
        ("last_used", moment::shown(key.last_used_at)),
    ]
}

/// Everything that is known about a key, one thing per line.
pub(crate) fn details(key: &Key<'_>) -> Vec<(&'static str, String)> {
    let mut details = row(key);
    details.push(("created", moment::shown(Some(key.created_at))));
    details.push(("updated", moment::shown(key.updated_at)));
    details.push(("permissions", printable(&key.permissions.join(","))));
    details.push(("roles", printable(&key.roles.join(","))));
    let limits: Vec<_> = key
        .ratelimits
        .iter()
        .map(|limit| format!("{}={}/{}ms", limit.name, limit.limit, limit.duration))
        .collect();
    details.push(("limits", printable(&limits.join(","))));
    details.push(("tier", text(key.tier.as_deref())));
    details.push(("allowed_ips", printable(&key.ip_allowlist.join(","))));
    details.push(("signing", if key.signing { "required" } else { "" }.to_owned()));
    details.push(("meta", text(key.meta.as_ref().map(Metadata::as_str))));
    details.push(("revoked", moment::shown(key.revoked_at)));
    details.push(("revoked_reason", text(key.revoked_reason.as_deref())));
    if let Some(plaintext) = &key.plaintext {
        details.push(("key", printable(plaintext.reveal())));
    }
    details.retain(|(_, value)| !value.is_empty());
    details
}

fn state(key: &Key<'_>) -> &'static str {
    match (key.revoked_at, key.enabled) {
        (Some(_), _) => "revoked",
        (None, true) => "enabled",
        (None, false) => "disabled",
    }
}

fn credits(key: &Key<'_>) -> String {
    let remaining = key.credits.as_ref().and_then(|credits| credits.remaining);
    remaining.map_or_else(String::new, |left| left.to_string())
}

fn text(given: Option<&str>) -> String {
    given.map_or_else(String::new, printable)
}
