//! For which traces threads worked, as the program published it (OpenTelemetry's thread context, OTEP 4947).
//!
//! A thread attaches a context by a plain store, which no record shows. Records say with which context a thread was seen at its
//! switches, wake-ups and samples. A thread that sleeps changes nothing: its waits belong exactly to the context before them. A
//! change while a thread runs is taken to be halfway between the two looks at it.

use super::model::{Birth, State, Thread};
use crate::time::Timestamp;
use probe_abi::ThreadContext;
use rustc_hash::FxHashMap;

/// The identity of a trace: the 16 bytes of its id, in their order in memory.
pub type Trace = [u64; 2];

/// A stretch in which a thread worked for a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceStretch {
    /// The trace.
    pub trace: Trace,
    /// Index in [`super::Timeline::threads`] of the thread.
    pub thread: u32,
    /// Time at which it began.
    pub begin: Timestamp,
    /// Time at which it ended; `None`: the thread still worked for the trace when it was last seen, or a record is missing.
    pub end: Option<Timestamp>,
    /// The thread worked for the trace at the first look at it, so the stretch may have begun before the recording.
    pub began_before: bool,
}

/// A stretch, as far as records tell.
#[derive(Clone, Copy, Debug)]
struct Seen {
    trace: Trace,
    thread: u32,
    /// Time of the last look before the stretch, and of the first one in it; `None`: there was no look before.
    begin: (Option<u64>, u64),
    /// The same for its end.
    end: Option<(u64, u64)>,
}

/// Collects stretches record by record.
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadContexts {
    ended: Vec<Seen>,
    /// The open stretch of each thread.
    open: FxHashMap<u32, Seen>,
    /// The number of each thread's last record.
    numbers: FxHashMap<u32, u64>,
}

impl ThreadContexts {
    /// A thread was seen with another context than before.
    pub(super) fn changed(&mut self, thread: u32, record: &ThreadContext) {
        let seen_ns = record.header.time_ns;
        let before_ns = (record.before_ns != 0).then_some(record.before_ns.min(seen_ns));
        let last = self.numbers.insert(thread, record.number);
        let is_next = last.is_none_or(|last| last.checked_add(1) == Some(record.number));
        if let Some(open) = self.open.remove(&thread) {
            // After a lost record it is not known how long the thread worked for the trace.
            let end = before_ns.filter(|_| is_next).map(|before_ns| (before_ns, seen_ns));
            self.ended.push(Seen { end, ..open });
        }
        if record.trace != ThreadContext::NONE {
            let begin = (before_ns, seen_ns);
            self.open.insert(thread, Seen { trace: record.trace, thread, begin, end: None });
        }
    }

    /// All stretches, by trace and then in order of their beginnings. `threads` are complete.
    pub(super) fn finish(self, threads: &[Thread]) -> Vec<TraceStretch> {
        let all = self.ended.into_iter().chain(self.open.into_values());
        let mut stretches: Vec<TraceStretch> = all
            .filter_map(|seen| {
                let thread = threads.get(seen.thread as usize)?;
                let first =
                    seen.begin.0.or_else(|| is_first_run(thread, seen.begin.1).then_some(thread.start.0));
                let begin = first.map_or(seen.begin.1, |before| halfway(thread, before, seen.begin.1));
                let end =
                    seen.end.map(|(before, after)| Timestamp(halfway(thread, before, after).max(begin)));
                Some(TraceStretch {
                    trace: seen.trace,
                    thread: seen.thread,
                    begin: Timestamp(begin),
                    end,
                    began_before: first.is_none(),
                })
            })
            .collect();
        stretches.sort_unstable_by_key(|stretch| (stretch.trace, stretch.begin, stretch.thread));
        stretches
    }
}

/// Whether the thread was born in the recording and has not left its CPU before `seen_ns`: then it had no context before. Else it
/// should have been looked at earlier, and was not, since it was not known yet where the process has its contexts.
fn is_first_run(thread: &Thread, seen_ns: u64) -> bool {
    let mut after =
        thread.intervals.iter().skip_while(|of| !matches!(of.state, State::Running { .. })).skip(1);
    thread.birth != Birth::BeforeWindow && after.next().is_none_or(|next| next.start.0 >= seen_ns)
}

/// The middle of the time in which a context may have changed: after the look at `before_ns`, and not before the thread ran again,
/// up to the look at `after_ns`.
fn halfway(thread: &Thread, before_ns: u64, after_ns: u64) -> u64 {
    let next = thread.intervals.partition_point(|interval| interval.start.0 <= before_ns);
    let from = thread.intervals.get(next.saturating_sub(1)..).unwrap_or_default();
    let runs = from.iter().find(|interval| matches!(interval.state, State::Running { .. }));
    let since = runs.map_or(before_ns, |interval| interval.start.0).clamp(before_ns, after_ns.max(before_ns));
    since + after_ns.saturating_sub(since) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::Interval;
    use probe_abi::{Header, Kind};

    const A: Trace = [1, 2];
    const B: Trace = [1, 3];

    /// A thread that runs, sleeps from 100 to 500, runs, sleeps from 600 to 900, and runs.
    fn thread(birth: Birth) -> Thread {
        let at = |start, state| Interval { start: Timestamp(start), state, first_step: 0 };
        let runs = State::Running { cpu: Some(0) };
        let sleeps = State::Blocked(0);
        let intervals = vec![at(0, runs), at(100, sleeps), at(500, runs), at(600, sleeps), at(900, runs)];
        Thread { birth, intervals, end: Timestamp(1_000), ..Thread::default() }
    }

    fn record(time_ns: u64, before_ns: u64, number: u64, trace: Trace) -> ThreadContext {
        let header = Header {
            time_ns,
            sequence: 0,
            cpu: 0,
            kind: Kind::ThreadContext as u8,
            context: 0,
            tid: 7,
            pid: 7,
        };
        ThreadContext { header, before_ns, number, trace }
    }

    /// Begin, end, and whether it began before, of each stretch.
    fn stretches(birth: Birth, records: &[ThreadContext]) -> Vec<(Trace, u64, Option<u64>, bool)> {
        let mut contexts = ThreadContexts::default();
        records.iter().for_each(|record| contexts.changed(0, record));
        let all = contexts.finish(&[thread(birth)]);
        all.iter().map(|of| (of.trace, of.begin.0, of.end.map(|end| end.0), of.began_before)).collect()
    }

    #[test]
    fn a_wait_belongs_to_the_context_before_it_and_a_change_lies_between_two_looks() {
        // Seen with nothing when it fell asleep at 100, with A at 600, with B at 960.
        let records = [record(600, 100, 1, A), record(960, 600, 2, B)];
        assert_eq!(
            stretches(Birth::BeforeWindow, &records),
            [(A, 550, Some(930), false), (B, 930, None, false)]
        );
    }

    #[test]
    fn a_context_at_the_first_look_began_before_unless_the_thread_is_new() {
        let records = [record(100, 0, 0, A), record(600, 100, 1, ThreadContext::NONE)];
        assert_eq!(stretches(Birth::BeforeWindow, &records), [(A, 100, Some(550), true)]);
        assert_eq!(stretches(Birth::By(0), &records), [(A, 50, Some(550), false)]);
        // It slept without being looked at.
        assert_eq!(stretches(Birth::By(0), &[record(600, 0, 0, A)]), [(A, 600, None, true)]);
    }

    #[test]
    fn after_a_lost_record_the_end_is_not_known() {
        let records = [record(100, 50, 3, A), record(600, 100, 5, B), record(960, 0, 0, A)];
        assert_eq!(
            stretches(Birth::BeforeWindow, &records),
            [(A, 75, None, false), (A, 960, None, true), (B, 550, None, false)]
        );
    }

    #[test]
    fn impossible_times_make_no_stretch_that_ends_before_it_begins() {
        let records = [record(600, u64::MAX, 0, A), record(550, 1, 1, B), record(u64::MAX, 2, 2, A)];
        for (_, begin, end, _) in stretches(Birth::BeforeWindow, &records) {
            assert!(end.is_none_or(|end| end >= begin));
        }
    }
}
