//! The last stretch of a live recording, bounded in time and in records.

use super::counts_over_time::CountsOverTime;
use crate::live::naming::{PLACES_AT_ONCE, forget_mappings};
use crate::live::rings::Batch;
use engine::event::{
    AddressFact, AwaitedFact, CodeFact, Facts, FunctionFact, GoroutineFact, MappingFact, Recording, Requests,
    WindowEnd,
};
use engine::timeline::Window;

/// A window with the maximum number of records drops this fraction (one part in `GIVE_UP`) of its records, the oldest
/// ones: moving its start record by record would take too long.
const GIVE_UP: usize = 8;

/// Largest number of mappings of sampled processes that are kept, and of names of places in them.
const MOST_MAPPINGS: usize = 1 << 16;
const MOST_CODE: usize = 4 * PLACES_AT_ONCE;

/// See the module.
pub struct RecentWindow {
    window: Window,
    span_ns: u64,
    max_events: usize,
    complete_to_ns: u64,
    /// Time at which the window had to start because of the number of records; `None` if it did not have to.
    cut_to_ns: Option<u64>,
    /// Losses and costs since the start of the recording.
    counts: CountsOverTime,
    /// What threads have slept for.
    awaited: Vec<AwaitedFact>,
    goroutines: Vec<GoroutineFact>,
}

impl RecentWindow {
    /// A window that begins with these facts, is at most `span_ns` long and has at most `max_events` records.
    pub fn new(facts: Facts, span_ns: u64, max_events: usize) -> RecentWindow {
        let start_ns = facts.start_ns;
        RecentWindow {
            window: Window::new(facts),
            span_ns,
            max_events: max_events.max(GIVE_UP),
            complete_to_ns: start_ns,
            cut_to_ns: None,
            counts: CountsOverTime::new(start_ns),
            awaited: Vec::new(),
            goroutines: Vec::new(),
        }
    }

    /// Takes the next batch.
    pub fn take(&mut self, batch: &Batch) {
        for record in &batch.records {
            if record.header().time_ns < self.window.start_ns() {
                // A record of the very instant after which the window was cut.
                continue;
            }
            self.window.push(*record);
            if self.window.len() > self.max_events {
                self.keep(self.max_events - self.max_events / GIVE_UP);
            }
        }
        for note in &batch.notes {
            self.window.push_note(note.clone());
        }
        self.complete_to_ns = self.complete_to_ns.max(batch.complete_to_ns);
        self.counts.take(self.complete_to_ns, batch.loss, batch.overhead);
        self.counts.forget_before(self.window.start_ns());
    }

    /// Takes the requests since the start of the recording.
    pub fn take_requests(&mut self, requests: &Requests) {
        self.counts.take_requests(self.complete_to_ns, requests);
    }

    /// Takes what threads have slept for since the start of the recording.
    pub fn take_awaited(&mut self, awaited: &[AwaitedFact]) {
        awaited.clone_into(&mut self.awaited);
    }

    /// Takes what goroutines have done in the last seconds.
    pub fn take_goroutines(&mut self, goroutines: &[GoroutineFact]) {
        goroutines.clone_into(&mut self.goroutines);
    }

    /// Adds functions that have probes from now on. A function with a known number replaces the earlier one.
    pub fn add_functions(&mut self, functions: &[FunctionFact]) {
        let known = &mut self.window.facts_mut().functions;
        for function in functions {
            match known.iter_mut().find(|other| other.id == function.id) {
                Some(earlier) => *earlier = function.clone(),
                None => known.push(function.clone()),
            }
        }
    }

    /// Adds mappings of sampled processes, and forgets some when there are too many.
    pub fn add_mappings(&mut self, mappings: &[MappingFact]) {
        let known = &mut self.window.facts_mut().mappings;
        known.extend_from_slice(mappings);
        forget_mappings(known, MOST_MAPPINGS);
    }

    /// Adds names of sampled code. When there are too many, names are forgotten that no stack of the window has, since a
    /// program may make code without end. The last ones stay, since they are not sent again soon ([`PLACES_AT_ONCE`]).
    pub fn add_code(&mut self, code: &[CodeFact]) {
        self.window.facts_mut().code.extend_from_slice(code);
        if self.window.facts_mut().code.len() > MOST_CODE {
            self.window.forget_code(PLACES_AT_ONCE);
        }
    }

    /// Adds names of addresses; each name comes once.
    pub fn add_addresses(&mut self, addresses: &[AddressFact]) {
        self.window.facts_mut().addresses.extend_from_slice(addresses);
    }

    /// The window's last `most` records up to this end, as a recording. Losses are those inside.
    pub fn ending(&mut self, end: WindowEnd, most: usize) -> Recording {
        let end_ns = end.end_ns;
        self.move_start(end_ns.saturating_sub(self.span_ns));
        self.keep(most);
        let mut end = self.counts.since(self.window.start_ns(), end);
        if end.awaited.is_empty() {
            end.awaited.clone_from(&self.awaited);
        }
        if end.goroutines.is_empty() {
            end.goroutines.clone_from(&self.goroutines);
        }
        self.window.ending(end)
    }

    /// The window's first instant.
    pub fn start_ns(&self) -> u64 {
        self.window.start_ns()
    }

    /// Whether the window is shorter than asked for, because it contains the largest allowed number of records.
    pub fn is_cut(&self) -> bool {
        let wanted_ns = self.complete_to_ns.saturating_sub(self.span_ns);
        self.cut_to_ns.is_some_and(|cut_ns| cut_ns == self.window.start_ns() && cut_ns > wanted_ns)
    }

    fn move_start(&mut self, start_ns: u64) {
        self.window.advance(start_ns);
        self.counts.forget_before(self.window.start_ns());
    }

    /// Drops the oldest records so that at most `most` remain. All records with the time of the last dropped one are
    /// dropped, too.
    fn keep(&mut self, most: usize) {
        let Some(last_gone) = self.window.len().checked_sub(most.saturating_add(1)) else { return };
        let Some(last) = self.window.events().get(last_gone) else { return };
        let start_ns = last.header().time_ns.saturating_add(1);
        self.move_start(start_ns);
        self.cut_to_ns = Some(self.window.start_ns());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::event::LossCounts;
    use probe_abi::{Exit, Header, Kind, Record, Sample};
    use std::collections::BTreeSet;

    fn batch(times: impl IntoIterator<Item = u64>, complete_to_ns: u64, dropped: u64) -> Batch {
        let record = |time_ns| {
            let kind = Kind::Exit as u8;
            let header = Header { time_ns, sequence: 0, cpu: 0, kind, context: 0, tid: 1, pid: 1 };
            Record::Exit(Exit { header, last_of_process: 0, placement: 0 })
        };
        Batch {
            records: times.into_iter().map(record).collect(),
            complete_to_ns,
            loss: LossCounts { dropped, ..LossCounts::default() },
            ..Batch::default()
        }
    }

    fn end(end_ns: u64, dropped: u64) -> WindowEnd {
        WindowEnd { end_ns, loss: LossCounts { dropped, ..LossCounts::default() }, ..WindowEnd::default() }
    }

    #[test]
    fn a_recent_window_has_the_last_span_up_to_the_end() {
        let mut recent = RecentWindow::new(Facts { start_ns: 1_000, ..Facts::default() }, 300, 1_000);
        recent.take(&batch((1_000..2_000).step_by(10), 2_000, 0));
        let recording = recent.ending(end(1_900, 0), usize::MAX);
        assert_eq!(recording.facts.start_ns, 1_600);
        let times: Vec<u64> = recording.events.iter().map(|event| event.header().time_ns).collect();
        assert_eq!(times, (1_600..=1_900).step_by(10).collect::<Vec<_>>());
        assert!(!recent.is_cut());
    }

    #[test]
    fn a_recent_window_that_is_not_full_is_not_cut() {
        let mut recent = RecentWindow::new(Facts { start_ns: 1_000, ..Facts::default() }, 300, 1_000);
        recent.take(&batch(1_000..1_050, 1_050, 0));
        assert!(!recent.is_cut());
    }

    #[test]
    fn a_recent_window_with_too_many_records_is_shortened_and_cut() {
        let mut recent = RecentWindow::new(Facts::default(), 1_000_000, 100);
        for round in 0..50 {
            recent.take(&batch((0..37).map(|i| round * 37 + i), round * 37 + 36, 0));
            assert!(recent.window.len() <= 100);
        }
        assert!(recent.is_cut());
        let recording = recent.ending(end(50 * 37, 0), usize::MAX);
        assert!(recording.events.len() > 60, "{}", recording.events.len());
        assert_eq!(recording.facts.start_ns, recording.events[0].header().time_ns);
        let last = recent.ending(end(50 * 37, 0), 10);
        assert_eq!((last.events.len(), last.facts.start_ns), (10, 50 * 37 - 10));
        assert!(recent.is_cut());
    }

    #[test]
    fn many_records_at_one_instant_do_not_exceed_the_window_s_limit() {
        let mut recent = RecentWindow::new(Facts::default(), 1_000, 16);
        recent.take(&batch(std::iter::repeat_n(5, 1_000), 5, 0));
        assert!(recent.window.len() <= 16);
    }

    #[test]
    fn losses_before_the_recent_window_do_not_count_for_it() {
        let mut recent = RecentWindow::new(Facts::default(), 100, 1_000);
        recent.take(&batch([], 50, 7));
        recent.take(&batch([], 120, 7));
        recent.take(&batch([], 180, 9));
        assert_eq!(recent.ending(end(140, 9), usize::MAX).facts.end.map(|end| end.loss.dropped), Some(9));
        assert_eq!(recent.ending(end(200, 9), usize::MAX).facts.end.map(|end| end.loss.dropped), Some(2));
    }

    /// A program may generate code all the time. Its names and stacks must not accumulate, since each report copies them,
    /// and the mapping of the program itself must not be forgotten.
    #[test]
    fn an_hour_of_generated_code_takes_a_bounded_amount_of_memory() {
        use engine::event::{Note, NoteKind};
        const SECOND: u64 = 1_000_000_000;
        const JIT: &str = "/memfd:code (deleted)";
        let program =
            MappingFact { pid: 1, start: 0x1000, end: 0x2000, path: "/program".into(), ..Default::default() };
        let mut recent = RecentWindow::new(Facts::default(), 10 * SECOND, 10_000);
        recent.add_mappings(std::slice::from_ref(&program));
        let name = |path: &str, offset, name: String| CodeFact {
            path: path.into(),
            offset,
            function: Some(name),
            ..CodeFact::default()
        };
        recent.add_code(&[name("/program", 0x10, "main".into())]);
        let (mut most, mut id) = ((0, 0, 0), 0);
        let mut work = BTreeSet::new();
        for second in 0..3_600u64 {
            // 40 new functions in a new mapping, each on a stack below `main`.
            let at = 0x10_0000 + second * 0x1000;
            let jit = |start, path: &str| MappingFact {
                pid: 1,
                since_ns: second * SECOND,
                start,
                end: start + 0x1000,
                path: path.into(),
                file_offset: if path.is_empty() { 0 } else { start },
                ..Default::default()
            };
            recent.add_mappings(&[jit(at, JIT)]);
            recent.add_mappings(&(0..40).map(|one| jit(at * 0x100 + one * 0x1000, "")).collect::<Vec<_>>());
            let (mut notes, mut records) = (Vec::new(), Vec::new());
            for one in 0..40 {
                id += 1;
                let (kind, time_ns) = (Kind::Sample as u8, second * SECOND + one);
                let header = Header { time_ns, sequence: 0, cpu: 0, kind, context: 0, tid: 1, pid: 1 };
                records.push(Record::Sample(Sample { header, stack: id, reason: 0, flags: 0, reserved: 0 }));
                let frames = vec![at + one * 16, 0x1011];
                let kind = NoteKind::Stack { id, pid: 1, frames, cut: false };
                notes.push(Note { time_ns: second * SECOND, kind });
            }
            // A process that got no probes, and has ended since.
            let kind = NoteKind::Gap {
                pid: 1_000 + second as u32,
                cpu: None,
                until_ns: u64::MAX,
                lost: 0,
                reason: engine::event::GapReason::NotProbed,
            };
            notes.push(Note { time_ns: second * SECOND, kind });
            recent.take(&Batch { records, notes, complete_to_ns: second * SECOND, ..Batch::default() });
            recent.add_code(
                &(0..100).map(|one| name(JIT, at + one * 16, format!("f{id}-{one}"))).collect::<Vec<_>>(),
            );
            if second % 120 != 119 {
                continue;
            }
            let recording = recent.ending(end(second * SECOND, 0), usize::MAX);
            let facts = &recording.facts;
            most.0 = facts.mappings.len().max(most.0);
            most.1 = facts.code.len().max(most.1);
            most.2 = recent.window.notes().len().max(most.2);
            work.insert((recording.events.len(), recording.notes.len()));
            assert!(facts.mappings.contains(&program), "after {second} s");
            assert!(facts.code.iter().any(|fact| fact.function.as_deref() == Some("main")));
        }
        assert!(most.0 <= MOST_MAPPINGS && most.1 <= MOST_CODE && most.2 <= (1 << 16) + 1_000, "{most:?}");
        assert!(most.1 > MOST_CODE / 2, "there was enough to forget: {most:?}");
        assert!(most.2 > 1 << 16, "there were stacks enough: {most:?}");
        // The samples and stacks of ten seconds, and their notes.
        assert_eq!(work, BTreeSet::from([(401, 401 + 11)]), "each report is of as much as the first one");
    }
}
