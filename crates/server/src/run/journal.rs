//! The journal when a process starts: what the one before left, what this one keeps, and who keeps it.

use std::sync::Arc;

use tollkeeper_account::{
    CreditSpent, Entry, Journal, Keeper, LeaseLeft, Recovered, SharedJournal,
};
use tollkeeper_decide::{Cells, Decider};
use tollkeeper_redis::UsageBuffer;
use tollkeeper_store::Store;

use super::ServeError;
use crate::clock::Clock;
use crate::data_dir::DataDir;
use crate::estate::Estate;
use crate::fleet::Shared;
use crate::lease_estate::LeaseEstate;
use crate::settings::Settings;
use crate::usage::UsageFlow;

pub(super) fn open_journal(
    data_dir: &DataDir,
    cells: &Cells,
    clock: &Clock,
) -> Result<(SharedJournal, Recovered, Estate, LeaseEstate), ServeError> {
    let now = clock.now();
    let (estate, leases) = (Estate::default(), LeaseEstate::new(clock.clone()));
    let (journal, recovered) = Journal::open(&data_dir.journal(), now, |entry| match entry {
        Entry::Cell(change) => cells.replay(change, now),
        Entry::Spent(spent) => estate.add(spent),
        Entry::Lease(left) => leases.add(left),
    })?;
    estate.name(&recovered);
    leases.judge(&recovered);
    Ok((SharedJournal::new(journal), recovered, estate, leases))
}

/// The pages that usage is counted in, those of former processes, and their way to the database.
pub(super) fn usage_flow(
    journal: &SharedJournal,
    settings: &Settings,
    store: &Store,
    shared: Option<&Shared>,
    clock: &Clock,
) -> Result<Arc<UsageFlow>, ServeError> {
    let (pages, former) = journal.lock().pages()?;
    let buffer = shared.map(|shared| UsageBuffer::new(shared.origin.redis().clone()));
    let (pages, lag_ms) = (Arc::new(pages), settings.flush_lag_ms);
    let flow = UsageFlow::new(pages, former, store.clone(), buffer, clock.clone(), lag_ms);
    Ok(Arc::new(flow))
}

pub(super) fn start_keeper(
    journal: &SharedJournal,
    cells: Arc<Cells>,
    decider: &Arc<Decider>,
    estate: &Arc<Estate>,
    held: impl Fn() -> Vec<LeaseLeft> + Send + 'static,
    clock: &Clock,
) -> Result<Keeper, ServeError> {
    let boot = journal.lock().boot();
    let (decider, estate, clock) = (Arc::clone(decider), Arc::clone(estate), clock.clone());
    // What the dead left stays in the journal until it is settled.
    let spendings = move || {
        let totals = decider.purse().totals().into_iter();
        let own = totals.map(|(key_id, total)| CreditSpent { boot, key_id, total });
        own.chain(estate.unsettled()).collect()
    };
    Ok(Keeper::start(journal.clone(), cells, spendings, held, move || clock.now())?)
}

/// What this process holds of shared limits, and what those before it held and could not give back yet.
pub(super) fn held_leases(
    shared: Option<Shared>,
    dead: Arc<LeaseEstate>,
) -> impl Fn() -> Vec<LeaseLeft> + Send + 'static {
    move || {
        let own = shared.as_ref().map(Shared::leases).unwrap_or_default();
        own.into_iter().chain(dead.unsettled()).collect()
    }
}
