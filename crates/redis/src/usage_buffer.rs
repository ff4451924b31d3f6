//! Usage on its way to the database: one hash per minute of UTC, with the totals of every process. Totals only grow and the
//! larger one stays, so whatever is told twice, late, or again after everything was lost counts once. It adds nothing up
//! and decides nothing; the ledger in the database has the last word.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use redis::{Value, cmd};
use tollkeeper_core::{Component, Minute, Usage, boot_of_text};

use crate::client::Redis;
use crate::error::CallError;
use crate::origin::{FIRST, PRESENT, TELL, UNLOCK, UNTELL};
use crate::script::{Arg, ScriptId};
use crate::tags::{At, HOME};

/// As long as anybody may take to bring a database back.
const BUCKET_DAYS: u32 = 14;
const BUCKET_MS: u64 = BUCKET_DAYS as u64 * 86_400_000;
/// Minutes that a bucket may be from.
pub const BUCKET_MINUTES: u32 = BUCKET_DAYS * 1_440;

/// Nobody waits for any of this. Redis does other things in a few milliseconds per call of this size.
const PATIENCE: Duration = Duration::from_secs(1);
const FIELDS_AT_ONCE: usize = 1_000;
const KEYS_AT_ONCE: usize = 1_000;

/// A worker that died is followed by another a minute later at most. Never what exactness rests on.
const LOCK: &str = "usage:buffer:flush:lock";
const LOCK_MS: u64 = 55_000;

/// How often the use of one thing is written to the database, across the fleet.
const MARK_SECONDS: u64 = 30;

/// Four fields per component, each only where there is something to say.
const FIELDS: [&str; 4] = ["req", "denied", "bytes", "credits"];

#[derive(Clone, Debug)]
pub struct UsageBuffer {
    redis: Redis,
    /// Behind every name where there are many servers, so that all of these are on one.
    suffix: &'static str,
}

/// A part of a bucket, and where the next begins; 0 behind the last.
#[derive(Debug, Default)]
pub struct BucketPart {
    pub next: u64,
    pub components: Vec<Component>,
    /// As they were read: only these may be taken out.
    fields: Vec<(String, String)>,
}

/// What a mark is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marked {
    Key,
    Project,
}

// === impl UsageBuffer ===

impl UsageBuffer {
    pub fn new(redis: Redis) -> Self {
        let suffix = if redis.is_one_server() { "" } else { HOME };
        Self { redis, suffix }
    }

    pub async fn tell(&self, components: &[Component]) -> Result<(), CallError> {
        let mut buckets: BTreeMap<Minute, Vec<(String, u64)>> = BTreeMap::new();
        for one in components {
            buckets.entry(one.minute).or_default().extend(fields_of(one));
        }
        for (minute, fields) in buckets {
            let key = self.bucket(minute);
            for chunk in fields.chunks(FIELDS_AT_ONCE) {
                let mut args = vec![Arg::from(BUCKET_MS)];
                for (field, total) in chunk {
                    args.extend([Arg::from(field.as_str()), Arg::from(*total)]);
                }
                self.run(TELL, &[key.as_bytes()], &args).await?;
            }
        }
        Ok(())
    }

    /// The minutes from the first to the last for which there is a bucket.
    pub async fn minutes(&self, first: Minute, last: Minute) -> Result<Vec<Minute>, CallError> {
        let all: Vec<Minute> = (first.0..=last.0).map(Minute).collect();
        let mut there = Vec::new();
        for chunk in all.chunks(KEYS_AT_ONCE) {
            let keys: Vec<String> = chunk.iter().map(|minute| self.bucket(*minute)).collect();
            let places = self.places(PRESENT, &keys, &[]).await?;
            there.extend(places.into_iter().filter_map(|at| chunk.get(at).copied()));
        }
        Ok(there)
    }

    /// Fields of one component may come in different parts; each counts for itself.
    pub async fn read(&self, minute: Minute, from: u64) -> Result<BucketPart, CallError> {
        let mut scan = cmd("HSCAN");
        scan.arg(self.bucket(minute)).arg(from).arg("COUNT").arg(FIELDS_AT_ONCE * 2);
        let value = self.redis.command(At::Home, &scan, PATIENCE).await?;
        let strange = |_| CallError::Strange("no answer to HSCAN".to_owned());
        let (next, texts): (u64, Vec<String>) = redis::from_redis_value(value).map_err(strange)?;
        let mut part = BucketPart { next, ..BucketPart::default() };
        let mut found: BTreeMap<Whose, Usage> = BTreeMap::new();
        for pair in texts.as_chunks::<2>().0 {
            let [field, total] = pair;
            // What somebody else wrote there is not ours to take out; it ends with the bucket.
            let Some((name, usage)) = read_field(field, total) else { continue };
            let known = found.entry(name).or_default();
            *known = known.max(usage);
            part.fields.push((field.clone(), total.clone()));
        }
        part.components = found
            .into_iter()
            .map(|((project_id, key_id, boot), usage)| Component {
                minute,
                boot,
                project_id: Arc::from(project_id),
                key_id: Arc::from(key_id),
                usage,
            })
            .collect();
        Ok(part)
    }

    /// Call it only when all of this part is committed.
    pub async fn untell(&self, minute: Minute, part: &BucketPart) -> Result<(), CallError> {
        let key = self.bucket(minute);
        for chunk in part.fields.chunks(FIELDS_AT_ONCE) {
            let args: Vec<Arg<'_>> = chunk
                .iter()
                .flat_map(|(field, total)| [Arg::from(field.as_str()), Arg::from(total.as_str())])
                .collect();
            self.run(UNTELL, &[key.as_bytes()], &args).await?;
        }
        Ok(())
    }

    /// Spares other nodes the work, and protects nothing: two who flush at once get the same result.
    pub async fn lock(&self, token: &str) -> Result<bool, CallError> {
        let mut set = cmd("SET");
        set.arg(self.named(LOCK)).arg(token).arg("NX").arg("PX").arg(LOCK_MS);
        Ok(self.redis.command(At::Home, &set, PATIENCE).await? == Value::Okay)
    }

    pub async fn unlock(&self, token: &str) -> Result<(), CallError> {
        self.run(UNLOCK, &[self.named(LOCK).as_bytes()], &[Arg::from(token)]).await.map(drop)
    }

    /// Those of which nobody in the fleet has noted a use for half a minute. Asking is noting.
    pub async fn first_uses<'i>(
        &self,
        what: Marked,
        ids: &[&'i str],
    ) -> Result<Vec<&'i str>, CallError> {
        let prefix = match what {
            Marked::Key => "usage:apikey:",
            Marked::Project => "usage:project:",
        };
        let mut first = Vec::new();
        for chunk in ids.chunks(KEYS_AT_ONCE) {
            let keys: Vec<String> =
                chunk.iter().map(|id| self.named(&format!("{prefix}{id}"))).collect();
            let places = self.places(FIRST, &keys, &[Arg::from(MARK_SECONDS)]).await?;
            first.extend(places.into_iter().filter_map(|at| chunk.get(at).copied()));
        }
        Ok(first)
    }

    fn bucket(&self, minute: Minute) -> String {
        self.named(&format!("usage:buffer:minute:{}", minute.name()))
    }

    fn named(&self, name: &str) -> String {
        format!("{name}{}", self.suffix)
    }

    /// Places as scripts name them, from 1.
    async fn places(
        &self,
        script: ScriptId,
        keys: &[String],
        args: &[Arg<'_>],
    ) -> Result<Vec<usize>, CallError> {
        let keys: Vec<&[u8]> = keys.iter().map(String::as_bytes).collect();
        let value = self.run(script, &keys, args).await?;
        let places: Vec<usize> = redis::from_redis_value(value)
            .map_err(|_| CallError::Strange("no list of places".to_owned()))?;
        Ok(places.into_iter().filter_map(|place| place.checked_sub(1)).collect())
    }

    async fn run(
        &self,
        script: ScriptId,
        keys: &[&[u8]],
        args: &[Arg<'_>],
    ) -> Result<Value, CallError> {
        self.redis.run_at_home(script, keys, args, PATIENCE).await
    }
}

fn fields_of(one: &Component) -> impl Iterator<Item = (String, u64)> {
    let usage = one.usage;
    let name = format!("{}|{}|{}", one.project_id, one.key_id, one.boot_text());
    let totals = [usage.requests, usage.denied, usage.bytes, usage.credits];
    let said = FIELDS.into_iter().zip(totals).filter(|(_, total)| *total > 0);
    said.map(move |(field, total)| (format!("{name}|{field}"), total))
}

/// Project, key and process.
type Whose = (String, String, [u8; 16]);

fn read_field(field: &str, total: &str) -> Option<(Whose, Usage)> {
    let mut parts = field.split('|');
    let (project_id, key_id) = (parts.next()?, parts.next()?);
    let (boot, what) = (boot_of_text(parts.next()?)?, parts.next()?);
    let total: u64 = total.parse().ok().filter(|_| parts.next().is_none())?;
    let usage = match what {
        "req" => Usage { requests: total, ..Usage::default() },
        "denied" => Usage { denied: total, ..Usage::default() },
        "bytes" => Usage { bytes: total, ..Usage::default() },
        "credits" => Usage { credits: total, ..Usage::default() },
        _ => return None,
    };
    Some(((project_id.to_owned(), key_id.to_owned(), boot), usage))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_read_as_it_was_written_and_anything_else_is_none() {
        let one = Component {
            minute: Minute(1),
            boot: [9; 16],
            project_id: "api_1".into(),
            key_id: "".into(),
            usage: Usage { requests: 1, denied: 2, bytes: 3, credits: 4 },
        };
        let read = |(field, total): (String, u64)| read_field(&field, &total.to_string()).unwrap();
        let sum = fields_of(&one).map(read).fold(Usage::default(), |sum, (name, usage)| {
            assert_eq!(name, ("api_1".to_owned(), String::new(), [9; 16]));
            sum.max(usage)
        });
        assert_eq!(sum, one.usage);
        let boot = "0".repeat(32);
        for (field, total) in [
            ("x".to_owned(), "1"),
            (format!("a|b|{boot}|req|"), "1"),
            (format!("a|b|{boot}|reqs"), "1"),
            (format!("a|b|{boot}|req"), "-1"),
            ("a|b|c|req".to_owned(), "1"),
        ] {
            assert_eq!(read_field(&field, total), None, "{field}");
        }
    }
}
