//! How far a command is and how long it takes: on a terminal, for anything above a second, and gone when it is done.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What is over sooner needs no word.
const PATIENCE: Duration = Duration::from_secs(1);

/// Work in steps that take about as long as each other.
pub(super) struct Progress {
    began: Instant,
    all: usize,
    done: AtomicUsize,
    is_terminal: bool,
    is_shown: AtomicBool,
}

impl Progress {
    pub(super) fn new(all: usize) -> Progress {
        Progress {
            began: Instant::now(),
            all,
            done: AtomicUsize::new(0),
            is_terminal: std::io::stderr().is_terminal(),
            is_shown: AtomicBool::new(false),
        }
    }

    /// One more step is done.
    pub(super) fn step(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let Some(text) = text(done, self.all, self.began.elapsed()).filter(|_| self.is_terminal) else {
            return;
        };
        self.is_shown.store(true, Ordering::Relaxed);
        // Progress that nobody sees is no error.
        let _ = write!(std::io::stderr().lock(), "\r{text}\u{1b}[K");
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown.load(Ordering::Relaxed) {
            let _ = write!(std::io::stderr().lock(), "\r\u{1b}[K");
        }
    }
}

/// `simulating: 3 of 8, about 4 s left`; `None` as long as it is over soon.
fn text(done: usize, all: usize, took: Duration) -> Option<String> {
    let left = took.mul_f64(all.saturating_sub(done) as f64 / done.max(1) as f64);
    (took + left >= PATIENCE && done < all)
        .then(|| format!("simulating: {done} of {all}, about {:.0} s left", left.as_secs_f64().ceil()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_takes_longer_than_a_second_is_told() {
        let text = |done, all, ms| text(done, all, Duration::from_millis(ms));
        assert_eq!(text(1, 8, 100), None);
        assert_eq!(text(2, 8, 1_000).as_deref(), Some("simulating: 2 of 8, about 3 s left"));
        assert_eq!(text(8, 8, 9_000), None);
        assert_eq!(text(0, 0, 0), None);
    }
}
