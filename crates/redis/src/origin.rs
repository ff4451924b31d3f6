//! The shared origin of limits: lease calls, epochs, members and news over Redis. It keeps no counters itself.

use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use redis::{Value, cmd};
use tokio::runtime::Handle;
use tokio::time::timeout;
use tollkeeper_core::{Boot, Millis, Take, Taken};
use tollkeeper_decide::{Asking, CellName, History, Missed, News, Origin, Scope};

use crate::address::Address;
use crate::client::Redis;
use crate::clock::now;
use crate::epoch::{self, Epoch};
use crate::error::CallError;
use crate::link::ServerView;
use crate::name::{record_pattern, written};
use crate::news::{self, BUS};
use crate::options::Options;
use crate::script::{Arg, ScriptId};
use crate::server_time::ServerTimes;
use crate::subscription::{Heard, Subscription};
use crate::tags::{At, HOME, TAGS};
use crate::take::TakeCall;
use crate::url::RedisUrl;

pub(crate) const TAKE: ScriptId = ScriptId(0);
pub(crate) const EPOCH: ScriptId = ScriptId(1);
const RESET: ScriptId = ScriptId(2);
const MEMBERS: ScriptId = ScriptId(3);
pub(crate) const KEEP: ScriptId = ScriptId(4);
pub(crate) const TELL: ScriptId = ScriptId(5);
pub(crate) const UNTELL: ScriptId = ScriptId(6);
pub(crate) const PRESENT: ScriptId = ScriptId(7);
pub(crate) const FIRST: ScriptId = ScriptId(8);
pub(crate) const UNLOCK: ScriptId = ScriptId(9);

/// Scripts in the order of their ids.
const SCRIPTS: [&str; 10] = [
    concat!(include_str!("scripts/unfold.lua"), include_str!("scripts/take.lua")),
    include_str!("scripts/epoch.lua"),
    concat!(include_str!("scripts/unfold.lua"), include_str!("scripts/reset.lua")),
    include_str!("scripts/members.lua"),
    include_str!("scripts/keep.lua"),
    include_str!("scripts/tell.lua"),
    include_str!("scripts/untell.lua"),
    include_str!("scripts/present.lua"),
    include_str!("scripts/first.lua"),
    include_str!("scripts/unlock.lua"),
];

/// A node that was not heard of for so long is none.
const ALIVE_MS: u64 = 5_000;

/// Patience where no request waits.
pub(crate) const AT_LEISURE: Duration = Duration::from_millis(250);

/// What must be said is said until it was taken in: so often at most, with a pause between.
const SAID_TIMES_MAX: u32 = 8;
const SAY_AGAIN: Duration = Duration::from_millis(250);

/// Keys that one step of a walk looks at.
const SCAN_COUNT: u32 = 5_000;

#[derive(Clone)]
pub struct RedisOrigin(Arc<Inner>);

struct Inner {
    redis: Redis,
    boot: Boot,
    /// Which server has a tag, by its place in the list.
    places: RwLock<Places>,
    /// The last probe was refused.
    refused: AtomicBool,
    times: ServerTimes,
    runtime: Handle,
}

#[derive(Debug, Default)]
struct Places {
    of_tag: Vec<u8>,
    servers: Vec<Place>,
    addresses: Vec<Option<Address>>,
    /// Counts lists of addresses.
    numbering: u64,
}

#[derive(Clone, Debug)]
struct Place {
    /// One of its tags.
    tag: Option<u16>,
    connected: bool,
    run_id: Option<Arc<str>>,
    /// Counts processes.
    life: u64,
    /// The tag after the one that it was last probed for. Its own, and not one of all servers: they are probed in turn, so each
    /// would only ever come to every second or third tag.
    probed: Arc<AtomicU16>,
}

// === impl RedisOrigin ===

impl RedisOrigin {
    /// Returns at once; connections are made in the background.
    pub fn start(url: &RedisUrl, boot: Boot, runtime: &Handle) -> Self {
        let options = Options {
            scripts: SCRIPTS.to_vec(),
            on_vetted: Some(Arc::new(epoch::Renewal)),
            ..Options::default()
        };
        let redis = Redis::start(url, options, runtime);
        let origin = Self(Arc::new(Inner {
            redis,
            boot,
            places: RwLock::default(),
            refused: AtomicBool::new(false),
            times: ServerTimes::default(),
            runtime: runtime.clone(),
        }));
        origin.0.look();
        runtime.spawn(keep_places(Arc::downgrade(&origin.0)));
        origin
    }

    pub fn redis(&self) -> &Redis {
        &self.0.redis
    }

    /// Which of the servers with cells this is, as [`Origin::servers`] counts them.
    pub fn place_of(&self, address: Option<&Address>) -> Option<usize> {
        let is_it = |one: &Option<Address>| one.as_ref() == address;
        self.0.with_places(|places| places.addresses.iter().position(is_it))
    }

    /// Has every server heard everybody? Epochs are renewed in the order of tags, so the last one is the last to know.
    pub async fn is_settled(&self) -> bool {
        let last: Vec<Option<u16>> = self.0.with_places(|places| {
            let of = |server| {
                let here = |tag: &u16| usize::from(places.of_tag[usize::from(*tag)]) == server;
                (0..TAGS).rev().find(here)
            };
            (0..places.servers.len()).map(of).collect()
        });
        for tag in last.into_iter().flatten() {
            if !Epoch::ask(&self.0.redis, tag).await.is_ok_and(|epoch| !epoch.is_learning()) {
                return false;
            }
        }
        true
    }

    /// What the clock of a server says by now, by its place among those with cells, as [`Origin::servers`] counts them; nothing
    /// where it was not heard lately.
    pub fn time_of(&self, server: usize) -> Option<Millis> {
        self.0.times.read(server)
    }

    /// What other nodes say.
    pub fn listen(&self) -> Listener {
        Listener(self.0.redis.subscribe(BUS))
    }
}

/// News as they come.
pub struct Listener(Subscription);

/// What is heard on the bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BusEvent {
    News(News),
    /// Some may have been missed: look for yourself.
    Gap,
}

// === impl Listener ===

impl Listener {
    pub async fn next(&mut self) -> BusEvent {
        loop {
            match self.0.next().await {
                Heard::Gap => return BusEvent::Gap,
                Heard::Message(message) => {
                    if let Some(news) = news::read(&message) {
                        return BusEvent::News(news);
                    }
                }
            }
        }
    }
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listener")
    }
}

async fn keep_places(inner: std::sync::Weak<Inner>) {
    let mut ticks = tokio::time::interval(Duration::from_millis(50));
    loop {
        ticks.tick().await;
        let Some(inner) = inner.upgrade() else { return };
        inner.look();
    }
}

// === impl Inner ===

impl Inner {
    /// Which tags are where, and who is connected.
    fn look(&self) {
        let mut views = self.redis.servers();
        // One whose slots went to others still answers, and counts nothing of ours: there is nothing to ask it, and nothing
        // amiss with it. Before anybody is found, all stand for one that is away.
        let counts = |view: &ServerView| view.tags.iter().next().is_some();
        if views.iter().any(counts) {
            views.retain(counts);
        }
        let addresses = views.iter().map(|view| view.address.clone()).collect();
        let mut places =
            Places { of_tag: vec![0; usize::from(TAGS)], addresses, ..Places::default() };
        for (place, view) in views.iter().enumerate() {
            for tag in view.tags.iter() {
                places.of_tag[usize::from(tag)] = u8::try_from(place).unwrap_or(u8::MAX);
            }
        }
        let mut known = self.places.write().unwrap_or_else(PoisonError::into_inner);
        let with_places = views.iter().enumerate();
        let servers = with_places.map(|(at, view)| Place::of(view, known.servers.get(at)));
        places.servers = servers.collect();
        let other = u64::from(known.addresses != places.addresses);
        places.numbering = known.numbering + other;
        *known = places;
    }

    fn with_places<T>(&self, then: impl FnOnce(&Places) -> T) -> T {
        then(&self.places.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Another tag of the server with every call, so that all epochs are looked at, and kept, within minutes.
    fn some_tag(&self, server: usize) -> Option<u16> {
        self.with_places(|places| {
            let here = |tag: &u16| {
                places.of_tag.get(usize::from(*tag)).is_some_and(|at| usize::from(*at) == server)
            };
            places.servers.get(server)?.next_tag(here)
        })
    }

    async fn take(&self, call: TakeCall, take: Take, patience: Duration) -> Result<Taken, Missed> {
        let answer = self.redis.run(call.tag, TAKE, &call.keys(), &call.args(), patience).await;
        let value = answer.map_err(|error| missed(&error))?;
        call.answer(&take, &value).ok_or_else(|| {
            tracing::error!("redis gave an answer to another call: its connection is dropped");
            self.redis.distrust(At::Tag(call.tag));
            Missed::Silent
        })
    }

    async fn probe(&self, server: usize) -> Result<History, Missed> {
        let tag = self.some_tag(server).ok_or(Missed::Away)?;
        let began = now();
        let asked = Epoch::ask(&self.redis, tag).await;
        self.tell_refusal(asked.as_ref().err());
        let epoch = asked.map_err(|error| missed(&error))?;
        self.times.note(server, epoch.now_ms(), began);
        if epoch.is_new() {
            // Everything is gone, not this one key: all tags learn at once.
            let tags: Vec<u16> = self.with_places(|places| {
                let here = |tag: &u16| usize::from(places.of_tag[usize::from(*tag)]) == server;
                (0..TAGS).filter(here).collect()
            });
            epoch::renew_all(&self.redis, tags).await;
        }
        Ok(epoch.history())
    }

    /// A server that answers and refuses is an outage that somebody can end, so it is said why. Once, not ten times a second.
    fn tell_refusal(&self, error: Option<&CallError>) {
        let refused = matches!(error, Some(CallError::Refused(_)));
        let told = self.refused.swap(refused, Ordering::Relaxed);
        if let Some(error) = error
            && refused
            && !told
        {
            tracing::error!("no limit can be counted: {error}");
        }
    }

    async fn members(&self, word: &str) -> Result<u64, Missed> {
        let key = format!("tk:members:{HOME}");
        let boot = self.boot.text();
        let command_args = [Arg::from(&boot[..]), Arg::from(ALIVE_MS), Arg::from(word)];
        let value =
            self.redis.run_at_home(MEMBERS, &[key.as_bytes()], &command_args, AT_LEISURE).await;
        match value.map_err(|error| missed(&error))? {
            Value::Int(nodes) => Ok(u64::try_from(nodes).unwrap_or(1).max(1)),
            _ => Err(Missed::Silent),
        }
    }

    /// Tells all nodes, at most so many times until a server has taken it in.
    async fn say(&self, message: &str, times: u32) {
        for said in 1..=times {
            let published = self.redis.publish(BUS, message.as_bytes(), AT_LEISURE).await;
            if published.is_ok() || said == times {
                return;
            }
            let _ = timeout(SAY_AGAIN, std::future::pending::<()>()).await;
        }
    }

    /// Walks every server: which shapes an identifier was counted in is known to nobody.
    async fn reset(&self, pattern: String, identifier: Option<String>) -> Result<u64, Missed> {
        let servers = self.with_places(|places| places.servers.clone());
        let mut reset = 0;
        for tag in servers.into_iter().filter_map(|place| place.tag) {
            let mut cursor = 0_u64;
            loop {
                let (next, keys) = self.scan(tag, cursor, &pattern).await?;
                // A star of the pattern may have met more than the one part that it stands for.
                let meant = |key: &String| {
                    identifier.as_deref().is_none_or(|one| key.split(':').nth(3) == Some(one))
                };
                for key in keys.into_iter().filter(meant) {
                    reset += self.reset_one(&key).await?;
                }
                cursor = next;
                if cursor == 0 {
                    break;
                }
            }
        }
        Ok(reset)
    }

    async fn scan(
        &self,
        tag: u16,
        cursor: u64,
        pattern: &str,
    ) -> Result<(u64, Vec<String>), Missed> {
        let mut scan = cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(SCAN_COUNT);
        let value = self.redis.command(At::Tag(tag), &scan, AT_LEISURE).await;
        let value = value.map_err(|error| missed(&error))?;
        redis::from_redis_value(value).map_err(|_| Missed::Silent)
    }

    async fn reset_one(&self, key: &str) -> Result<u64, Missed> {
        let Some(tag) = tag_of(key) else { return Ok(0) };
        let value = self.redis.run(tag, RESET, &[key.as_bytes()], &[], AT_LEISURE).await;
        match value.map_err(|error| missed(&error))? {
            Value::Int(number) => Ok(u64::try_from(number).unwrap_or(0)),
            _ => Err(Missed::Silent),
        }
    }
}

// === impl Place ===

impl Place {
    fn of(view: &ServerView, before: Option<&Self>) -> Self {
        let (run_id, lives) = before.map_or((None, 0), |it| (it.run_id.as_ref(), it.life));
        Self {
            tag: view.tags.iter().next(),
            connected: view.connected,
            life: lives + u64::from(run_id != view.run_id.as_ref()),
            run_id: view.run_id.clone(),
            probed: before.map(|it| Arc::clone(&it.probed)).unwrap_or_default(),
        }
    }

    /// All of its tags in turn.
    fn next_tag(&self, here: impl Fn(&u16) -> bool) -> Option<u16> {
        let from = self.probed.load(Ordering::Relaxed) % TAGS;
        let found = (from..TAGS).chain(0..from).find(here).or(self.tag)?;
        self.probed.store(found + 1, Ordering::Relaxed);
        Some(found)
    }
}

fn tag_of(key: &str) -> Option<u16> {
    let (tag, _) = key.strip_prefix("rl:{")?.split_once('}')?;
    tag.parse().ok().filter(|tag| *tag < TAGS)
}

pub(crate) fn missed(error: &CallError) -> Missed {
    if error.maybe_applied() { Missed::Silent } else { Missed::Away }
}

impl Origin for RedisOrigin {
    fn take(&self, name: &Arc<CellName>, take: &Take, patience: Duration) -> Asking<Taken> {
        let (inner, call, take) = (Arc::clone(&self.0), TakeCall::new(name, take), *take);
        Box::pin(async move { inner.take(call, take, patience).await })
    }

    fn server(&self, name: &CellName) -> usize {
        let tag = usize::from(name.tag());
        self.0.with_places(|places| places.of_tag.get(tag).map_or(0, |place| usize::from(*place)))
    }

    fn servers(&self) -> usize {
        self.0.with_places(|places| places.servers.len())
    }

    fn numbering(&self) -> u64 {
        self.0.with_places(|places| places.numbering)
    }

    fn life(&self, server: usize) -> u64 {
        self.0.with_places(|places| places.servers.get(server).map_or(0, |place| place.life))
    }

    fn is_connected(&self, server: usize) -> bool {
        self.0.with_places(|places| places.servers.get(server).is_some_and(|place| place.connected))
    }

    fn probe(&self, server: usize) -> Asking<History> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { inner.probe(server).await })
    }

    fn members(&self) -> Asking<u64> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { inner.members("").await })
    }

    fn leave(&self) -> Asking<()> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { inner.members("leave").await.map(|_| ()) })
    }

    fn announce(&self, news: &News) {
        let (inner, message) = (Arc::clone(&self.0), news::write(news));
        let times = match news {
            // A moment later it is too late for them.
            News::Recall { .. } | News::Lost { .. } => 1,
            // Heard twice they do no harm; not said, nobody could miss them.
            News::Gather { .. } | News::Reset { .. } | News::Changed => SAID_TIMES_MAX,
        };
        self.0.runtime.spawn(async move { inner.say(&message, times).await });
    }

    fn reset(&self, scope: &Arc<Scope>, identifier: Option<&str>) -> Asking<u64> {
        let (inner, pattern) = (Arc::clone(&self.0), record_pattern(scope, identifier));
        let identifier = identifier.map(written);
        Box::pin(async move { inner.reset(pattern, identifier).await })
    }
}

impl std::fmt::Debug for RedisOrigin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisOrigin").field("redis", &self.0.redis).finish_non_exhaustive()
    }
}
