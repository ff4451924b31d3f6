//! The life of a link in the background: connect, vet, ask the hook, open, watch, drop, and again.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::{Last, Shared};
use crate::address::Address;
use crate::backoff::Backoff;
use crate::clock::{after, now};
use crate::dialer::{Dialled, Driver};
use crate::error::CallError;
use crate::fresh::Fresh;
use crate::heard::Heard;
use crate::live::Live;
use crate::tags::Tags;
use crate::trouble::Trouble;
use crate::vetting::{Vetted, same_history, vet};

/// How often tags may be added while the hook is asked; a map that changes faster is waited out.
const ADDITIONS_MAX: usize = 16;

impl Shared {
    pub(super) async fn keep(self: Arc<Self>) {
        let mut target = self.target.subscribe();
        let mut backoff = Backoff::default();
        let mut tried = None;
        loop {
            let address = match target.wait_for(Option::is_some).await.as_deref() {
                Ok(Some(address)) => address.clone(),
                _ => return,
            };
            if tried.as_ref() != Some(&address) {
                backoff.worked();
            }
            // Before every attempt, also after one that went well: a server that lets us in and out again is not hammered.
            if timeout(backoff.next(), target.changed()).await.is_ok() {
                continue;
            }
            let established = tokio::select! {
                established = self.establish(&address) => established,
                _ = target.changed() => continue,
            };
            let trouble = match established {
                Ok((live, driver)) => {
                    let began = now();
                    let trouble = self.watch_over(live, driver, &mut target).await;
                    if began.elapsed() > self.plan.options.heartbeat {
                        backoff.worked();
                    }
                    trouble
                }
                Err(trouble) => {
                    self.plan.stats.not_connected();
                    Some(trouble)
                }
            };
            if let Some(trouble) = trouble {
                self.say(&address, trouble);
            }
            tried = Some(address);
            self.lost.notify_one();
        }
    }

    /// Once per reason, not once per attempt.
    fn say(&self, server: &Address, trouble: Trouble) {
        let mut state = self.state();
        if state.trouble.as_ref() == Some(&trouble) {
            tracing::debug!(%server, %trouble, "still no connection to Redis");
        } else {
            tracing::warn!(%server, %trouble, "no connection to Redis");
        }
        state.trouble = Some(trouble);
    }

    async fn establish(&self, address: &Address) -> Result<(Arc<Live>, Driver), Trouble> {
        let options = &self.plan.options;
        let Dialled { connection, driver } = self.plan.dialer.dial(address).await?;
        let vetted = timeout(options.vetting_deadline, vet(&connection, &options.scripts));
        let Vetted { identity, digests } = vetted.await.map_err(|_| self.silent())??;
        let unchecked = Live {
            connection,
            address: address.clone(),
            identity,
            heard: Arc::new(Heard::now()),
            digests,
            tags: Tags::default(),
            additions: 0,
            generation: 0,
        };
        let live = self.open(&unchecked).await?;
        self.plan.stats.connected();
        let (server, run_id) = (&live.address, &live.identity.run_id);
        tracing::info!(%server, %run_id, "connected to Redis");
        Ok((live, driver))
    }

    /// Asks the hook about a vetted connection and lets calls in for the tags that it was asked about.
    async fn open(&self, vetted: &Live) -> Result<Arc<Live>, Trouble> {
        for _ in 0..ADDITIONS_MAX {
            let (tags, additions, last) = {
                let state = self.state();
                (state.tags.clone(), *self.additions.borrow(), state.last.clone())
            };
            let generation = self.generation.load(Ordering::Relaxed) + 1;
            let live = Live { tags, additions, generation, ..vetted.clone() };
            if let Some(hook) = &self.plan.options.on_vetted {
                let (before, heard) = last.map(|last| (last.identity, last.heard)).unzip();
                let fresh = Fresh { live: live.clone(), before, heard };
                let checked = timeout(self.plan.options.vetting_deadline, hook.vetted(&fresh));
                let checked = checked.await.map_err(|_| self.silent())?;
                checked.map_err(Trouble::Unchecked)?;
            }
            if let Some(live) = self.let_calls_in(live) {
                return Ok(live);
            }
        }
        Err(Trouble::Unchecked(CallError::Unvetted))
    }

    /// Unless tags were added since the hook was asked.
    fn let_calls_in(&self, mut live: Live) -> Option<Arc<Live>> {
        let mut state = self.state();
        if *self.additions.borrow() != live.additions {
            return None;
        }
        live.tags = live.tags.intersection(&state.tags);
        let live = Arc::new(live);
        live.heard.again();
        state.last = Some(Last { identity: live.identity.clone(), heard: live.heard.clone() });
        state.trouble = None;
        self.generation.store(live.generation, Ordering::Relaxed);
        self.live.send_replace(Some(live.clone()));
        drop(state);
        self.plan.vetted.send_modify(|count| *count += 1);
        Some(live)
    }

    /// Until there is a reason to drop the connection; no reason if somebody else dropped it.
    async fn watch_over(
        &self,
        mut live: Arc<Live>,
        mut driver: Driver,
        target: &mut watch::Receiver<Option<Address>>,
    ) -> Option<Trouble> {
        let mut own = self.live.subscribe();
        let mut additions = self.additions.subscribe();
        let trouble = loop {
            let added =
                async { additions.wait_for(|count| *count != live.additions).await.is_ok() };
            let dropped = async { own.wait_for(Option::is_none).await.is_ok() };
            tokio::select! {
                () = driver.ended() => {
                    break Some(Trouble::Unreachable("it closed the connection".into()));
                }
                _ = dropped => break None,
                _ = target.changed() => break None,
                trouble = self.heartbeat(&live) => break Some(trouble),
                _ = added => match self.renew(&live).await {
                    Ok(renewed) => live = renewed,
                    Err(trouble) => break Some(trouble),
                },
            }
        };
        self.drop_generation(live.generation);
        // Calls under way get their answers; a socket that says nothing any more is not kept for them.
        let patience = self.plan.options.vetting_deadline;
        tokio::spawn(async move { timeout(patience, driver.ended()).await });
        trouble
    }

    /// The same connection for more tags: calls for the others go on meanwhile.
    async fn renew(&self, live: &Live) -> Result<Arc<Live>, Trouble> {
        let deadline = after(self.plan.options.vetting_deadline);
        same_history(&live.connection, &live.identity, deadline).await?;
        self.open(live).await
    }

    async fn heartbeat(&self, live: &Live) -> Trouble {
        let period = self.plan.options.heartbeat;
        let mut beats = interval(period);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        beats.tick().await;
        loop {
            beats.tick().await;
            let deadline = after(period / 2);
            if let Err(trouble) = same_history(&live.connection, &live.identity, deadline).await {
                return trouble;
            }
            live.heard.again();
        }
    }

    fn silent(&self) -> Trouble {
        Trouble::Silent(self.plan.options.vetting_deadline.as_millis())
    }
}
