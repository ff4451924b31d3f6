//! Where storage is asked: on threads that answer no requests.

use tokio::runtime::Handle;

use crate::ports::{Loading, OriginError};

/// Runs a load where storage belongs, and lets it finish even if whoever asked is gone.
pub(crate) fn offstage<T: Send + 'static>(
    backstage: &Handle,
    loading: Loading<T>,
) -> impl Future<Output = Result<T, OriginError>> + Send + use<T> {
    let running = backstage.spawn(loading);
    async move { running.await.map_err(OriginError::new)? }
}
