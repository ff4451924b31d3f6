//! Where an archive lies: a folder or a bucket with a prefix, and the name of each object in it.
//! Names depend on the month alone, so a run that is made again writes the same objects.

use std::fmt;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, RetryConfig};
use tollkeeper_core::Month;

use crate::ArchiveError;

const NAME: &str = "decision_audit.parquet";
/// Readers of whole folders overlook names that start so.
const UNCHECKED: &str = "_decision_audit.parquet.unchecked";

/// A place that was opened; a clone is a second handle.
#[derive(Clone, Debug)]
pub struct Place {
    text: String,
    store: Arc<dyn ObjectStore>,
    prefix: Path,
}

// === impl Place ===

impl Place {
    /// `file:///FOLDER`, a folder, or `s3://BUCKET/PREFIX`. A folder is made where there is none. What else S3 needs
    /// is in the variables that every tool for it knows (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`, …).
    pub fn open(text: &str, variables: &[(String, String)]) -> Result<Self, ArchiveError> {
        match text.split_once("://") {
            Some(("s3", rest)) => Self::bucket(text, rest, variables),
            Some(("file", path)) if path.starts_with('/') => Self::folder(text, path),
            None if !text.trim().is_empty() => Self::folder(text, text),
            _ => Err(ArchiveError::NoPlace { text: text.to_owned() }),
        }
    }

    fn folder(text: &str, path: &str) -> Result<Self, ArchiveError> {
        let no_folder = |source| ArchiveError::NoFolder { text: text.to_owned(), source };
        std::fs::create_dir_all(FilePath::new(path)).map_err(no_folder)?;
        let store = LocalFileSystem::new_with_prefix(path)
            .map_err(|source| ArchiveError::Unusable { place: text.to_owned(), source })?;
        // Rows are dropped on the word of this object, so it has to be on the disk.
        Ok(Self::of(text, Arc::new(store.with_fsync(true)), Path::default()))
    }

    fn bucket(
        text: &str,
        rest: &str,
        variables: &[(String, String)],
    ) -> Result<Self, ArchiveError> {
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let no_place = || ArchiveError::NoPlace { text: text.to_owned() };
        if bucket.is_empty() {
            return Err(no_place());
        }
        let prefix = Path::parse(prefix.trim_end_matches('/')).map_err(|_| no_place())?;
        let known = variables.iter().filter_map(|(name, value)| {
            Some((name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>().ok()?, value))
        });
        let builder = known
            .fold(AmazonS3Builder::new(), |builder, (key, value)| builder.with_config(key, value))
            .with_bucket_name(bucket)
            .with_retry(patience());
        let endpoint = builder.get_config_value(&AmazonS3ConfigKey::Endpoint);
        // Who names an address without TLS means it.
        let plain = endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"));
        let built = if plain { builder.with_allow_http(true) } else { builder }.build();
        let store =
            built.map_err(|source| ArchiveError::Unusable { place: text.to_owned(), source })?;
        Ok(Self::of(text, Arc::new(store), prefix))
    }

    fn of(text: &str, store: Arc<dyn ObjectStore>, prefix: Path) -> Self {
        Self { text: text.trim_end_matches('/').to_owned(), store, prefix }
    }

    pub(crate) fn store(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.store)
    }

    /// `YYYY/MM/decision_audit.parquet`
    pub(crate) fn month(&self, month: Month) -> Path {
        self.at(month, NAME)
    }

    /// Where a month is written to and read back from before it gets its name.
    pub(crate) fn unchecked(&self, month: Month) -> Path {
        self.at(month, UNCHECKED)
    }

    fn at(&self, month: Month, name: &str) -> Path {
        let (year, number) = (format!("{:04}", month.year()), format!("{:02}", month.month()));
        self.prefix.parts().chain([year.into(), number.into(), name.into()]).collect()
    }

    /// As a person finds the object again.
    pub(crate) fn shown(&self, path: &Path) -> String {
        let below = path
            .prefix_match(&self.prefix)
            .map(|parts| parts.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>().join("/"));
        format!("{}/{}", self.text, below.unwrap_or_else(|| path.to_string()))
    }

    pub(crate) fn unusable(&self, source: object_store::Error) -> ArchiveError {
        ArchiveError::Unusable { place: self.text.clone(), source }
    }

    pub(crate) async fn has(&self, path: &Path) -> Result<bool, ArchiveError> {
        match self.store.head(path).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(source) => Err(self.unusable(source)),
        }
    }

    /// Gives what was checked its name, at once or not at all, over what had the name before.
    pub(crate) async fn promote(&self, month: Month) -> Result<(), ArchiveError> {
        let copied = self.store.copy(&self.unchecked(month), &self.month(month)).await;
        copied.map_err(|source| self.unusable(source))
    }

    pub(crate) async fn discard_unchecked(&self, month: Month) -> Result<(), ArchiveError> {
        match self.store.delete(&self.unchecked(month)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(source) => Err(self.unusable(source)),
        }
    }

    /// Months that have an object, with its size, oldest first.
    pub(crate) async fn months(&self) -> Result<Vec<(Month, u64)>, ArchiveError> {
        let prefix = (!self.prefix.is_root()).then_some(&self.prefix);
        let listed = self.store.list(prefix).try_collect::<Vec<_>>().await;
        let objects = listed.map_err(|source| self.unusable(source))?;
        let mut months: Vec<_> = objects
            .iter()
            .filter_map(|object| Some((self.month_of(&object.location)?, object.size)))
            .collect();
        months.sort_unstable();
        Ok(months)
    }

    fn month_of(&self, path: &Path) -> Option<Month> {
        let mut parts = path.prefix_match(&self.prefix)?;
        let (year, month, name) = (parts.next()?, parts.next()?, parts.next()?);
        let month = Month::parse(&format!("{}{}", year.as_ref(), month.as_ref()))?;
        (name.as_ref() == NAME && parts.next().is_none()).then_some(month)
    }
}

/// A store that is away for longer is told of; the next run goes on where this one ended.
fn patience() -> RetryConfig {
    RetryConfig { max_retries: 6, retry_timeout: Duration::from_mins(1), ..RetryConfig::default() }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use tollkeeper_core::Millis;

    use super::*;

    #[test]
    fn names_follow_from_the_month_alone() {
        let folder = tempfile::tempdir().unwrap();
        let july = Month::of(Millis(1_784_000_000_000));
        for text in
            [format!("file://{}", folder.path().display()), folder.path().display().to_string()]
        {
            let place = Place::open(&text, &[]).unwrap();
            let path = place.month(july);
            assert_eq!(path.as_ref(), "2026/07/decision_audit.parquet");
            assert_eq!(place.month_of(&path), Some(july));
            assert_eq!(place.month_of(&place.unchecked(july)), None);
            assert_eq!(place.shown(&path), format!("{text}/2026/07/decision_audit.parquet"));
        }
        let place = Place::open("s3://bucket/some/where/", &[]).unwrap();
        let path = place.month(july);
        assert_eq!(path.as_ref(), "some/where/2026/07/decision_audit.parquet");
        assert_eq!(place.month_of(&path), Some(july));
        assert_eq!(place.shown(&path), "s3://bucket/some/where/2026/07/decision_audit.parquet");
    }

    #[test]
    fn what_is_no_place_is_refused() {
        for text in ["", "s3://", "s3:///prefix", "gs://bucket", "file://relative"] {
            assert!(matches!(Place::open(text, &[]), Err(ArchiveError::NoPlace { .. })), "{text}");
        }
    }
}
