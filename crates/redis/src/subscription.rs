//! A channel heard over any number of connections. What was published in between is lost, and said to be; so is a message
//! that got lost on a connection that stayed whole.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::{PushInfo, PushKind, Value};
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use crate::address::Address;
use crate::backoff::Backoff;
use crate::client::Redis;
use crate::dialer::Dialled;
use crate::numbering::Numbers;
use crate::task::Task;
use crate::trouble::Trouble;

/// Messages that wait for their reader. One that is slower loses some and hears of a gap; it polls then anyway.
const WAITING_MAX: usize = 1024;

/// Shows that the connection still lives, whether a message is missing, and whether the home server is another one by now.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub struct Subscription {
    messages: mpsc::Receiver<Vec<u8>>,
    gap: Arc<Gap>,
    _task: Task,
}

/// What a subscriber hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    Message(Vec<u8>),
    /// From here on messages come, but earlier ones may be missing: poll for what they would have said. The first
    /// thing heard is always this.
    Gap,
}

#[derive(Debug, Default)]
struct Gap {
    open: AtomicBool,
    told: Notify,
}

// === impl Subscription ===

impl Subscription {
    pub(crate) fn start(redis: &Redis, channel: String) -> Self {
        let (sender, messages) = mpsc::channel(WAITING_MAX);
        let gap = Arc::new(Gap::default());
        let listening = listen(redis.clone(), channel, sender, gap.clone());
        let task = redis.plan().runtime.spawn(listening);
        Self { messages, gap, _task: Task::new(&task) }
    }

    /// The next message or gap. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Heard {
        loop {
            if self.gap.open.swap(false, Ordering::AcqRel) {
                return Heard::Gap;
            }
            tokio::select! {
                biased;
                () = self.gap.told.notified() => {}
                Some(message) = self.messages.recv() => return Heard::Message(message),
            }
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("waiting", &self.messages.len())
            .finish_non_exhaustive()
    }
}

// === impl Gap ===

impl Gap {
    fn tell(&self) {
        self.open.store(true, Ordering::Release);
        self.told.notify_one();
    }
}

async fn listen(redis: Redis, channel: String, sender: mpsc::Sender<Vec<u8>>, gap: Arc<Gap>) {
    let mut backoff = Backoff::default();
    loop {
        let _ = timeout(backoff.next(), std::future::pending::<()>()).await;
        let Some(home) = redis.home().and_then(|link| link.address()) else { continue };
        let ended = hear(&redis, &home, &channel, &sender, &gap, &mut backoff).await;
        if let Err(trouble) = ended {
            tracing::debug!(server = %home, %trouble, channel, "not subscribed");
        }
    }
}

/// Until this connection ends or the home moves.
async fn hear(
    redis: &Redis,
    home: &Address,
    channel: &str,
    sender: &mpsc::Sender<Vec<u8>>,
    gap: &Arc<Gap>,
    backoff: &mut Backoff,
) -> Result<(), Trouble> {
    let plan = redis.plan();
    let patience = plan.options.vetting_deadline;
    let numbers = Arc::new(Numbers::default());
    let (to, missed, counting) = (sender.clone(), gap.clone(), Arc::clone(&numbers));
    let pass_on = move |info: PushInfo| {
        let Some(payload) = payload(info) else { return };
        let (message, whole) = counting.hear(payload);
        // Before the message that shows it.
        if !whole {
            missed.tell();
        }
        if to.try_send(message).is_err() {
            missed.tell();
        }
    };
    let Dialled { mut connection, mut driver } = plan.dialer.dial_to_hear(home, pass_on).await?;
    let subscribed = timeout(patience, connection.subscribe(channel)).await;
    subscribed.map_err(|_| Trouble::Silent(patience.as_millis()))??;
    // From here on messages have numbers to go by. What came before is in the gap that every connection begins with.
    numbers.agree(&mut connection, channel, patience).await?;
    backoff.worked();
    gap.tell();
    loop {
        if timeout(LOOK_EVERY, driver.ended()).await.is_ok() {
            return Err(Trouble::Unreachable("it closed the connection".into()));
        }
        if !numbers.agree(&mut connection, channel, patience).await? {
            tracing::debug!(server = %home, channel, "a message is missing");
            gap.tell();
        }
        if redis.home().and_then(|link| link.address()).as_ref() != Some(home) {
            return Ok(());
        }
    }
}

fn payload(info: PushInfo) -> Option<Vec<u8>> {
    let message = info.kind == PushKind::Message;
    match info.data.into_iter().nth(1) {
        Some(Value::BulkString(payload)) if message => Some(payload),
        _ => None,
    }
}
