//! Several futures side by side on one task.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// Waits for all of them, in their order. For the few of one request: every wake looks at each of them.
pub async fn join_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<Result<F::Output, Pin<Box<F>>>> =
        futures.map(|future| Err(Box::pin(future))).collect();
    poll_fn(|context| {
        let mut pending = false;
        for one in &mut running {
            if let Err(future) = one {
                match future.as_mut().poll(context) {
                    Poll::Ready(output) => *one = Ok(output),
                    Poll::Pending => pending = true,
                }
            }
        }
        if pending { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    running.into_iter().filter_map(Result::ok).collect()
}
