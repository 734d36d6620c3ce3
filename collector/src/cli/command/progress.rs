//! How far a command is and how long it takes: on a terminal, for anything above a second, and gone when it
//! is done. Where standard error is not a terminal, one line at the start announces what takes longer.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What is over sooner needs no word.
const PATIENCE: Duration = Duration::from_secs(1);
/// What is over sooner needs no line that stays.
const LONG: Duration = Duration::from_secs(10);

/// Work in steps that take about as long as each other.
pub(super) struct Progress {
    began: Instant,
    all: usize,
    /// What the steps are, in the plural.
    what: &'static str,
    done: AtomicUsize,
    is_terminal: bool,
    is_shown: AtomicBool,
}

impl Progress {
    pub(super) fn new(all: usize, what: &'static str) -> Progress {
        Progress {
            began: Instant::now(),
            all,
            what,
            done: AtomicUsize::new(0),
            is_terminal: std::io::stderr().is_terminal(),
            is_shown: AtomicBool::new(false),
        }
    }

    /// One more step is done.
    pub(super) fn step(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let took = self.began.elapsed();
        if !self.is_terminal {
            if let Some(line) = line(done, self.all, self.what, took)
                && !self.is_shown.swap(true, Ordering::Relaxed)
            {
                // Progress that cannot be shown is not an error.
                let _ = writeln!(std::io::stderr().lock(), "{line}");
            }
            return;
        }
        if let Some(text) = text(done, self.all, took) {
            self.is_shown.store(true, Ordering::Relaxed);
            let _ = write!(std::io::stderr().lock(), "\r{text}\u{1b}[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_terminal && self.is_shown.load(Ordering::Relaxed) {
            let _ = write!(std::io::stderr().lock(), "\r\u{1b}[K");
        }
    }
}

/// How long all that is left takes, if it takes as long as what is done.
fn left(done: usize, all: usize, took: Duration) -> Duration {
    took.mul_f64(all.saturating_sub(done) as f64 / done.max(1) as f64)
}

/// `simulating: 3 of 8, about 4 s left`; `None` if it is over soon.
fn text(done: usize, all: usize, took: Duration) -> Option<String> {
    let left = left(done, all, took);
    (took + left >= PATIENCE && done < all)
        .then(|| format!("simulating: {done} of {all}, about {:.0} s left", left.as_secs_f64().ceil()))
}

/// `simulating 41 changes, about 12 s`; `None` if it is over soon.
fn line(done: usize, all: usize, what: &str, took: Duration) -> Option<String> {
    let left = left(done, all, took);
    (left >= LONG)
        .then(|| format!("simulating {all} {what}, about {:.0} s", (took + left).as_secs_f64().ceil()))
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

    #[test]
    fn a_pipe_gets_one_line_for_what_takes_long() {
        let line = |done, all, ms| line(done, all, "changes", Duration::from_millis(ms));
        assert_eq!(line(1, 41, 300).as_deref(), Some("simulating 41 changes, about 13 s"));
        assert_eq!(line(1, 41, 100), None);
        assert_eq!(line(40, 41, 60_000), None);
    }
}
