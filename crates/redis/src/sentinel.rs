//! Follows the primary that the sentinels name: asks one of them, hears `+switch-master`, and turns the link.
//! What a sentinel says is only an address; whether a primary answers there is found out by vetting.

use std::sync::Arc;
use std::time::Duration;

use redis::Value;
use redis::aio::MultiplexedConnection;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::address::Address;
use crate::backoff::Backoff;
use crate::dialer::{Dialer, Dialled};
use crate::error::CallError;
use crate::link::{Link, Plan};
use crate::tags::Tags;
use crate::task::Task;
use crate::trouble::Trouble;

/// Behind the subscription, for a message that was lost; also shows that the sentinel still answers.
const POLL: Duration = Duration::from_secs(1);

/// A sentinel that is cut off from the others names the old primary for ever. After as many lost connections there
/// another one is asked.
const SAME_MAX: u32 = 3;

#[derive(Debug)]
pub(crate) struct Sentinel {
    pub(crate) link: Arc<Link>,
    _follower: Task,
}

struct Follower {
    sentinels: Vec<Address>,
    name: String,
    dialer: Dialer,
    patience: Duration,
    link: Arc<Link>,
    lost: Arc<Notify>,
}

// === impl Sentinel ===

impl Sentinel {
    pub(crate) fn start(
        plan: &Arc<Plan>,
        sentinels: Vec<Address>,
        name: String,
        dialer: Dialer,
    ) -> Self {
        let lost = Arc::new(Notify::new());
        let link = Link::start(plan, None, Tags::all(), lost.clone());
        let patience = plan.options.vetting_deadline;
        let follower = Follower { sentinels, name, dialer, patience, link: link.clone(), lost };
        let task = plan.runtime.spawn(follower.follow());
        Self { link, _follower: Task::new(&task) }
    }
}

// === impl Follower ===

impl Follower {
    async fn follow(self) {
        let mut backoff = Backoff::default();
        for sentinel in self.sentinels.iter().cycle() {
            let Err(trouble) = self.attend(sentinel, &mut backoff).await else { continue };
            tracing::debug!(%sentinel, %trouble, "this sentinel is of no help");
            if !self.link.is_connected() {
                self.link.note(Trouble::NoPrimary(format!("{sentinel}: {trouble}")));
            }
            let _ = timeout(backoff.next(), std::future::pending::<()>()).await;
        }
    }

    /// Listens to one sentinel for as long as it is of help.
    async fn attend(&self, sentinel: &Address, backoff: &mut Backoff) -> Result<(), Trouble> {
        let switched = Arc::new(Notify::new());
        let heard = switched.clone();
        let dialled = self.dialer.dial_to_hear(sentinel, move |_| heard.notify_one()).await?;
        let Dialled { mut connection, mut driver } = dialled;
        let subscribed = timeout(self.patience, connection.subscribe("+switch-master")).await;
        subscribed.map_err(|_| Trouble::Silent(self.patience.as_millis()))??;
        let mut same = 0;
        loop {
            let primary = self.primary(sentinel, &mut connection).await?;
            backoff.worked();
            if self.link.address().as_ref() == Some(&primary) && !self.link.is_connected() {
                same += 1;
            } else {
                same = 0;
            }
            self.link.turn_to(primary);
            if same > SAME_MAX {
                return Ok(());
            }
            tokio::select! {
                () = self.lost.notified() => {}
                () = switched.notified() => {}
                () = driver.ended() => return Err(Trouble::Unreachable("it closed the connection".into())),
                _ = timeout(POLL, std::future::pending::<()>()) => {}
            }
        }
    }

    async fn primary(
        &self,
        sentinel: &Address,
        connection: &mut MultiplexedConnection,
    ) -> Result<Address, Trouble> {
        let mut command = redis::cmd("SENTINEL");
        command.arg("GET-MASTER-ADDR-BY-NAME").arg(&self.name);
        let asked = timeout(self.patience, connection.send_packed_command(&command)).await;
        let reply = asked.map_err(|_| Trouble::Silent(self.patience.as_millis()))?;
        match reply.map_err(CallError::from)? {
            Value::Array(parts) => address(&parts, sentinel)
                .ok_or_else(|| Trouble::Strange(format!("{parts:?} for an address"))),
            Value::Nil => {
                Err(Trouble::Strange(format!("it watches no primary named {}", self.name)))
            }
            Value::ServerError(error) => Err(CallError::from(&error).into()),
            other => Err(Trouble::Strange(format!("{other:?} for an address"))),
        }
    }
}

fn address(parts: &[Value], asked: &Address) -> Option<Address> {
    let [Value::BulkString(host), Value::BulkString(port)] = parts else { return None };
    let text = format!("{}:{}", std::str::from_utf8(host).ok()?, std::str::from_utf8(port).ok()?);
    Address::from_redirect(&text, asked)
}
