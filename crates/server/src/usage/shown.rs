//! What the ledger shows, and what it must show: a database that comes back as it was a minute ago has forgotten some of
//! what was seen in it. Sums by process and minute tell, for totals only grow.

use std::collections::{BTreeMap, HashMap};

use tollkeeper_account::{Former, Pages};
use tollkeeper_core::{Component, Millis, Minute, Usage};

/// Longer than anything waits here, and well within what the ledger keeps: a minute that it has forgotten for its age is
/// not missed.
const LOOK_BACK_MS: u64 = 30 * 86_400_000;

/// Components by what they are about.
pub struct Shown<'a>(HashMap<About<'a>, Usage>);

type About<'a> = (u32, [u8; 16], &'a str, &'a str);

// === impl Shown ===

impl<'a> Shown<'a> {
    pub fn of(shown: &'a [Component]) -> Self {
        Self(shown.iter().map(|one| (about(one), one.usage)).collect())
    }

    pub fn shows(&self, one: &Component) -> bool {
        self.0.get(&about(one)).is_some_and(|usage| usage.covers(&one.usage))
    }
}

fn about(one: &Component) -> About<'_> {
    (one.minute.0, one.boot, &one.project_id, &one.key_id)
}

/// What was seen in the ledger of all that is still held here, each minute of each process in one. It may show more: what
/// was told and not looked for yet.
pub fn seen(pages: &Pages, former: &[Former], now: Millis) -> Vec<Component> {
    let oldest = Minute::of(Millis(now.0.saturating_sub(LOOK_BACK_MS)));
    let mut seen = minutes(pages.boot().0, pages.shown());
    for one in former {
        seen.extend(one.boot().into_iter().flat_map(|boot| minutes(boot.0, one.shown())));
    }
    seen.retain(|one| one.minute >= oldest);
    seen
}

fn minutes(boot: [u8; 16], sums: BTreeMap<Minute, Usage>) -> Vec<Component> {
    let whole = |(minute, usage)| Component {
        minute,
        boot,
        project_id: "".into(),
        key_id: "".into(),
        usage,
    };
    sums.into_iter().map(whole).collect()
}
