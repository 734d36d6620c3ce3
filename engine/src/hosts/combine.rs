//! The facts of all hosts together, and their records in order of time.

use crate::event::{
    Facts, HostFact, KernelLocks, LeftOut, LossCounts, Note, OtherPrograms, Overhead, Recording, Requests,
    SampleCounts, WindowEnd,
};
use probe_abi::Record;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// One recording from all hosts' parts, which have numbers and times of their own place in it.
pub(super) fn combined(parts: Vec<Recording>, hosts: Vec<HostFact>, from_ns: u64, to_ns: u64) -> Recording {
    let (mut all, mut events, mut notes) = (Facts::default(), Vec::new(), Vec::new());
    let mut end = WindowEnd::default();
    for (place, part) in parts.into_iter().enumerate() {
        let mut facts = part.facts;
        add_end(&mut end, facts.end.take().unwrap_or_default(), place);
        add(&mut all, facts);
        events.push(part.events);
        notes.push(part.notes);
    }
    all.start_ns = from_ns;
    all.hosts = hosts;
    end.end_ns = to_ns;
    all.end = Some(end);
    let time_of_event = |record: &Record| record.header().time_ns;
    let time_of_note = |note: &Note| note.time_ns;
    Recording { facts: all, events: in_order(events, time_of_event), notes: in_order(notes, time_of_note) }
}

/// Merges lists in order of time.
fn in_order<T>(lists: Vec<Vec<T>>, time_ns: impl Fn(&T) -> u64) -> Vec<T> {
    let mut all = Vec::with_capacity(lists.iter().map(Vec::len).sum());
    let mut lists: Vec<_> = lists.into_iter().map(|list| list.into_iter().peekable()).collect();
    let mut next: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    for (place, list) in lists.iter_mut().enumerate() {
        next.extend(list.peek().map(|first| Reverse((time_ns(first), place))));
    }
    while let Some(Reverse((_, place))) = next.pop() {
        let Some(list) = lists.get_mut(place) else { continue };
        all.extend(list.next());
        next.extend(list.peek().map(|first| Reverse((time_ns(first), place))));
    }
    all
}

fn add(all: &mut Facts, facts: Facts) {
    all.processes.extend(facts.processes);
    all.threads.extend(facts.threads);
    all.functions.extend(facts.functions);
    all.addresses.extend(facts.addresses);
    all.modules.extend(facts.modules);
    all.mappings.extend(facts.mappings);
    all.code.extend(facts.code);
    all.spin.extend(facts.spin);
    // Costs and facts of a machine: those of the first host that knows them stand for all.
    all.hit_costs = all.hit_costs.or(facts.hit_costs);
    all.idle_wake = all.idle_wake.or(facts.idle_wake);
    all.line_transfer = all.line_transfer.or(facts.line_transfer);
    all.tick_ns = all.tick_ns.or(facts.tick_ns);
    all.idle_tick_ns = all.idle_tick_ns.or(facts.idle_tick_ns);
    all.sampling = all.sampling.or(facts.sampling);
    all.launched = all.launched.or(facts.launched);
}

fn add_end(all: &mut WindowEnd, end: WindowEnd, place: usize) {
    all.threads.extend(end.threads);
    all.pending.extend(end.pending);
    all.awaited.extend(end.awaited);
    all.goroutines.extend(end.goroutines);
    all.loss = loss(&all.loss, &end.loss);
    all.overhead = if place == 0 { end.overhead } else { all.overhead.zip(end.overhead).map(overhead) };
    all.samples = match (all.samples, end.samples) {
        (Some(a), Some(b)) => Some(samples(&a, &b)),
        (a, b) => a.or(b),
    };
    if let Some(locks) = end.kernel_locks {
        let sum = all.kernel_locks.get_or_insert_with(KernelLocks::default);
        sum.waits.extend(locks.waits);
        sum.lost = sum.lost.saturating_add(locks.lost);
    }
    if let Some(requests) = end.requests {
        add_requests(all.requests.get_or_insert_with(Requests::default), requests);
    }
    if let Some(others) = end.others {
        let sum = all.others.get_or_insert_with(OtherPrograms::default);
        sum.measured_ns = sum.measured_ns.max(others.measured_ns);
        sum.programs.extend(others.programs);
        sum.children = sum.children.take().or(others.children);
    }
    let (a, b) = (all.left_out, end.left_out);
    all.left_out = LeftOut {
        facts: a.facts.saturating_add(b.facts),
        notes: a.notes.saturating_add(b.notes),
        stacks: a.stacks.saturating_add(b.stacks),
        end: a.end.saturating_add(b.end),
    };
}

fn add_requests(all: &mut Requests, requests: Requests) {
    all.sums.extend(requests.sums);
    all.sums.sort_by_key(|sum| Reverse(sum.count));
    all.counted_ns = all.counted_ns.max(requests.counted_ns);
    all.pauses = all.pauses.saturating_add(requests.pauses);
    all.lost = all.lost.saturating_add(requests.lost);
    all.dropped_connections = all.dropped_connections.saturating_add(requests.dropped_connections);
    all.open.extend(requests.open);
    all.open.sort_by_key(|open| open.arrived_ns);
}

fn loss(a: &LossCounts, b: &LossCounts) -> LossCounts {
    LossCounts {
        dropped: a.dropped.saturating_add(b.dropped),
        missed: a.missed.saturating_add(b.missed),
        operations: a.operations.saturating_add(b.operations),
        operations_short: a.operations_short.saturating_add(b.operations_short),
        operations_left_out: a.operations_left_out.saturating_add(b.operations_left_out),
        operations_counted: a.operations_counted.saturating_add(b.operations_counted),
        operations_forbidden: a.operations_forbidden.saturating_add(b.operations_forbidden),
        late: a.late.saturating_add(b.late),
        undecodable: a.undecodable.saturating_add(b.undecodable),
        unseen_switches: a.unseen_switches.saturating_add(b.unseen_switches),
        recursion_folded: a.recursion_folded.saturating_add(b.recursion_folded),
    }
}

fn samples(a: &SampleCounts, b: &SampleCounts) -> SampleCounts {
    SampleCounts {
        taken: a.taken.saturating_add(b.taken),
        truncated: a.truncated.saturating_add(b.truncated),
        without_stack: a.without_stack.saturating_add(b.without_stack),
        no_room: a.no_room.saturating_add(b.no_room),
        unread: a.unread.saturating_add(b.unread),
        lost: a.lost.saturating_add(b.lost),
        left_out: a.left_out.saturating_add(b.left_out),
    }
}

/// Costs add up; the time in which they came is the same. Without a known cost of each host the sum is not known.
fn overhead((a, b): (Overhead, Overhead)) -> Overhead {
    Overhead {
        budget_ppm: a.budget_ppm.max(b.budget_ppm),
        wall_ns: a.wall_ns.max(b.wall_ns),
        target_ns: a.target_ns.saturating_add(b.target_ns),
        hits: a.hits.saturating_add(b.hits),
        hit_ns: a.hit_ns.saturating_add(b.hit_ns),
        events: a.events.saturating_add(b.events),
        event_ns: a.event_ns.saturating_add(b.event_ns),
        operations: a.operations.saturating_add(b.operations),
        operation_ns: a.operation_ns.saturating_add(b.operation_ns),
        left_out: a.left_out.saturating_add(b.left_out),
        left_out_ns: a.left_out_ns.saturating_add(b.left_out_ns),
        samples: a.samples.saturating_add(b.samples),
        sample_ns: a.sample_ns.saturating_add(b.sample_ns),
        once_ns: a.once_ns.max(b.once_ns),
        collector_ns: a.collector_ns.saturating_add(b.collector_ns),
        unwinding_ns: a.unwinding_ns.saturating_add(b.unwinding_ns),
        others_ns: a.others_ns.saturating_add(b.others_ns),
        hosts: a.hosts.max(1).saturating_add(b.hosts.max(1)),
    }
}
