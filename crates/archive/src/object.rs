//! One Parquet object: written in row groups as rows come, read back in pages, and never whole in memory.
//! Its footer carries the seal of its rows, so that it can be checked at any time by itself.

use futures_util::TryStreamExt;
use object_store::buffered::BufWriter;
use object_store::path::Path;
use parquet::arrow::AsyncArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::arrow::async_reader::{ParquetRecordBatchStream, ParquetRecordBatchStreamBuilder};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, ParquetMetaData};
use parquet::file::properties::WriterProperties;
use tollkeeper_store::PastDecision;

use crate::columns::{SCHEMA, to_columns, to_rows};
use crate::fetched::Fetched;
use crate::seal::{Seal, Sealing};
use crate::{ArchiveError, Place};

/// Some twenty megabytes of rows, a few as Parquet: what is in memory while a month of any size goes by.
const ROW_GROUP_ROWS: usize = 65_536;

/// What is sent at once; the least that S3 takes as a part is 5 MiB, and 10,000 parts are the most.
const PART_BYTES: usize = 8 << 20;
const PARTS_AT_ONCE: usize = 2;

const PAGE_ROWS: usize = 8_192;

const ROWS: &str = "tollkeeper.rows";
const SHA256: &str = "tollkeeper.sha256";

pub(crate) struct ObjectWriter {
    writer: AsyncArrowWriter<BufWriter>,
    sealing: Sealing,
    shown: String,
}

pub(crate) struct ObjectReader {
    stream: ParquetRecordBatchStream<Fetched>,
    said: Seal,
    sealing: Sealing,
    shown: String,
}

// === impl ObjectWriter ===

impl ObjectWriter {
    pub(crate) fn start(place: &Place, path: &Path) -> Result<Self, ArchiveError> {
        let upload = BufWriter::with_capacity(place.store(), path.clone(), PART_BYTES)
            .with_max_concurrency(PARTS_AT_ONCE);
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
            .set_created_by(concat!("tollkeeper ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let shown = place.shown(path);
        let writer = AsyncArrowWriter::try_new_with_options(
            upload,
            SCHEMA.clone(),
            ArrowWriterOptions::new().with_properties(properties),
        )
        .map_err(unreadable(&shown))?;
        Ok(Self { writer, sealing: Sealing::default(), shown })
    }

    pub(crate) async fn put(&mut self, rows: &[PastDecision]) -> Result<(), ArchiveError> {
        self.sealing.add(rows);
        let columns = to_columns(rows).map_err(ParquetError::from);
        let columns = columns.map_err(unreadable(&self.shown))?;
        self.writer.write(&columns).await.map_err(unreadable(&self.shown))
    }

    /// Only now is there an object at all: S3 joins the parts, a disk gives the file its name.
    pub(crate) async fn finish(mut self) -> Result<Seal, ArchiveError> {
        let seal = self.sealing.finish();
        for (key, value) in [(ROWS, seal.rows.to_string()), (SHA256, seal.hex())] {
            self.writer.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
        }
        self.writer.close().await.map_err(unreadable(&self.shown))?;
        Ok(seal)
    }
}

// === impl ObjectReader ===

impl ObjectReader {
    pub(crate) async fn open(place: &Place, path: &Path) -> Result<Self, ArchiveError> {
        let shown = place.shown(path);
        let reader = Fetched { store: place.store(), path: path.clone() };
        let builder = ParquetRecordBatchStreamBuilder::new(reader).await;
        let builder = builder.map_err(broken(&shown))?.with_batch_size(PAGE_ROWS);
        let said = seal_of(builder.metadata()).ok_or_else(|| ArchiveError::Damaged {
            object: shown.clone(),
            found: "it carries no seal".to_owned(),
        })?;
        let stream = builder.build().map_err(broken(&shown))?;
        Ok(Self { stream, said, sealing: Sealing::default(), shown })
    }

    /// What its footer says it holds.
    pub(crate) fn said(&self) -> Seal {
        self.said
    }

    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// The next rows. Their end comes only when all of them were as sealed; anything else is an error.
    pub(crate) async fn page(&mut self) -> Result<Option<Vec<PastDecision>>, ArchiveError> {
        let Some(batch) = self.stream.try_next().await.map_err(broken(&self.shown))? else {
            let found = std::mem::take(&mut self.sealing).finish();
            return if found == self.said {
                Ok(None)
            } else {
                Err(self.damaged(found.to_string()))
            };
        };
        let rows =
            to_rows(&batch).ok_or_else(|| self.damaged("other columns than ours".to_owned()))?;
        self.sealing.add(&rows);
        Ok(Some(rows))
    }

    fn damaged(&self, found: String) -> ArchiveError {
        ArchiveError::Damaged { object: self.shown.clone(), found }
    }
}

fn seal_of(metadata: &ParquetMetaData) -> Option<Seal> {
    let pairs = metadata.file_metadata().key_value_metadata()?;
    let value = |key| pairs.iter().find(|pair| pair.key == key)?.value.as_deref();
    Seal::parse(value(ROWS)?, value(SHA256)?)
}

fn unreadable(shown: &str) -> impl Fn(ParquetError) -> ArchiveError + '_ {
    |source| ArchiveError::Unreadable { object: shown.to_owned(), source }
}

/// What cannot be fetched is out of reach; what cannot be understood is damaged.
fn broken(shown: &str) -> impl Fn(ParquetError) -> ArchiveError + '_ {
    |source| match &source {
        ParquetError::External(cause) if cause.is::<object_store::Error>() => {
            ArchiveError::Unreadable { object: shown.to_owned(), source }
        }
        _ => ArchiveError::Damaged { object: shown.to_owned(), found: source.to_string() },
    }
}
