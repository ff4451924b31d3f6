//! What is asked of a new connection before any script may run on it: which process, which version, which role, and
//! whether it keeps what it is given.
//! Then the scripts are loaded, each bound to this process, and the process is asked for its name once more.

use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, Value};
use tokio::time::{Instant, timeout_at};

use crate::error::CallError;
use crate::live::Identity;
use crate::script::bound;
use crate::trouble::Trouble;

/// The oldest major version whose scripts stay on the server that loaded them instead of reaching its replicas.
const OLDEST_MAJOR: u32 = 7;

/// What vetting found.
#[derive(Debug)]
pub(crate) struct Vetted {
    pub(crate) identity: Identity,
    pub(crate) digests: Arc<[String]>,
}

/// Two round trips, whatever is asked: a network that is bad enough to break connections breaks long greetings too.
pub(crate) async fn vet(
    connection: &MultiplexedConnection,
    scripts: &[&str],
) -> Result<Vetted, Trouble> {
    let mut questions = who();
    questions.push(info("memory"));
    let mut answers = ask_all(connection, questions).await?;
    keeps_records(answers.pop())?;
    let first = identity(answers)?;
    let load = |script: &&str| {
        let mut load = redis::cmd("SCRIPT");
        load.arg("LOAD").arg(bound(script, &first.run_id));
        load
    };
    let mut questions: Vec<Cmd> = scripts.iter().map(load).collect();
    questions.append(&mut who());
    let mut answers = ask_all(connection, questions).await?;
    // A proxy may have turned to another process in between; its name tells.
    let again = answers.split_off(scripts.len());
    if identity(again)?.run_id != first.run_id {
        return Err(Trouble::Switched);
    }
    let digests = answers.into_iter().map(text).collect::<Result<Vec<_>, _>>()?;
    Ok(Vetted { identity: first, digests: digests.into() })
}

/// The heartbeat: whether the same history still goes on behind this connection.
pub(crate) async fn same_history(
    connection: &MultiplexedConnection,
    identity: &Identity,
    deadline: Instant,
) -> Result<(), Trouble> {
    let asked = timeout_at(deadline, ask_all(connection, vec![info("replication")])).await;
    let said = asked.map_err(|_| Trouble::Unreachable("no answer to the heartbeat".into()))??;
    let said = text(said.into_iter().next().unwrap_or(Value::Nil))?;
    let primary = field(&said, "role") == Some("master");
    let same = replication_id(&said) == &*identity.replication_id;
    if primary && same { Ok(()) } else { Err(Trouble::Demoted) }
}

/// What [`identity`] is read from.
fn who() -> Vec<Cmd> {
    vec![info("server"), redis::cmd("ROLE"), info("replication")]
}

fn identity(answers: Vec<Value>) -> Result<Identity, Trouble> {
    let Ok([server, role, replication]) = <[Value; 3]>::try_from(answers) else {
        return Err(Trouble::Strange("another number of answers than of questions".into()));
    };
    let server = text(server)?;
    let missing = |name: &str| Trouble::Strange(format!("INFO without {name}"));
    let version = field(&server, "redis_version").ok_or_else(|| missing("redis_version"))?;
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_none_or(|major| major < OLDEST_MAJOR) {
        return Err(Trouble::TooOld(version.to_owned()));
    }
    let run_id = field(&server, "run_id").ok_or_else(|| missing("run_id"))?;
    // It becomes part of a script's text.
    if run_id.is_empty() || !run_id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Trouble::Strange("a run id that is not hexadecimal".into()));
    }
    if !is_primary(&role) {
        return Err(Trouble::NotPrimary);
    }
    let replication = text(replication)?;
    Ok(Identity { run_id: run_id.into(), replication_id: replication_id(&replication).into() })
}

/// A record that is evicted is a limit that begins anew, and nobody is told. Without a bound on its memory nothing is.
fn keeps_records(memory: Option<Value>) -> Result<(), Trouble> {
    let memory = text(memory.unwrap_or(Value::Nil))?;
    let bounded = field(&memory, "maxmemory").is_some_and(|bytes| bytes != "0");
    match field(&memory, "maxmemory_policy") {
        Some(policy) if bounded && policy != "noeviction" => Err(Trouble::Evicts(policy.into())),
        // Some hosted servers keep it to themselves.
        _ => Ok(()),
    }
}

fn info(section: &str) -> Cmd {
    let mut command = redis::cmd("INFO");
    command.arg(section);
    command
}

/// At once; the answers are in the order of the questions, and none of them is a refusal.
async fn ask_all(
    connection: &MultiplexedConnection,
    questions: Vec<Cmd>,
) -> Result<Vec<Value>, Trouble> {
    let mut pipeline = redis::Pipeline::with_capacity(questions.len());
    let count = questions.len();
    for question in questions {
        pipeline.add_command(question);
    }
    let answers = connection.clone().send_packed_commands(&pipeline, 0, count).await;
    let answers = answers.map_err(CallError::from)?;
    for answer in &answers {
        if let Value::ServerError(error) = answer {
            return Err(CallError::from(error).into());
        }
    }
    Ok(answers)
}

fn text(value: Value) -> Result<String, Trouble> {
    match value {
        Value::BulkString(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Value::VerbatimString { text, .. } | Value::SimpleString(text) => Ok(text),
        other => Err(Trouble::Strange(format!("{other:?} where text was expected"))),
    }
}

fn is_primary(role: &Value) -> bool {
    let Value::Array(parts) = role else { return false };
    matches!(parts.first(), Some(Value::BulkString(name)) if name == b"master")
}

/// Some hosted servers keep it to themselves; then only the run id counts.
fn replication_id(info: &str) -> &str {
    field(info, "master_replid").unwrap_or_default()
}

fn field<'i>(info: &'i str, name: &str) -> Option<&'i str> {
    let values = info.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    values.map(str::trim).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let info = "# Server\r\nrun_id_2:no\r\nrun_id:abc\r\n";
        assert_eq!(field(info, "run_id"), Some("abc"));
        assert_eq!(field(info, "run"), None);
    }

    #[test]
    fn only_the_word_master_makes_a_primary() {
        let role = |name: &str| Value::Array(vec![Value::BulkString(name.into())]);
        assert!(is_primary(&role("master")));
        assert!(!is_primary(&role("slave")) && !is_primary(&role("sentinel")));
        assert!(!is_primary(&Value::Nil) && !is_primary(&Value::Array(vec![])));
    }
}
