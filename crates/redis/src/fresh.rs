//! A new connection in the moment between being vetted and being used, and who is asked about it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, Value};

use crate::address::Address;
use crate::clock::after;
use crate::error::CallError;
use crate::heard::Heard;
use crate::live::{Answer, Identity, Live, Manner, Request};
use crate::script::{Arg, ScriptId};
use crate::tags::Tags;

/// The end of a check: `Ok` opens the connection for calls, an error drops it and the link tries again.
pub type Checking<'a> = Pin<Box<dyn Future<Output = Result<(), CallError>> + Send + 'a>>;

/// Asked about every new connection before any call goes over it, and about an old one before calls for tags that came
/// to its server later. It may be dropped midway and asked again. Closures of this shape are one.
pub trait OnVetted: Send + Sync {
    fn vetted<'a>(&'a self, fresh: &'a Fresh) -> Checking<'a>;
}

/// A vetted connection that nobody uses yet.
pub struct Fresh {
    pub(crate) live: Live,
    pub(crate) before: Option<Identity>,
    pub(crate) heard: Option<Arc<Heard>>,
}

impl<F> OnVetted for F
where
    F: for<'a> Fn(&'a Fresh) -> Checking<'a> + Send + Sync,
{
    fn vetted<'a>(&'a self, fresh: &'a Fresh) -> Checking<'a> {
        self(fresh)
    }
}

// === impl Fresh ===

impl Fresh {
    pub fn address(&self) -> &Address {
        &self.live.address
    }

    pub fn run_id(&self) -> &str {
        &self.live.identity.run_id
    }

    pub fn identity(&self) -> &Identity {
        &self.live.identity
    }

    /// Of the last time that this link was vetted, `None` for the first.
    pub fn before(&self) -> Option<&Identity> {
        self.before.as_ref()
    }

    /// How long ago the process that was here before was last heard, if it was another: this one may not know what that one
    /// did until then.
    pub fn another_was_heard(&self) -> Option<Duration> {
        let another = self.before.as_ref().is_some_and(|before| *before.run_id != *self.run_id());
        self.heard.as_ref().filter(|_| another).map(|heard| heard.ago())
    }

    pub fn generation(&self) -> u64 {
        self.live.generation
    }

    /// What this server serves. When a tag comes to a server later, this is asked again with all tags.
    pub fn tags(&self) -> &Tags {
        &self.live.tags
    }

    pub async fn run(
        &self,
        script: ScriptId,
        keys: &[&[u8]],
        args: &[Arg<'_>],
        deadline: Duration,
    ) -> Result<Value, CallError> {
        self.send(Request::Script { script, keys, args }, deadline).await
    }

    pub async fn command(&self, command: &Cmd, deadline: Duration) -> Result<Value, CallError> {
        self.send(Request::Command(command), deadline).await
    }

    /// Many in one write, for what must be asked of every tag. The answers come in the same order.
    pub async fn commands(
        &self,
        commands: &[Cmd],
        deadline: Duration,
    ) -> Result<Vec<Result<Value, CallError>>, CallError> {
        self.live.send_all(commands, after(deadline)).await
    }

    async fn send(&self, request: Request<'_>, deadline: Duration) -> Result<Value, CallError> {
        let answer = self.live.send(request, Manner::Plain, after(deadline)).await;
        answer.and_then(Answer::into_value)
    }
}

impl fmt::Debug for Fresh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fresh")
            .field("address", &self.live.address)
            .field("identity", &self.live.identity)
            .field("before", &self.before)
            .field("tags", &self.live.tags)
            .finish_non_exhaustive()
    }
}
