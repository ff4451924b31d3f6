//! What a child process has printed so far, collected while the test does something else.
//! It never blocks the child: the pipe is always read, only the kept text is bounded.

use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Far above what a test prints; keeps a server gone wild from eating the machine's memory.
const KEPT_BYTES_MAX: usize = 4 << 20;

#[derive(Debug, Clone)]
pub(crate) struct Output(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    text: Mutex<Text>,
    grew: Condvar,
}

#[derive(Debug, Default)]
struct Text {
    kept: String,
    closed: bool,
}

impl Output {
    pub(crate) fn collect(pipe: impl Read + Send + 'static) -> Self {
        let output = Self(Arc::default());
        let written = output.clone();
        thread::spawn(move || written.read_to_end(BufReader::new(pipe)));
        output
    }

    pub(crate) fn so_far(&self) -> String {
        self.wait(Duration::ZERO, |_| true)
    }

    /// Until the child has closed the pipe, which it does by ending.
    pub(crate) fn wait_closed(&self, patience: Duration) {
        self.wait(patience, |text| text.closed);
    }

    /// The first line that starts like this; nothing once the pipe is closed or patience has run out.
    pub(crate) fn wait_line(&self, start: &str, patience: Duration) -> Option<String> {
        let found = |text: &str| {
            text.split_inclusive('\n').find(|line| is_line(line, start)).map(str::to_owned)
        };
        let text = self.wait(patience, |text| text.closed || found(&text.kept).is_some());
        found(&text).map(|line| line.trim_end().to_owned())
    }

    fn wait(&self, patience: Duration, done: impl Fn(&Text) -> bool) -> String {
        let text = self.0.text.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.0.grew.wait_timeout_while(text, patience, |text| !done(text));
        let (text, _) = waited.unwrap_or_else(PoisonError::into_inner);
        text.kept.clone()
    }

    fn read_to_end(&self, mut pipe: impl BufRead) {
        let mut line = Vec::new();
        while pipe.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            self.change(|text| {
                if text.kept.len() < KEPT_BYTES_MAX {
                    text.kept.push_str(&String::from_utf8_lossy(&line));
                }
            });
            line.clear();
        }
        self.change(|text| text.closed = true);
    }

    fn change(&self, by: impl FnOnce(&mut Text)) {
        by(&mut self.0.text.lock().unwrap_or_else(PoisonError::into_inner));
        self.0.grew.notify_all();
    }
}

/// A line counts once it is whole; half an address would be believed otherwise.
fn is_line(line: &str, start: &str) -> bool {
    line.starts_with(start) && line.ends_with('\n')
}
