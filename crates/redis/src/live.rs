//! One vetted connection and how a call goes over it: once, to its deadline, with every end told apart.
//! It never sends anything twice.

use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, Pipeline, RedisResult, Value};
use tokio::time::{Instant, timeout_at};

use crate::address::Address;
use crate::error::CallError;
use crate::heard::Heard;
use crate::script::{Arg, ScriptId};
use crate::tags::{At, Tags};

/// A connection to a process that was vetted, with the digests that only this process knows.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    pub(crate) connection: MultiplexedConnection,
    pub(crate) address: Address,
    pub(crate) identity: Identity,
    /// When this process was last heard over it.
    pub(crate) heard: Arc<Heard>,
    pub(crate) digests: Arc<[String]>,
    /// What it was vetted for and still serves.
    pub(crate) tags: Tags,
    /// How often tags had been added to the link when it was vetted for these.
    pub(crate) additions: u64,
    /// How many times this link was vetted, this one included.
    pub(crate) generation: u64,
}

/// Which life of which process, and which history it continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// New at every start of the process.
    pub run_id: Arc<str>,
    /// New also when a replica becomes primary, which keeps its run id.
    pub replication_id: Arc<str>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Request<'a> {
    Script { script: ScriptId, keys: &'a [&'a [u8]], args: &'a [Arg<'a>] },
    Command(&'a Cmd),
}

/// An answer that is no failure: the value, or word that another server has the key and nothing was done here.
#[derive(Debug)]
pub(crate) enum Answer {
    Value(Value),
    Moved { slot: u16, to: Address },
    Ask { to: Address },
}

/// How a call comes to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// As one that the server was vetted for.
    Plain,
    /// The slot is on its way to it, and it is told that we know.
    Asking,
    /// The key is of another slot than its tag, so no tag says anything about it.
    Stray,
}

// === impl Live ===

impl Live {
    pub(crate) fn serves(&self, at: At, manner: Manner) -> bool {
        manner != Manner::Plain || self.tags.contains(at)
    }

    pub(crate) async fn send(
        &self,
        request: Request<'_>,
        manner: Manner,
        deadline: Instant,
    ) -> Result<Answer, CallError> {
        let made;
        let command = match request {
            Request::Command(command) => command,
            Request::Script { script, keys, args } => {
                made = self.evalsha(script, keys, args)?;
                &made
            }
        };
        let mut connection = self.connection.clone();
        let sent = async {
            match manner {
                Manner::Plain | Manner::Stray => connection.send_packed_command(command).await,
                Manner::Asking => asking(&mut connection, command).await,
            }
        };
        let replied = timeout_at(deadline, sent).await.map_err(|_| CallError::Late)?;
        self.understood(replied?)
    }

    /// All in one write; the answers come in the same order.
    pub(crate) async fn send_all(
        &self,
        commands: &[Cmd],
        deadline: Instant,
    ) -> Result<Vec<Result<Value, CallError>>, CallError> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipeline = Pipeline::with_capacity(commands.len());
        for command in commands {
            pipeline.add_command(command.clone());
        }
        let mut connection = self.connection.clone();
        let sent = connection.send_packed_commands(&pipeline, 0, commands.len());
        let replies = timeout_at(deadline, sent).await.map_err(|_| CallError::Late)??;
        if replies.len() != commands.len() {
            let text = format!("{} answers to {} commands", replies.len(), commands.len());
            return Err(CallError::Strange(text));
        }
        Ok(replies.into_iter().map(|reply| self.understood(reply)?.into_value()).collect())
    }

    fn evalsha(
        &self,
        script: ScriptId,
        keys: &[&[u8]],
        args: &[Arg<'_>],
    ) -> Result<Cmd, CallError> {
        let digest = self.digests.get(script.0);
        let digest = digest.ok_or_else(|| CallError::refused("there is no such script"))?;
        // The bytes are a guess that spares growing for the usual call.
        let mut command = Cmd::with_capacity(3 + keys.len() + args.len(), 256);
        command.arg("EVALSHA").arg(digest).arg(keys.len());
        for key in keys {
            command.arg(*key);
        }
        for arg in args {
            command.arg(arg);
        }
        Ok(command)
    }

    fn understood(&self, reply: Value) -> Result<Answer, CallError> {
        let Value::ServerError(error) = reply else {
            return Ok(Answer::Value(reply));
        };
        let code = error.code();
        if !matches!(code, "MOVED" | "ASK") {
            return Err(CallError::from(&error));
        }
        let strange = || CallError::Strange(error.to_string());
        let (slot, to) = error.details().and_then(|d| d.split_once(' ')).ok_or_else(strange)?;
        let slot = slot.parse().map_err(|_| strange())?;
        let to = Address::from_redirect(to.trim(), &self.address).ok_or_else(strange)?;
        Ok(if code == "ASK" { Answer::Ask { to } } else { Answer::Moved { slot, to } })
    }
}

/// Both in one write, so that no other call comes between ASKING and what it is for.
async fn asking(connection: &mut MultiplexedConnection, command: &Cmd) -> RedisResult<Value> {
    let mut pipeline = Pipeline::with_capacity(2);
    pipeline.cmd("ASKING").add_command(command.clone());
    let mut replies = connection.send_packed_commands(&pipeline, 0, 2).await?;
    Ok(replies.pop().unwrap_or_default())
}

// === impl Answer ===

impl Answer {
    /// For those who cannot follow a redirect.
    pub(crate) fn into_value(self) -> Result<Value, CallError> {
        match self {
            Self::Value(value) => Ok(value),
            Self::Moved { to, .. } | Self::Ask { to } => Err(CallError::refused(format!(
                "the key is at {to}: for a Redis Cluster the URL begins with redis-cluster://"
            ))),
        }
    }
}
