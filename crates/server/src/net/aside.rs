//! A future beside another one in the same task, asked only when something happened that it waits for. Where one of the
//! two is woken for every request and the other once in seconds, asking both each time costs more than it seems: timers and
//! channels take a lock to see that nothing has happened, and threads share it.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

#[derive(Debug)]
pub(super) struct Aside<'a, F> {
    future: Pin<&'a mut F>,
    bell: Arc<Bell>,
    /// What the future is given to wake: it rings the bell.
    rings: Waker,
    /// The task, as the bell knows it.
    task: Option<Waker>,
}

/// Rings when the future is to be asked again.
#[derive(Debug)]
struct Bell {
    rung: AtomicBool,
    task: Mutex<Option<Waker>>,
}

// === impl Aside ===

impl<'a, F> Aside<'a, F> {
    pub(super) fn new(future: Pin<&'a mut F>) -> Self {
        // Everybody is asked once.
        let bell = Arc::new(Bell { rung: AtomicBool::new(true), task: Mutex::new(None) });
        Self { future, rings: Waker::from(Arc::clone(&bell)), bell, task: None }
    }
}

impl<F: Future> Future for Aside<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let known = this.task.as_ref().is_some_and(|task| task.will_wake(context.waker()));
        if !known {
            // First, so that a ring from now on reaches the right task.
            this.bell.tell(context.waker());
            this.task = Some(context.waker().clone());
        }
        if !this.bell.rung.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        // Before it is asked: what happens meanwhile rings again.
        this.bell.rung.swap(false, Ordering::AcqRel);
        this.future.as_mut().poll(&mut Context::from_waker(&this.rings))
    }
}

// === impl Bell ===

impl Bell {
    fn tell(&self, task: &Waker) {
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task.clone());
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(task) = task {
            task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Counts how often it is woken.
    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn it_is_asked_once_and_then_only_when_it_was_woken_and_so_is_the_task_of_the_day() {
        let mut asked = 0;
        let counting = pin!(poll_fn(|_| {
            asked += 1;
            if asked == 3 { Poll::Ready(()) } else { Poll::Pending }
        }));
        let mut aside = Aside::new(counting);
        let tasks = [Arc::new(Task::default()), Arc::new(Task::default())];
        let mut polled = |task: &Arc<Task>| {
            let waker = Waker::from(Arc::clone(task));
            let polled = Pin::new(&mut aside).poll(&mut Context::from_waker(&waker));
            (polled.is_ready(), aside.rings.clone())
        };
        let woken = |task: &Arc<Task>| task.0.load(Ordering::Relaxed);
        let (ready, rings) = polled(&tasks[0]);
        assert!(!ready && !polled(&tasks[0]).0 && woken(&tasks[0]) == 0);
        rings.wake_by_ref();
        assert_eq!(woken(&tasks[0]), 1);
        assert!(!polled(&tasks[0]).0 && !polled(&tasks[0]).0);
        // Another task goes on with it: from then on that one is woken.
        assert!(!polled(&tasks[1]).0);
        rings.wake();
        assert_eq!((woken(&tasks[0]), woken(&tasks[1])), (1, 1));
        assert!(polled(&tasks[1]).0);
        assert_eq!(asked, 3);
    }
}
