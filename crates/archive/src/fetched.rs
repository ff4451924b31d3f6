//! The bytes of an object as Parquet asks for them: its footer, then the parts of one row group after the other.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

/// Holds the footer of a few hundred row groups, so that one request is enough for it.
const FOOTER_BYTES: usize = 256 << 10;

#[derive(Clone, Debug)]
pub(crate) struct Fetched {
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) path: Path,
}

impl AsyncFileReader for Fetched {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes>> {
        async move { self.store.get_range(&self.path, range).await.map_err(away) }.boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Result<Vec<Bytes>>> {
        async move { self.store.get_ranges(&self.path, &ranges).await.map_err(away) }.boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>>> {
        async move {
            let size = self.store.head(&self.path).await.map_err(away)?.size;
            let reader = ParquetMetaDataReader::new()
                .with_arrow_reader_options(options)
                .with_prefetch_hint(Some(FOOTER_BYTES));
            Ok(Arc::new(reader.load_and_finish(&mut *self, size).await?))
        }
        .boxed()
    }
}

fn away(error: object_store::Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}
