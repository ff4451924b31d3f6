//! What nodes tell each other, as text on the bus. What cannot be read is not heard.

use std::sync::Arc;

use tollkeeper_core::{Algorithm, Boot, Limit, Quota, Width, Window};
use tollkeeper_decide::{CellName, News, Scope};

/// The channel of the fleet.
pub const BUS: &str = "tk:bus";

/// Between the parts of a message. No text that a caller can choose holds it unescaped: parts are length-checked JSON strings.
pub(crate) fn write(news: &News) -> String {
    let parts: Vec<String> = match news {
        News::Recall { name, limit } => cell("recall", name, limit),
        News::Lost { name, limit } => cell("lost", name, limit),
        News::Gather { by, scope: of, identifier } => {
            let mut parts = vec!["gather".to_owned(), by.0.to_string()];
            parts.extend(scope(of));
            parts.extend(identifier.iter().map(ToString::to_string));
            parts
        }
        News::Reset { scope: of, identifier } => {
            let mut parts = vec!["reset".to_owned()];
            parts.extend(scope(of));
            parts.extend(identifier.iter().map(ToString::to_string));
            parts
        }
        News::Changed => vec!["changed".to_owned()],
    };
    let escaped = parts.iter().map(|part| part.replace('%', "%25").replace('\n', "%0A"));
    escaped.collect::<Vec<_>>().join("\n")
}

pub(crate) fn read(message: &[u8]) -> Option<News> {
    let text = std::str::from_utf8(message).ok()?;
    let unescape = |part: &str| part.replace("%0A", "\n").replace("%25", "%");
    let parts: Vec<String> = text.split('\n').map(unescape).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match parts[..] {
        [what @ ("recall" | "lost"), tenant, owner, space, identifier, kind, width] => {
            let scope = Arc::new(read_scope(tenant, owner, space));
            let (name, limit) = (CellName::new(&scope, identifier), read_limit(kind, width)?);
            let name = Arc::new(name);
            let recall = what == "recall";
            Some(if recall { News::Recall { name, limit } } else { News::Lost { name, limit } })
        }
        ["gather", by, tenant, owner, space, ref identifier @ ..] if identifier.len() <= 1 => {
            Some(News::Gather {
                by: Boot(by.parse().ok()?),
                scope: Arc::new(read_scope(tenant, owner, space)),
                identifier: identifier.first().map(|&one| one.into()),
            })
        }
        ["reset", tenant, owner, space] => Some(News::Reset {
            scope: Arc::new(read_scope(tenant, owner, space)),
            identifier: None,
        }),
        ["reset", tenant, owner, space, identifier] => Some(News::Reset {
            scope: Arc::new(read_scope(tenant, owner, space)),
            identifier: Some(identifier.into()),
        }),
        ["changed"] => Some(News::Changed),
        _ => None,
    }
}

fn cell(what: &str, name: &CellName, limit: &Limit) -> Vec<String> {
    let (kind, width) = shape(limit);
    let mut parts = vec![what.to_owned()];
    parts.extend(scope(&name.scope));
    parts.extend([name.identifier.to_string(), kind.to_owned(), width.to_string()]);
    parts
}

fn scope(scope: &Scope) -> [String; 3] {
    [scope.tenant.to_string(), u8::from(scope.of_owner).to_string(), scope.space.to_string()]
}

fn read_scope(tenant: &str, owner: &str, space: &str) -> Scope {
    if owner == "1" { Scope::owner(tenant, space) } else { Scope::namespace(tenant, space) }
}

fn shape(limit: &Limit) -> (&'static str, u64) {
    match limit.algorithm {
        Algorithm::FixedWindow(Window::Aligned(width)) => ("fw", width.millis()),
        Algorithm::FixedWindow(Window::Day) => ("day", 0),
        Algorithm::FixedWindow(Window::Month) => ("month", 0),
        Algorithm::SlidingWindow(width) => ("sw", width.millis()),
        Algorithm::SlidingLog(width) => ("sl", width.millis()),
        Algorithm::TokenBucket { width, .. } => ("tb", width.millis()),
    }
}

/// Only the shape matters: it says which cell is meant, whatever its quota is.
fn read_limit(kind: &str, width: &str) -> Option<Limit> {
    let quota = Quota::new(1)?;
    let width = Width::from_millis(width.parse().ok()?);
    Some(match kind {
        "fw" => Limit::fixed_window(quota, Window::Aligned(width?)),
        "day" => Limit::fixed_window(quota, Window::Day),
        "month" => Limit::fixed_window(quota, Window::Month),
        "sw" => Limit::sliding_window(quota, width?),
        "sl" => Limit::sliding_log(quota, width?)?,
        "tb" => Limit::token_bucket(quota, width?, None),
        _ => return None,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_whatever_callers_chose() {
        for text in ["user_1", "", "a\nb", "%0A", "%250A", "100%", "reset\nx"] {
            let scope = Arc::new(Scope::owner("t", text));
            let limit = Limit::token_bucket(
                Quota::new(1).unwrap(),
                Width::from_millis(1_000).unwrap(),
                None,
            );
            let name = Arc::new(CellName::new(&scope, text));
            let all = [
                News::Recall { name: Arc::clone(&name), limit },
                News::Lost { name, limit },
                News::Gather { by: Boot(7), scope: Arc::clone(&scope), identifier: None },
                News::Gather {
                    by: Boot(u64::MAX),
                    scope: Arc::clone(&scope),
                    identifier: Some(text.into()),
                },
                News::Reset { scope: Arc::clone(&scope), identifier: Some(text.into()) },
                News::Reset { scope, identifier: None },
                News::Changed,
            ];
            for news in all {
                assert_eq!(read(write(&news).as_bytes()), Some(news));
            }
        }
    }

    #[test]
    fn nonsense_is_not_heard() {
        for text in
            ["", "recall", "reset\na", "gather\nx\na\n0\nb", "recall\na\n0\nb\nc\nxx\n1", "boom"]
        {
            assert_eq!(read(text.as_bytes()), None);
        }
        assert_eq!(read(&[0xff, 0xfe]), None);
    }
}
