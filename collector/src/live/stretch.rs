//! The last stretch of a live recording, bounded in time and in records.

use super::intake::Batch;
use engine::event::{
    AddressFact, CodeFact, Facts, FunctionFact, LossCounts, MappingFact, Overhead, Recording, Window,
    WindowEnd,
};
use std::collections::VecDeque;

/// A stretch that holds as many records as it may gives up one in so many, the oldest: moving its start on record
/// by record would take too long.
const GIVE_UP: usize = 8;

/// See the module.
pub struct Stretch {
    window: Window,
    span_ns: u64,
    max_events: usize,
    complete_to_ns: u64,
    /// Where the start had to move for the number of records, if it had to.
    cut_to_ns: Option<u64>,
    /// Losses since the start of the recording, and from when on they had that value. The first one holds at the
    /// stretch's start.
    losses: VecDeque<(u64, LossCounts)>,
    /// The same for what recording has cost.
    costs: VecDeque<(u64, Overhead)>,
}

impl Stretch {
    /// Begins with the facts; at most `span_ns` long, at most `max_events` records.
    pub fn new(facts: Facts, span_ns: u64, max_events: usize) -> Stretch {
        let start_ns = facts.start_ns;
        Stretch {
            window: Window::new(facts),
            span_ns,
            max_events: max_events.max(GIVE_UP),
            complete_to_ns: start_ns,
            cut_to_ns: None,
            losses: VecDeque::from([(start_ns, LossCounts::default())]),
            costs: VecDeque::from([(start_ns, Overhead::default())]),
        }
    }

    /// Takes the next batch.
    pub fn take(&mut self, batch: &Batch) {
        for record in &batch.records {
            if record.header().time_ns < self.window.start_ns() {
                // Of the very instant at which the start was cut.
                continue;
            }
            self.window.push(*record);
            if self.window.len() > self.max_events {
                self.give_up_oldest();
            }
        }
        for note in &batch.notes {
            self.window.push_note(note.clone());
        }
        self.complete_to_ns = self.complete_to_ns.max(batch.complete_to_ns);
        if self.losses.back().is_none_or(|(_, loss)| *loss != batch.loss) {
            self.losses.push_back((self.complete_to_ns, batch.loss));
            self.forget_losses();
        }
        if let Some(cost) = batch.overhead
            && self.costs.back().is_none_or(|(_, last)| *last != cost)
        {
            self.costs.push_back((self.complete_to_ns, cost));
            self.forget_losses();
        }
    }

    /// More functions have probes from now on; one with a known number takes the earlier one's place.
    pub fn add_functions(&mut self, functions: &[FunctionFact]) {
        let known = &mut self.window.facts_mut().functions;
        for function in functions {
            match known.iter_mut().find(|other| other.id == function.id) {
                Some(earlier) => *earlier = function.clone(),
                None => known.push(function.clone()),
            }
        }
    }

    /// More code of sampled processes is known; what lay there before is forgotten when there is too much.
    pub fn add_mappings(&mut self, mappings: &[MappingFact]) {
        const MOST: usize = 1 << 16;
        let known = &mut self.window.facts_mut().mappings;
        known.extend_from_slice(mappings);
        let too_many = known.len().saturating_sub(MOST);
        known.drain(..too_many);
    }

    /// Code of sampled stacks has names; each place comes once.
    pub fn add_code(&mut self, code: &[CodeFact]) {
        self.window.facts_mut().code.extend_from_slice(code);
    }

    /// More addresses have names; each comes once.
    pub fn add_addresses(&mut self, addresses: &[AddressFact]) {
        self.window.facts_mut().addresses.extend_from_slice(addresses);
    }

    /// The stretch as a recording that ends here; what happened later is not in it. Losses are those inside.
    pub fn ending(&mut self, mut end: WindowEnd) -> Recording {
        let end_ns = end.end_ns;
        self.move_start(end_ns.saturating_sub(self.span_ns));
        let before = self.losses.front().map(|(_, loss)| *loss).unwrap_or_default();
        end.loss = since(end.loss, before);
        let cost_before = self.costs.front().map(|(_, cost)| *cost).unwrap_or_default();
        end.overhead = end.overhead.map(|cost| cost.since(&cost_before));
        let mut recording = self.window.recording(end).clone();
        let inside = recording.events.partition_point(|event| event.header().time_ns <= end_ns);
        recording.events.truncate(inside);
        recording
    }

    /// Whether it is shorter than asked for, because it holds as many records as it may.
    pub fn is_cut(&self) -> bool {
        let wanted_ns = self.complete_to_ns.saturating_sub(self.span_ns);
        self.cut_to_ns.is_some_and(|cut_ns| cut_ns == self.window.start_ns() && cut_ns > wanted_ns)
    }

    fn move_start(&mut self, start_ns: u64) {
        self.window.advance(start_ns);
        self.forget_losses();
    }

    fn give_up_oldest(&mut self) {
        let end = WindowEnd { end_ns: self.complete_to_ns, ..WindowEnd::default() };
        let events = &self.window.recording(end).events;
        let Some(first) = events.get(events.len() / GIVE_UP) else { return };
        // At least one record leaves, even if many have the same time.
        let start_ns = first.header().time_ns.saturating_add(1);
        self.move_start(start_ns);
        self.cut_to_ns = Some(self.window.start_ns());
    }

    fn forget_losses(&mut self) {
        let start_ns = self.window.start_ns();
        while self.losses.get(1).is_some_and(|(from_ns, _)| *from_ns <= start_ns) {
            self.losses.pop_front();
        }
        while self.costs.get(1).is_some_and(|(from_ns, _)| *from_ns <= start_ns) {
            self.costs.pop_front();
        }
    }
}

fn since(now: LossCounts, before: LossCounts) -> LossCounts {
    LossCounts {
        dropped: now.dropped.saturating_sub(before.dropped),
        operations: now.operations.saturating_sub(before.operations),
        operations_left_out: now.operations_left_out.saturating_sub(before.operations_left_out),
        operations_forbidden: now.operations_forbidden.saturating_sub(before.operations_forbidden),
        missed: now.missed.saturating_sub(before.missed),
        unseen_switches: now.unseen_switches.saturating_sub(before.unseen_switches),
        late: now.late.saturating_sub(before.late),
        undecodable: now.undecodable.saturating_sub(before.undecodable),
        recursion_folded: now.recursion_folded.saturating_sub(before.recursion_folded),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe_abi::{Exit, Header, Kind, Record};

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
    fn holds_the_last_span_and_nothing_after_the_end() {
        let mut stretch = Stretch::new(Facts { start_ns: 1_000, ..Facts::default() }, 300, 1_000);
        stretch.take(&batch((1_000..2_000).step_by(10), 2_000, 0));
        let recording = stretch.ending(end(1_900, 0));
        assert_eq!(recording.facts.start_ns, 1_600);
        let times: Vec<u64> = recording.events.iter().map(|event| event.header().time_ns).collect();
        assert_eq!(times, (1_600..=1_900).step_by(10).collect::<Vec<_>>());
        assert!(!stretch.is_cut());
    }

    #[test]
    fn a_window_that_is_not_yet_full_is_not_cut() {
        let mut stretch = Stretch::new(Facts { start_ns: 1_000, ..Facts::default() }, 300, 1_000);
        stretch.take(&batch(1_000..1_050, 1_050, 0));
        assert!(!stretch.is_cut());
    }

    #[test]
    fn never_holds_more_records_than_it_may_and_says_that_it_is_shorter() {
        let mut stretch = Stretch::new(Facts::default(), 1_000_000, 100);
        for round in 0..50 {
            stretch.take(&batch((0..37).map(|i| round * 37 + i), round * 37 + 36, 0));
            assert!(stretch.window.len() <= 100);
        }
        assert!(stretch.is_cut());
        let recording = stretch.ending(end(50 * 37, 0));
        assert!(recording.events.len() > 60, "{}", recording.events.len());
        assert_eq!(recording.facts.start_ns, recording.events[0].header().time_ns);
    }

    #[test]
    fn many_records_at_one_instant_do_no_harm() {
        let mut stretch = Stretch::new(Facts::default(), 1_000, 16);
        stretch.take(&batch(std::iter::repeat_n(5, 1_000), 5, 0));
        assert!(stretch.window.len() <= 16);
    }

    #[test]
    fn losses_before_the_window_do_not_count_for_it() {
        let mut stretch = Stretch::new(Facts::default(), 100, 1_000);
        stretch.take(&batch([], 50, 7));
        stretch.take(&batch([], 120, 7));
        stretch.take(&batch([], 180, 9));
        assert_eq!(stretch.ending(end(140, 9)).facts.end.map(|end| end.loss.dropped), Some(9));
        assert_eq!(stretch.ending(end(200, 9)).facts.end.map(|end| end.loss.dropped), Some(2));
    }
}
