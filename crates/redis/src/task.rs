//! A background task that ends with whoever holds it.

use tokio::task::AbortHandle;

#[derive(Debug)]
pub(crate) struct Task(AbortHandle);

impl Task {
    pub(crate) fn new<T>(spawned: &tokio::task::JoinHandle<T>) -> Self {
        Self(spawned.abort_handle())
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
