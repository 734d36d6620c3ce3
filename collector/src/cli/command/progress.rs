//! The progress of a command: on a terminal, for anything that takes more than a second, and removed at the end. If standard
//! error is not a terminal, one line announces long work. Steps differ, and the first ones are slower: caches are cold, and
//! with several cores no step is done before the first round is over. So the remaining time is shown only after the second
//! round, by the rate since the first one, and only while that rate is steady.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Shorter work is not mentioned.
const PATIENCE: Duration = Duration::from_secs(1);
/// Shorter work gets no line that stays.
const LONG: Duration = Duration::from_secs(10);

/// Work that consists of steps; cores take the next one in turn.
pub(super) struct Progress {
    began: Instant,
    all: usize,
    /// Plural name of the steps.
    what: &'static str,
    cores: usize,
    is_terminal: bool,
    seen: Mutex<Seen>,
}

/// When steps were finished, and whether a progress line was written.
#[derive(Default)]
struct Seen {
    done: Vec<Duration>,
    is_shown: bool,
}

impl Progress {
    pub(super) fn new(all: usize, what: &'static str) -> Progress {
        Progress {
            began: Instant::now(),
            all,
            what,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            is_terminal: std::io::stderr().is_terminal(),
            seen: Mutex::default(),
        }
    }

    /// Notes that one more step is finished.
    pub(super) fn step(&self) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.done.push(self.began.elapsed());
        let left = left(&seen.done, self.all, self.cores);
        // An error while progress is written is ignored.
        if !self.is_terminal {
            if let Some(line) = line(seen.done.len(), self.all, self.what, left)
                && !std::mem::replace(&mut seen.is_shown, true)
            {
                let _ = writeln!(std::io::stderr().lock(), "{line}");
            }
        } else if let Some(text) = text(&seen.done, self.all, left) {
            seen.is_shown = true;
            let _ = write!(std::io::stderr().lock(), "\r{text}\u{1b}[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let seen = self.seen.get_mut().unwrap_or_else(PoisonError::into_inner);
        if self.is_terminal && seen.is_shown {
            let _ = write!(std::io::stderr().lock(), "\r\u{1b}[K");
        }
    }
}

/// Remaining time, at the rate of the later half of the steps done since the first round. `None` if few steps are done, few
/// remain, or the rate changes.
fn left(done: &[Duration], all: usize, cores: usize) -> Option<Duration> {
    const STEADY: std::ops::Range<f64> = 0.7..1.4;
    let first = cores.clamp(1, all.max(1));
    let since = done.len().checked_sub(first).filter(|since| *since >= first.max(4))?;
    let steps = all.saturating_sub(done.len());
    // The first few steps do not show the rate of later ones.
    if done.len() < all / 8 || steps <= 2 * first {
        return None;
    }
    // Mean length of the last steps, in complete rounds of all cores: the cores finish at about the same time.
    let step = |count: usize| {
        let count = count.next_multiple_of(first);
        let (last, before) = (done.last()?, done.get(done.len().checked_sub(count + 1)?)?);
        Some(last.saturating_sub(*before).as_secs_f64() / count as f64)
    };
    let (later, latest) = (step(since / 2)?, step(since.div_ceil(4))?);
    let is_steady = latest == later || STEADY.contains(&(latest / later));
    is_steady.then(|| {
        Duration::try_from_secs_f64(steps.next_multiple_of(first) as f64 * later).unwrap_or_default()
    })
}

/// A progress line such as `simulating: 6 of 8, about 2 s left`; `None` if the work is over soon.
fn text(done: &[Duration], all: usize, left: Option<Duration>) -> Option<String> {
    let took = done.last().copied().unwrap_or_default();
    if done.len() >= all || took + left.unwrap_or_default() < PATIENCE {
        return None;
    }
    let left = left.map(|left| format!(", about {:.0} s left", left.as_secs_f64().ceil()));
    Some(format!("simulating: {} of {all}{}", done.len(), left.unwrap_or_default()))
}

/// A progress line such as `simulating changes: 12 of 41, about 12 s left`; `None` if the work is over soon.
fn line(done: usize, all: usize, what: &str, left: Option<Duration>) -> Option<String> {
    let left = left.filter(|left| *left >= LONG)?;
    Some(format!("simulating {what}: {done} of {all}, about {:.0} s left", left.as_secs_f64().ceil()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times at which steps of these lengths (ms) are finished, if each core takes the next step.
    fn done(steps: &[u64], cores: usize) -> Vec<Duration> {
        let mut free = vec![0; cores];
        let mut done = Vec::new();
        for step in steps {
            free.sort_unstable();
            free[0] += step;
            done.push(Duration::from_millis(free[0]));
        }
        done.sort_unstable();
        done
    }

    /// Each estimate, divided by the time that really remains then.
    fn told(steps: &[u64], cores: usize) -> Vec<f64> {
        let done = done(steps, cores);
        let end = *done.last().expect("a step");
        let at = |count: usize| {
            let left = left(&done[..count], steps.len(), cores)?;
            let takes = end - done[count - 1];
            // The text shows integer seconds, so shorter times do not count.
            (takes >= PATIENCE).then(|| left.as_secs_f64() / takes.as_secs_f64())
        };
        (1..steps.len()).filter_map(at).collect()
    }

    #[test]
    fn the_estimated_time_left_is_right_within_a_factor_of_two() {
        let mut slow_start = vec![400; 60];
        slow_start[..4].fill(7_000);
        let falling: Vec<u64> = (0..80).map(|step| 4_000 - 25 * step).collect();
        let rising: Vec<u64> = (0..80).map(|step| 1_000 + 20 * step).collect();
        let uneven: Vec<u64> = (0..60).map(|step| 500 + step * 370 % 900).collect();
        for steps in [vec![1_000; 41], slow_start, falling, rising, uneven] {
            for cores in [1, 2, 8] {
                let told = told(&steps, cores);
                assert!(told.len() > 5, "{cores}: {told:?}");
                assert!(told.iter().all(|ratio| (0.5..=2.0).contains(ratio)), "{cores}: {told:?}");
            }
        }
    }

    /// The first of 41 steps would suggest 27 s where 1.7 s remain.
    #[test]
    fn after_the_first_round_of_steps_no_time_left_is_estimated() {
        assert_eq!(left(&done(&[700], 2), 41, 2), None);
        assert_eq!(left(&done(&[700; 4], 2), 41, 2), None);
        assert_eq!(left(&[], 0, 0), None);
    }

    #[test]
    fn progress_is_shown_only_for_work_longer_than_a_second() {
        let text = |done: &[u64], all, left: Option<u64>| {
            let done: Vec<Duration> = done.iter().map(|ms| Duration::from_millis(*ms)).collect();
            text(&done, all, left.map(Duration::from_millis))
        };
        assert_eq!(text(&[100], 8, None), None);
        assert_eq!(text(&[1_000, 1_100], 8, None).as_deref(), Some("simulating: 2 of 8"));
        let left = text(&[400, 500], 8, Some(2_500));
        assert_eq!(left.as_deref(), Some("simulating: 2 of 8, about 3 s left"));
        assert_eq!(text(&[9_000], 1, Some(0)), None);
        assert_eq!(text(&[], 0, None), None);
    }

    #[test]
    fn progress_in_a_pipe_is_one_line_for_work_longer_than_ten_seconds() {
        let line = |left: u64| line(6, 41, "changes", Some(Duration::from_millis(left)));
        assert_eq!(line(12_300).as_deref(), Some("simulating changes: 6 of 41, about 13 s left"));
        assert_eq!(line(9_000), None);
    }
}
