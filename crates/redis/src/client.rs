//! The way in: a call for a tag goes to its server once, by its deadline; only a redirect sends it on.

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, Value};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::clock::now;
use crate::dialer::Dialer;
use crate::error::CallError;
use crate::link::{Link, Plan, ServerView};
use crate::live::{Manner, Request};
use crate::numbering::{PUBLISH, count_key, publish_args};
use crate::options::Options;
use crate::route::{Followed, Route};
use crate::script::{Arg, ScriptId};
use crate::stats::{Stats, StatsReading};
use crate::subscription::Subscription;
use crate::tags::At;
use crate::url::RedisUrl;

/// A slot that moves takes one redirect, one that moves on meanwhile a second; more is a map that cannot be trusted.
const REDIRECTS_MAX: usize = 2;

/// All servers behind one URL. Clones share everything; with the last clone and subscription gone, all tasks and
/// connections end.
#[derive(Clone, Debug)]
pub struct Redis(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    route: Route,
    plan: Arc<Plan>,
    /// Behind the caller's own.
    publishing: ScriptId,
}

// === impl Redis ===

impl Redis {
    /// Returns at once; connections are made in the background on this runtime, for as long as it takes.
    pub fn start(url: &RedisUrl, mut options: Options, runtime: &Handle) -> Self {
        let publishing = ScriptId(options.scripts.len());
        options.scripts.push(PUBLISH);
        let dialer = Dialer::new(
            &url.login,
            url.db,
            url.tls.clone(),
            options.connect_deadline,
            options.in_flight_max,
        );
        let plan = Arc::new(Plan {
            dialer,
            options,
            stats: Stats::default(),
            vetted: watch::Sender::new(0),
            runtime: runtime.clone(),
        });
        Self(Arc::new(Inner { route: Route::start(url, &plan), plan, publishing }))
    }

    /// Runs a script on the server of this tag. All keys must carry `{tag}`. Never sent twice, unless a server of a
    /// cluster said that it did nothing and who has the slot.
    pub async fn run(
        &self,
        tag: u16,
        script: ScriptId,
        keys: &[&[u8]],
        args: &[Arg<'_>],
        deadline: Duration,
    ) -> Result<Value, CallError> {
        self.call(At::Tag(tag), Request::Script { script, keys, args }, deadline).await
    }

    /// The same on the home server. All keys must carry [`crate::HOME`].
    pub async fn run_at_home(
        &self,
        script: ScriptId,
        keys: &[&[u8]],
        args: &[Arg<'_>],
        deadline: Duration,
    ) -> Result<Value, CallError> {
        self.call(At::Home, Request::Script { script, keys, args }, deadline).await
    }

    /// One command, sent like a script. Keys must carry `{tag}`, or [`crate::HOME`] for [`At::Home`].
    pub async fn command(
        &self,
        at: At,
        command: &Cmd,
        deadline: Duration,
    ) -> Result<Value, CallError> {
        self.call(at, Request::Command(command), deadline).await
    }

    /// To all who are subscribed at that moment. It is counted, so that who should have heard it learns that something
    /// was said; what it was nobody learns later.
    pub async fn publish(
        &self,
        channel: &str,
        payload: &[u8],
        deadline: Duration,
    ) -> Result<(), CallError> {
        let (count, args) = (count_key(channel), publish_args(channel, payload));
        let keys = [count.as_bytes()];
        self.run_at_home(self.0.publishing, &keys, &args, deadline).await.map(|_| ())
    }

    /// Hears this channel until dropped, over any number of connections.
    pub fn subscribe(&self, channel: &str) -> Subscription {
        Subscription::start(self, channel.to_owned())
    }

    /// For a caller to whom a value cannot be the answer to what it asked: the connection that may have mixed up its
    /// answers is dropped, and vetted anew.
    pub fn distrust(&self, at: At) {
        if let Some(link) = self.0.route.link(at) {
            link.drop_connection();
        }
    }

    pub fn servers(&self) -> Vec<ServerView> {
        self.0.route.servers()
    }

    /// Counts vetted connections: whoever sees it change looks at [`Redis::servers`] for what is new.
    pub fn vetted(&self) -> watch::Receiver<u64> {
        self.0.plan.vetted.subscribe()
    }

    pub fn stats(&self) -> StatsReading {
        self.0.plan.stats.read()
    }

    /// Names need no tag where there is only one place for them.
    pub(crate) fn is_one_server(&self) -> bool {
        matches!(self.0.route, Route::Single(_) | Route::Sentinel(_))
    }

    pub(crate) fn plan(&self) -> &Arc<Plan> {
        &self.0.plan
    }

    pub(crate) fn home(&self) -> Option<Arc<Link>> {
        self.0.route.link(At::Home)
    }

    async fn call(
        &self,
        at: At,
        request: Request<'_>,
        patience: Duration,
    ) -> Result<Value, CallError> {
        let began = now();
        let result = self.follow(at, request, began + patience).await;
        self.0.plan.stats.called(&result, began.elapsed());
        if let Err(error) = &result {
            self.0.route.note(error);
        }
        result
    }

    async fn follow(
        &self,
        at: At,
        request: Request<'_>,
        deadline: tokio::time::Instant,
    ) -> Result<Value, CallError> {
        if !at.exists() {
            return Err(CallError::refused("there is no such tag"));
        }
        let mut link = self.0.route.link(at).ok_or(CallError::Away)?;
        let mut manner = Manner::Plain;
        for _ in 0..=REDIRECTS_MAX {
            let answer = link.call(at, request, manner, deadline).await?;
            (link, manner) = match self.0.route.follow(at, answer)? {
                Followed::Value(value) => return Ok(value),
                Followed::Elsewhere(link, manner) => (link, manner),
            };
            // Nothing was done so far, so there is no harm in waiting for the new server to be vetted.
            if !link.ready(at, manner, deadline).await {
                return Err(CallError::Away);
            }
        }
        Err(CallError::refused("redirected too often"))
    }
}
