//! The end of the window: closes open intervals, truncates open waits, compares CPU time with /proc, and writes notes.

use super::builder::Builder;
use super::expand_bursts::Joined;
use super::locks::Locks;
use super::model::{Counts, External, State, Step, StepKind, Thread, Timeline, UnknownReason, Wake};
use super::part::pauses::Pauses;
use super::part::resume::ran_between;
use super::thread::inconsistent::{AtEnd, Ran};
use super::thread::name::clean_name;
use super::thread::thread_tracker::ThreadTracker;
use crate::event::{
    Facts, FunctionId, GapReason, HostFact, Note, NoteKind, Overhead, Recording, ThreadFact, WindowEnd,
};
use crate::finding::Finding;
use crate::time::{Nanos, Timestamp};
use probe_abi::SyncFamily;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// CPU time by /proc and by events may differ by this share of the time between the two readings of /proc, plus this much: for
/// interrupt time, and because the reader of /proc may be pre-empted between reading the clock and the file.
const CPU_TIME_TOLERANCE_PERCENT: u64 = 5;
const CPU_TIME_TOLERANCE_NS: u64 = 20_000_000;

/// Ends all threads at the window's end. Sums of lock operations become about `most_pairs` pairs of operations at most.
pub(super) fn finish(mut builder: Builder, recording: &Recording, end_ns: u64, most_pairs: u64) -> Timeline {
    let facts = &recording.facts;
    builder.advance_to(end_ns);
    let at_end_of = facts_at_end(facts);
    let mut disagreements = Vec::new();
    let Builder { threads, mut tally, events, late, start_ns, mut locks, stacks, gaps, unfollowed, .. } =
        builder;
    let (mut out, at_end_facts) = (Vec::with_capacity(threads.len()), facts.end.as_ref());
    for mut thread in threads {
        let fact = at_end_of.get(&(thread.out.pid, thread.out.tid)).copied();
        thread.window_ends(end_ns, at_end(&thread, fact), &mut tally);
        cut_last_wait(&mut thread.out);
        disagreements.extend(disagreement(&thread, fact, end_ns));
        out.push(ended(thread, fact));
    }
    let joined = super::expand_bursts::expand_bursts(&mut out, &mut locks, most_pairs);
    let unknown = out.iter().map(|thread| thread.time_in(|state| matches!(state, State::Unknown(_))).0);
    let unknown = unknown.fold(0, u64::saturating_add);
    let counts = Counts {
        events,
        late,
        wakes: tally.wakes,
        unmatched: tally.unmatched,
        spurious: tally.spurious,
        truncated_waits: tally.truncated_waits,
        contradictions: tally.contradictions,
        inferred: tally.inferred,
        stray_exits: tally.stray_exits,
        lost: lost(recording, late),
        maybe_more_lost: facts.end.is_none(),
        unknown: Nanos(unknown),
        unfollowed,
    };
    super::deadline::tell_lengths_from_deadlines(&mut out);
    let traces = builder.contexts.finish(&out);
    let mut timeline = Timeline {
        start: Timestamp(start_ns),
        end: Timestamp(end_ns),
        stacks: super::samples::split_by_time(&mut out, stacks.all, facts),
        threads: out,
        wakeups: tally.wakeups,
        messages: builder.messages,
        hosts: facts.hosts.iter().map(with_clean_name).collect(),
        lock_holes: locks.holes,
        lossy: lossy(recording, &locks),
        go: go_processes(facts),
        rust: facts.modules.iter().any(|module| module.own_locks.as_deref() == Some("Rust")),
        families_removed: super::unprobed_locks::families_removed(&recording.notes),
        locks: locks.all,
        lock_operations: locks.lock_operations,
        addresses: facts.addresses.clone(),
        sampling: facts.sampling,
        mappings: facts.mappings.clone(),
        code: facts.code.clone(),
        spin: facts.spin.clone(),
        cpu_runs: facts.cpu_runs.clone(),
        functions: facts.functions.clone(),
        probes_removed: probes_removed(recording, false),
        partly_probed: partly_probed(recording),
        asked_off: probes_removed(recording, true),
        socket_requests: builder.requests.with_open(facts, &builder.live, Timestamp(end_ns)),
        traces,
        requests: at_end_facts.and_then(|end| end.requests.clone()),
        awaited: at_end_facts.map(|end| end.awaited.clone()).unwrap_or_default(),
        goroutines: at_end_facts.map(|end| end.goroutines.clone()).unwrap_or_default(),
        others: at_end_facts.and_then(|end| end.others.clone()),
        kernel_locks: at_end_facts.and_then(|end| end.kernel_locks.clone()),
        idle_wake: facts.idle_wake,
        line_transfer: facts.line_transfer,
        tick_ns: facts.tick_ns,
        idle_tick_ns: facts.idle_tick_ns,
        cpu_quota: facts.cpu_quota,
        launched: facts.launched,
        first_cpus: first_cpus(facts),
        counts,
        ..Timeline::default()
    };
    let cost = at_end_facts.and_then(|end| end.overhead);
    timeline.overhead = cost.map(|cost| over(cost, timeline.began().0, end_ns, running_ns(&timeline)));
    timeline.findings = findings(&timeline, recording, &disagreements, gaps.joined, joined);
    decided(timeline)
}

/// The host's name is in the names of its threads, and comes from a file.
fn with_clean_name(host: &HostFact) -> HostFact {
    /// Linux's limit, `HOST_NAME_MAX`.
    const LONGEST: usize = 64;
    HostFact { name: clean_name(host.name.as_bytes()).chars().take(LONGEST).collect(), ..host.clone() }
}

/// The timeline with what only all of it shows.
fn decided(mut timeline: Timeline) -> Timeline {
    timeline.semaphores = super::thread_end::semaphores(&timeline);
    super::request_waits::mark(&mut timeline);
    super::put_back::put_back(&mut timeline);
    timeline
}

/// The thread, with what only its end tells.
fn ended(thread: ThreadTracker, fact: Option<&ThreadFact>) -> Thread {
    let mut out = Thread { stretches: thread.stretches.finish(), ..thread.out };
    fact.into_iter().for_each(|fact| take_from_end(&mut out, fact));
    out
}

/// Takes over a thread's facts that were read from /proc at the end.
fn take_from_end(thread: &mut Thread, fact: &ThreadFact) {
    thread.nice = fact.nice.or(thread.nice);
    thread.awaits = fact.awaits;
    if !fact.cpus.is_empty() {
        thread.cpus.clone_from(&fact.cpus);
    }
}

/// A thread that a signal ends during a wait runs at most this long afterwards, nanoseconds.
const DYING_NS: u64 = 20_000_000;

/// Truncates the wait in which a signal ended the thread: the thread did not wait for the signal, so the wait has no end.
fn cut_last_wait(thread: &mut Thread) {
    let last = thread.spans().filter(|(.., state)| matches!(state, State::Blocked(_))).last();
    let Some((_, until, State::Blocked(number))) = last.filter(|_| thread.died) else { return };
    let acts = |step: &&Step| !matches!(step.kind, StepKind::Wake(_));
    let acted = thread.steps.iter().rev().take_while(|step| step.time > until).any(|step| acts(&step));
    let running =
        thread.spans().filter(|(from, _, state)| *from >= until && matches!(state, State::Running { .. }));
    let ran = running.fold(0u64, |sum, (from, until, _)| sum.saturating_add(until.0.saturating_sub(from.0)));
    if let Some(wait) = thread.waits.get_mut(number as usize)
        && wait.wake == Wake::External(External::Signal)
        && !acted
        && ran <= DYING_NS
    {
        wait.wake = Wake::CutAtEnd;
    }
}

/// Facts that were read from /proc at the end, by process and thread.
fn facts_at_end(facts: &Facts) -> FxHashMap<(u32, u32), &ThreadFact> {
    let threads = facts.end.iter().flat_map(|end| &end.threads);
    threads.map(|thread| ((thread.pid, thread.tid), thread)).collect()
}

/// Number of lost records, by gaps or by the kernel's counters: the larger number.
fn lost(recording: &Recording, late: u64) -> u64 {
    let in_gaps = |operations: bool| {
        let lost = recording.notes.iter().map(|note| match note.kind {
            // These wake-ups were recorded, but the records name another waker.
            NoteKind::Gap { reason: GapReason::PacketsNotFollowed, .. } => 0,
            NoteKind::Gap { lost, reason, .. } if operations == (reason == GapReason::OperationsLost) => lost,
            _ => 0,
        });
        lost.fold(0, u64::saturating_add)
    };
    let end = recording.facts.end.as_ref();
    // Operations that were not recorded on purpose, and those of pauses, look like lost ones, so the counter of lost operations is an upper
    // bound.
    let are_left_out =
        end.is_some_and(|end| end.loss.operations_left_out > 0) || !Pauses::of(&recording.notes).is_empty();
    let most = end.filter(|_| are_left_out).map_or(u64::MAX, |end| end.loss.operations);
    let gap_loss = late.saturating_add(in_gaps(false)).saturating_add(in_gaps(true).min(most));
    gap_loss.max(end.map_or(0, |end| end.loss.lost()))
}

/// The recording's cost with the run's length as wall time: costs are summed from before the first probe. CPU time that
/// a program used after it was last read counts for other programs in `cost`; events show it, and it is moved to the
/// program.
fn over(cost: Overhead, start_ns: u64, end_ns: u64, running_ns: u64) -> Overhead {
    let wall_ns = if cost.wall_ns == 0 { 0 } else { end_ns.saturating_sub(start_ns) };
    let not_read_ns = running_ns.saturating_sub(cost.target_ns);
    let target_ns = cost.target_ns.max(running_ns.saturating_sub(cost.in_threads_ns()));
    Overhead { wall_ns, target_ns, others_ns: cost.others_ns.saturating_sub(not_read_ns), ..cost }
}

/// Time for which the threads ran, summed, ns.
fn running_ns(timeline: &Timeline) -> u64 {
    timeline.threads.iter().map(|thread| thread.ran().0).fold(0, u64::saturating_add)
}

/// Families of lock operations with losses, by process. Holes in the sequence numbers of a thread's ring show the
/// losses, and the operations next to a hole show the families. Operations that were not recorded on purpose were of a
/// single thread, so no other thread misses them. The kernel's rings hold all kinds of records: where one was full, any
/// family that uses it may have losses.
fn lossy(recording: &Recording, locks: &Locks) -> Vec<(u32, SyncFamily)> {
    let is_told = |end: &WindowEnd| end.loss.operations > 0 || end.loss.operations_left_out == 0;
    let lost = recording.facts.end.as_ref().is_none_or(is_told);
    let own = locks.lossy.iter().filter(|_| lost);
    let full = |note: &Note| matches!(note.kind, NoteKind::Gap { reason: GapReason::RingFull, lost, .. } if lost > 0);
    let kernel = locks.probed.iter().filter(|_| recording.notes.iter().any(full));
    let mut all: Vec<(u32, SyncFamily)> = own.chain(kernel).copied().collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Processes that run a Go program. Facts about their binary, which come with function probes, show it, or sampled code of Go's
/// runtime. Every stack of a goroutine begins at `runtime.goexit.abi0`, and every thread's own stack runs `runtime.mcall` or
/// `runtime.mstart` (Go, `runtime/asm_amd64.s`).
fn go_processes(facts: &Facts) -> Vec<u32> {
    let is_runtime = |name: &str| {
        let name = name.strip_suffix(".abi0").unwrap_or(name);
        matches!(name, "runtime.goexit" | "runtime.mcall" | "runtime.mstart" | "runtime.mstart1")
    };
    let named = facts.modules.iter().filter(|module| module.own_locks.as_deref() == Some("Go"));
    let named: BTreeSet<&str> = named.map(|module| module.path.as_str()).collect();
    // A library may be written in Go while most of its program is not.
    let sampled = facts.code.iter().filter(|code| code.function.as_deref().is_some_and(is_runtime));
    let sampled: BTreeSet<&str> = sampled.map(|code| code.path.as_str()).collect();
    let programs = facts.processes.iter().map(|process| (process.pid, process.executable.as_str()));
    let programs = programs.filter(|(_, path)| named.contains(path) || sampled.contains(path));
    let code = facts.mappings.iter().map(|mapping| (mapping.pid, mapping.path.as_str()));
    let mut pids: Vec<u32> =
        programs.chain(code.filter(|(_, path)| named.contains(path))).map(|(pid, _)| pid).collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

/// The CPUs that first threads of processes may use, each set once.
fn first_cpus(facts: &Facts) -> Vec<Vec<u32>> {
    let leaders = facts.threads.iter().filter(|thread| thread.tid == thread.pid && !thread.cpus.is_empty());
    let mut all: Vec<Vec<u32>> = leaders.map(|thread| thread.cpus.clone()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn at_end(thread: &ThreadTracker, fact: Option<&ThreadFact>) -> AtEnd {
    let Some(fact) = fact else { return AtEnd::default() };
    let ran = cpu_time(thread, fact).map(|(from_ns, until_ns, used_ns)| {
        let length = until_ns - from_ns;
        match u128::from(used_ns) * 5 {
            fifths if fifths <= u128::from(length) => Ran::Nothing,
            fifths if fifths >= u128::from(length) * 4 => Ran::All,
            _ => Ran::Some,
        }
    });
    AtEnd { state: fact.state, ran }
}

/// The times, ns, at which /proc was read first and last, and the CPU time, ns, used in between.
fn cpu_time(thread: &ThreadTracker, fact: &ThreadFact) -> Option<(u64, u64, u64)> {
    let (from_ns, before) = thread.cpu_time?;
    let used = fact.cpu_time_ns?.checked_sub(before)?;
    (fact.seen_ns > from_ns).then_some((from_ns, fact.seen_ns, used))
}

/// A thread whose CPU time differs too much between /proc and events: its name, ns by /proc, ns by events.
fn disagreement(
    thread: &ThreadTracker,
    fact: Option<&ThreadFact>,
    end_ns: u64,
) -> Option<(String, u64, u64)> {
    let (from_ns, until_ns, used) = cpu_time(thread, fact?)?;
    let (ran, unknown) = ran_between(&thread.out, thread.out.end.0, from_ns, until_ns);
    let slack = (until_ns - from_ns) / 100 * CPU_TIME_TOLERANCE_PERCENT + CPU_TIME_TOLERANCE_NS;
    let not_seen = unknown.saturating_add(until_ns.saturating_sub(end_ns));
    let too_much = ran > used.saturating_add(slack);
    let too_little = ran.saturating_add(not_seen).saturating_add(slack) < used;
    (too_much || too_little).then(|| (format!("{}/{}", thread.out.comm, thread.out.tid), used, ran))
}

/// Functions that lost their probes. `asked`: those that lost them on request; otherwise those that lost them because
/// of their cost.
fn probes_removed(recording: &Recording, asked: bool) -> Vec<FunctionId> {
    let mut probes_removed: Vec<FunctionId> = recording
        .notes
        .iter()
        .flat_map(|note| match &note.kind {
            NoteKind::ProbesOff { functions, rates } if rates.is_empty() == asked => functions.as_slice(),
            _ => &[],
        })
        .copied()
        .collect();
    probes_removed.sort_unstable();
    probes_removed.dedup();
    probes_removed
}

/// Functions that had probes for only a part of the time.
fn partly_probed(recording: &Recording) -> Vec<FunctionId> {
    let changed = recording.notes.iter().flat_map(|note| match &note.kind {
        NoteKind::ProbesOff { functions, .. } | NoteKind::ProbesOn { functions, .. } => functions.as_slice(),
        _ => &[],
    });
    let mut changed: Vec<FunctionId> = changed.copied().collect();
    changed.sort_unstable();
    changed.dedup();
    changed
}

fn findings(
    timeline: &Timeline,
    recording: &Recording,
    disagreements: &[(String, u64, u64)],
    joined_gaps: u64,
    joined: Option<Joined>,
) -> Vec<Finding> {
    let counts = &timeline.counts;
    let mut findings = Vec::new();
    let end = recording.facts.end.as_ref();
    let loss = end.map(|end| end.loss).unwrap_or_default();
    let mut say = |is: bool, finding: Finding| findings.extend(is.then_some(finding));
    let any = |count: u64| count > 0;
    say(any(counts.lost), Finding::Loss { records: counts.lost });
    let GapLengths { full, late, libc_late, paused } = gap_lengths(timeline, recording);
    say(any(full), Finding::Gap { missing_ns: full, joined: joined_gaps });
    say(any(late), Finding::ProbesLate { missing_ns: late });
    let recorded_ns = timeline.end.0.saturating_sub(timeline.start.0);
    say(any(libc_late), Finding::LocksLate { missing_ns: libc_late, recorded_ns });
    say(any(paused), Finding::LocksPaused { missing_ns: paused, recorded_ns });
    let processes = unprobed(recording);
    say(any(processes), Finding::NotProbed { processes });
    let wakings = packets_not_followed(&recording.notes);
    say(any(wakings), Finding::PacketsNotFollowed { wakings });
    let clock_error_ns = timeline.hosts.iter().map(|host| host.clock_error_ns).max().unwrap_or(0);
    let (hosts, messages) = (timeline.hosts.len() as u64, timeline.messages.len() as u64);
    say(any(hosts), Finding::Hosts { hosts, messages, clock_error_ns });
    let stopped_ns = stopped_ns(timeline);
    say(any(stopped_ns), Finding::Stopped { stopped_ns });
    let unknown_ns = contradicted_ns(timeline);
    let unseen_switches = loss.unseen_switches.saturating_sub(counts.inferred);
    let places = counts.contradictions;
    say(any(places), Finding::Contradiction { places, unseen_switches, unknown_ns, recorded_ns });
    say(any(counts.inferred), Finding::Inferred { switches: counts.inferred });
    say(any(timeline.lock_holes), Finding::LocksLost { places: timeline.lock_holes });
    let mut lossy: Vec<SyncFamily> = timeline.lossy.iter().map(|&(_, family)| family).collect();
    lossy.sort_unstable();
    lossy.dedup();
    let families: Vec<String> = lossy.into_iter().map(|family| family.name().to_owned()).collect();
    say(!families.is_empty(), Finding::OperationsLost { families });
    let (left_out, counted, forbidden) =
        (loss.operations_left_out, loss.operations_counted, loss.operations_forbidden);
    say(any(left_out), Finding::OperationsLeftOut { operations: left_out });
    say(any(counted), Finding::OperationsCounted { operations: counted });
    say(any(forbidden), Finding::OperationsForbidden { operations: forbidden });
    if let Some(Joined { acquisitions, pairs }) = joined {
        say(true, Finding::OperationsJoined { acquisitions, pairs });
    }
    super::unprobed_locks::findings(timeline, &recording.notes).for_each(|finding| say(true, finding));
    say(any(counts.stray_exits), Finding::StrayExit { exits: counts.stray_exits });
    say(any(counts.unfollowed), Finding::Children { processes: counts.unfollowed });
    let left_out = end.map(|end| end.left_out).unwrap_or_default();
    say(!left_out.is_nothing(), Finding::FileFull { left_out });
    let worst = disagreements.iter().max_by_key(|(_, proc_ns, ran_ns)| proc_ns.abs_diff(*ran_ns));
    if let Some((thread, proc_ns, ran_ns)) = worst {
        let (threads, thread) = (disagreements.len() as u64, thread.clone());
        say(true, Finding::CpuTime { threads, thread, events_ns: *ran_ns, proc_ns: *proc_ns });
    }
    findings
}

/// Summed lengths of gaps, nanoseconds.
#[derive(Default)]
struct GapLengths {
    /// Gaps with lost records.
    full: u64,
    /// Time without function probes.
    late: u64,
    /// Time without probes on a C library.
    libc_late: u64,
    /// Pauses of recording from inside.
    paused: u64,
}

/// Sums the gaps' lengths; a process that never got probes misses none after its end.
fn gap_lengths(timeline: &Timeline, recording: &Recording) -> GapLengths {
    let end_ns = timeline.end.0;
    let mut lived_until: FxHashMap<u32, u64> = FxHashMap::default();
    for thread in &timeline.threads {
        let end = lived_until.entry(thread.pid).or_insert(0);
        *end = thread.end.0.max(*end);
    }
    let mut lengths = GapLengths::default();
    for note in &recording.notes {
        if let NoteKind::Gap { pid, until_ns, reason, .. } = note.kind {
            let from_ns = note.time_ns.max(recording.facts.start_ns);
            let length = until_ns.min(end_ns).saturating_sub(from_ns);
            let until_ns = if pid == 0 { end_ns } else { lived_until.get(&pid).copied().unwrap_or(0) };
            let lived = length.min(until_ns.saturating_sub(from_ns));
            match reason {
                GapReason::RingFull => lengths.full = lengths.full.saturating_add(length),
                GapReason::ProbesNotYetAttached => lengths.late = lengths.late.saturating_add(lived),
                GapReason::LibcNotYetProbed => lengths.libc_late = lengths.libc_late.saturating_add(lived),
                // The threads' states are complete; the loss counters count the operations.
                GapReason::OperationsLost | GapReason::OperationsOff { .. } => {}
                GapReason::OperationsPaused => lengths.paused = lengths.paused.saturating_add(length),
                // The gap lasts until the process ends, which may be long before the recording ends.
                GapReason::NotProbed => {}
                GapReason::PacketsNotFollowed => {}
            }
        }
    }
    lengths
}

/// Number of wake-ups that may come from packets which the program sent itself.
fn packets_not_followed(notes: &[Note]) -> u64 {
    let wakings = notes.iter().map(|note| match note.kind {
        NoteKind::Gap { lost, reason: GapReason::PacketsNotFollowed, .. } => lost,
        _ => 0,
    });
    wakings.fold(0, u64::saturating_add)
}

/// Number of processes without function probes.
fn unprobed(recording: &Recording) -> u64 {
    let mut pids: Vec<u32> = recording
        .notes
        .iter()
        .flat_map(|note| match &note.kind {
            NoteKind::Gap { pid, reason: GapReason::NotProbed, .. } => std::slice::from_ref(pid),
            NoteKind::EndedUnprobed { pids, .. } => pids,
            _ => &[],
        })
        .copied()
        .collect();
    pids.sort_unstable();
    pids.dedup();
    pids.len() as u64
}

/// Threads' time that contradictions leave unknown, summed, ns.
fn contradicted_ns(timeline: &Timeline) -> u64 {
    let unknown = State::Unknown(UnknownReason::Contradiction);
    let of_threads = timeline.threads.iter().map(|thread| thread.time_in(|state| state == unknown).0);
    of_threads.fold(0, u64::saturating_add)
}

/// Time for which threads were stopped, summed, ns.
fn stopped_ns(timeline: &Timeline) -> u64 {
    let stops = timeline.threads.iter().flat_map(|thread| {
        thread.spans().filter_map(|(start, end, state)| {
            let State::Blocked(number) = state else { return None };
            let stop = thread.waits.get(number as usize)?.reason.is_stop();
            stop.then(|| end.0.saturating_sub(start.0))
        })
    });
    stops.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CPU time that the program uses between its last reading and its end must not count as other programs' time.
    #[test]
    fn cpu_time_of_the_program_before_its_end_is_not_other_programs_cost() {
        let cost = Overhead { wall_ns: 9, target_ns: 200, others_ns: 700, ..Overhead::default() };
        let of = |running_ns| over(cost, 0, 1_000, running_ns).others_ns;
        assert_eq!((of(150), of(200), of(800), of(2_000)), (700, 700, 100, 0));
        assert_eq!(over(cost, 100, 1_000, 0).wall_ns, 900);
    }

    /// CPU time that the program uses between its last reading and its end counts as the program's, because events show
    /// it.
    #[test]
    fn cpu_time_of_the_program_in_events_before_its_end_is_its_own() {
        let cost = Overhead { wall_ns: 9, target_ns: 200, event_ns: 30, ..Overhead::default() };
        assert_eq!(
            [150, 210, 800].map(|running_ns| over(cost, 0, 1_000, running_ns).target_ns),
            [200, 200, 770]
        );
    }
}
