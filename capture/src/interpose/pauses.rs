//! When recording from inside pauses. Each operation of a program that locks millions of times a second costs it as much as
//! the lock itself. A few stretches of such a program say what all of it would, so it is recorded for a part of the time that
//! keeps the cost near the budget. An analysis takes a part without a pause ([`engine::timeline::typical`]).

use engine::event::{GapReason, Note, NoteKind};

/// Length of a stretch that is recorded, nanoseconds: some turns of the scheduler, and more records than one analysis reads.
const STRETCH_NS: u64 = 200_000_000;

/// Longest pause, nanoseconds. A short program needs more than one stretch, so the cost may stay above the budget.
const MOST_PAUSE_NS: u64 = 2_000_000_000;

/// Longest first pause, nanoseconds. Each later one may last twice as long. Many runtimes take hundreds of thousands of locks
/// while they start and few later: the stretches between short pauses show that soon.
const FIRST_PAUSE_NS: u64 = 125_000_000;

/// Length of a stretch between the short pauses, nanoseconds: enough to see whether the program still locks that often.
const LOOK_NS: u64 = 20_000_000;

/// Costs up to this multiple of the budget are borne: a complete recording is worth it.
const BORNE: f64 = 3.0;

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turnover {
    /// Pause.
    Pause,
    /// Record again, and then call [`Pauses::end`].
    Resume,
}

/// Decides by the cost of operations.
#[derive(Debug)]
pub(super) struct Pauses {
    /// The share of a thread's time that recording may cost; `None`: there are no pauses.
    share: Option<f64>,
    /// Number of CPUs that the program may use.
    cpus: usize,
    state: State,
    /// Longest next pause, nanoseconds.
    longest_ns: u64,
    notes: Vec<Note>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Recording since a time for at least this long, with the cost since then in nanoseconds and the largest number of busy
    /// threads of a turn.
    Recording {
        since_ns: u64,
        least_ns: u64,
        cost_ns: f64,
        busy: usize,
    },
    Paused {
        since_ns: u64,
        until_ns: u64,
    },
}

impl State {
    fn recording(since_ns: u64) -> State {
        State::Recording { since_ns, least_ns: STRETCH_NS, cost_ns: 0.0, busy: 0 }
    }
}

impl Pauses {
    pub fn new(share: Option<f64>, cpus: usize) -> Pauses {
        Pauses { share, cpus, state: State::recording(0), longest_ns: FIRST_PAUSE_NS, notes: Vec::new() }
    }

    /// Takes the cost of the operations since the last turn, nanoseconds, and the number of threads that did them.
    pub fn turn(&mut self, now_ns: u64, more_ns: f64, threads: usize) -> Option<Turnover> {
        let share = self.share?;
        match &mut self.state {
            State::Recording { since_ns, .. } if *since_ns == 0 => {
                self.state = State::recording(now_ns);
                None
            }
            State::Recording { since_ns, least_ns, cost_ns, busy } => {
                *cost_ns += more_ns;
                *busy = threads.max(*busy);
                let length_ns = now_ns.saturating_sub(*since_ns);
                if length_ns < *least_ns {
                    return None;
                }
                // Threads that lock may run at most that long.
                let ran_ns = length_ns as f64 * (*busy).clamp(1, self.cpus.max(1)) as f64;
                let excess = *cost_ns / (ran_ns * share);
                if excess <= BORNE {
                    self.state = State::recording(now_ns);
                    return None;
                }
                let pause_ns = (length_ns as f64 * (excess - 1.0)).min(self.longest_ns as f64) as u64;
                self.longest_ns = self.longest_ns.saturating_mul(2).min(MOST_PAUSE_NS);
                self.state = State::Paused { since_ns: now_ns, until_ns: now_ns.saturating_add(pause_ns) };
                Some(Turnover::Pause)
            }
            State::Paused { until_ns, .. } => (now_ns >= *until_ns).then_some(Turnover::Resume),
        }
    }

    /// Recording goes on since `now_ns`, or has ended then: ends a pause, if there is one.
    pub fn end(&mut self, now_ns: u64) {
        if let State::Paused { since_ns, .. } = self.state {
            let reason = GapReason::OperationsPaused;
            let kind = NoteKind::Gap { pid: 0, cpu: None, until_ns: now_ns, lost: 0, reason };
            self.notes.push(Note { time_ns: since_ns, kind });
            let least_ns = if self.longest_ns < MOST_PAUSE_NS { LOOK_NS } else { STRETCH_NS };
            self.state = State::Recording { since_ns: now_ns, least_ns, cost_ns: 0.0, busy: 0 };
        }
    }

    /// Notes about pauses that have ended since the last call.
    pub fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Turns of 20 ms with this cost in each millisecond that is recorded, for this time; the recorded share of it.
    fn recorded(pauses: &mut Pauses, cost_ns: f64, threads: usize, seconds: u64) -> f64 {
        let (mut on, mut all, mut paused) = (0, 0, false);
        for turn in 1..=seconds * 50 {
            let (more_ns, busy) = if paused { (0.0, 0) } else { (20.0 * cost_ns, threads) };
            match pauses.turn(turn * 20 * MS, more_ns, busy) {
                Some(Turnover::Pause) => paused = true,
                Some(Turnover::Resume) => {
                    pauses.end(turn * 20 * MS);
                    paused = false;
                }
                None => {}
            }
            all += 1;
            on += u64::from(!paused);
        }
        on as f64 / all as f64
    }

    #[test]
    fn a_program_that_locks_all_the_time_is_recorded_for_the_part_that_its_budget_allows() {
        // 10 % of the time of each of two threads, five times the budget.
        let mut pauses = Pauses::new(Some(0.02), 4);
        let share = recorded(&mut pauses, 200_000.0, 2, 20);
        assert!((0.17..0.26).contains(&share), "{share}");
        let notes = pauses.take_notes();
        assert!(notes.len() > 10, "{}", notes.len());
        let is_pause = |note: &Note| matches!(note.kind, NoteKind::Gap { until_ns, reason: GapReason::OperationsPaused, .. } if until_ns > note.time_ns);
        assert!(notes.iter().all(is_pause));
        assert!(pauses.take_notes().is_empty());
    }

    #[test]
    fn pauses_of_expensive_locks_are_bounded_and_the_last_pause_is_noted() {
        let mut pauses = Pauses::new(Some(0.02), 2);
        let share = recorded(&mut pauses, 900_000.0, 1, 21);
        assert!((0.08..0.14).contains(&share), "{share}");
        let before = pauses.take_notes().len();
        pauses.end(22_000 * MS);
        assert!(before > 5 && pauses.take_notes().len() <= 1);
    }

    #[test]
    fn a_program_that_locks_often_only_while_it_starts_is_recorded_completely_soon_after() {
        let mut pauses = Pauses::new(Some(0.02), 2);
        let (mut paused_ms, mut paused) = (0, false);
        for turn in 1..=100 {
            let more_ns = if turn <= 12 { 15e6 } else { 0.0 };
            match pauses.turn(turn * 20 * MS, more_ns, 1) {
                Some(Turnover::Pause) => paused = true,
                Some(Turnover::Resume) => {
                    pauses.end(turn * 20 * MS);
                    paused = false;
                }
                None => {}
            }
            paused_ms += 20 * u64::from(paused);
        }
        assert!((100..200).contains(&paused_ms), "{paused_ms}");
    }

    #[test]
    fn cheap_recordings_and_those_without_a_budget_have_no_pause() {
        let mut pauses = Pauses::new(Some(0.02), 2);
        assert!(recorded(&mut pauses, 50_000.0, 1, 10) > 0.999);
        // The same cost, spread over as many threads as there are CPUs.
        assert!(recorded(&mut Pauses::new(Some(0.02), 2), 110_000.0, 2, 10) > 0.999);
        assert!(recorded(&mut Pauses::new(None, 2), 900_000.0, 1, 10) > 0.999);
        assert!(pauses.take_notes().is_empty());
    }
}
