//! A month brought back from the archive, to look into: as lines of JSON, or as a database file of its own.
//! It never goes back into the database that serves, where the next run would only archive it again.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tollkeeper_store::{PastDecision, Store};

use crate::object::ObjectReader;
use crate::progress::{Progress, Step, Tell};
use crate::{ArchiveError, Label, Place};

/// What a month is restored to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// One JSON object a line, named as in answers of `audit.search`.
    Ndjson(PathBuf),
    Stdout,
    /// A fresh SQLite file with the table `decision_audit`.
    Sqlite(PathBuf),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    at: i64,
    tenant_id: &'a str,
    request_id: &'a str,
    decision: &'a str,
    code: &'a str,
    status: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ip: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<i64>,
    node: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<&'a str>,
    latency_us: i64,
    degraded: bool,
}

/// Brings a month back and returns how many rows it had. A file has its name only when all of them are in it.
pub async fn restore(
    place: &Place,
    month: Label,
    to: &Target,
    tell: Tell<'_>,
) -> Result<u64, ArchiveError> {
    let path = place.month(month.0);
    if !place.has(&path).await? {
        return Err(ArchiveError::NoSuchMonth(month));
    }
    let object = ObjectReader::open(place, &path).await?;
    let mut restoring = Restoring { month, object, tell };
    match to {
        Target::Stdout => {
            let stdout = &mut BufWriter::new(io::stdout().lock());
            restoring.lines(stdout, Path::new("stdout")).await
        }
        Target::Ndjson(path) => {
            let unfinished = unfinished(path)?;
            let written = restoring.file_of_lines(&unfinished).await;
            finished(&unfinished, path, written)
        }
        Target::Sqlite(path) => {
            let unfinished = unfinished(path)?;
            let written = restoring.database(&unfinished).await;
            finished(&unfinished, path, written)
        }
    }
}

struct Restoring<'a> {
    month: Label,
    object: ObjectReader,
    tell: Tell<'a>,
}

// === impl Restoring ===

impl Restoring<'_> {
    async fn file_of_lines(&mut self, path: &Path) -> Result<u64, ArchiveError> {
        let file = File::create(path).map_err(|source| output(path, source))?;
        let mut out = BufWriter::new(file);
        let rows = self.lines(&mut out, path).await?;
        out.get_ref().sync_all().map_err(|source| output(path, source))?;
        Ok(rows)
    }

    async fn lines(&mut self, out: &mut impl Write, path: &Path) -> Result<u64, ArchiveError> {
        let mut rows = 0;
        while let Some(page) = self.page(rows).await? {
            rows += page.len() as u64;
            for row in &page {
                let line = serde_json::to_writer(&mut *out, &Line::from(row));
                let line = line.map_err(io::Error::from).and_then(|()| out.write_all(b"\n"));
                line.map_err(|source| output(path, source))?;
            }
        }
        out.flush().map_err(|source| output(path, source))?;
        Ok(rows)
    }

    async fn database(&mut self, path: &Path) -> Result<u64, ArchiveError> {
        let store = Store::open(path).await?;
        let mut rows = 0;
        while let Some(page) = self.page(rows).await? {
            store.put_past(&page).await?;
            rows += page.len() as u64;
        }
        store.close().await;
        Ok(rows)
    }

    async fn page(&mut self, rows: u64) -> Result<Option<Vec<PastDecision>>, ArchiveError> {
        let of = self.object.said().rows;
        (self.tell)(Progress { month: self.month, step: Step::Writing, rows, of });
        self.object.page().await
    }
}

impl<'a> From<&'a PastDecision> for Line<'a> {
    fn from(row: &'a PastDecision) -> Self {
        Self {
            at: row.at,
            tenant_id: &row.tenant_id,
            request_id: &row.request_id,
            decision: &row.decision,
            code: &row.code,
            status: row.status,
            key_id: row.key_id.as_deref(),
            external_id: row.external_id.as_deref(),
            ip: row.ip.as_deref(),
            method: row.method.as_deref(),
            endpoint: row.endpoint.as_deref(),
            path: row.path.as_deref(),
            rule: row.rule.as_deref(),
            limit: row.limit_name.as_deref(),
            count: row.count,
            retry_after_ms: row.retry_after_ms,
            node: &row.node,
            region: row.region.as_deref(),
            latency_us: row.latency_us,
            degraded: row.degraded,
        }
    }
}

/// Where a file is made before it has its name; what an earlier try left there is gone.
fn unfinished(path: &Path) -> Result<PathBuf, ArchiveError> {
    if path.exists() {
        return Err(ArchiveError::Exists { path: path.display().to_string() });
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".unfinished");
    let unfinished = path.with_file_name(name);
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(output(&unfinished, error)),
        _ => Ok(unfinished),
    }
}

fn finished(
    unfinished: &Path,
    path: &Path,
    written: Result<u64, ArchiveError>,
) -> Result<u64, ArchiveError> {
    let rows = written?;
    fs::rename(unfinished, path).map_err(|source| output(path, source))?;
    Ok(rows)
}

fn output(path: &Path, source: io::Error) -> ArchiveError {
    ArchiveError::Output { path: path.display().to_string(), source }
}
