//! The measured run: what threads did, their calls, samples and lock sections.

use super::colours::StateColour;
use super::columns::{Column, Columns};
use super::lanes::Lanes;
use crate::level_of_detail::{Item, quantum, summed};
use crate::palette::Palette;
use engine::program::LockSection;
use engine::time::Timestamp;
use engine::view::{Measured, ThreadActivity, ThreadFacts};
use rustc_hash::FxHashMap;
use serde::Serialize;

/// Largest number of states, samples, calls and lock sections of all threads together. A state takes some 10 bytes in
/// the file.
const STATES: usize = 1_500_000;
const SAMPLES: usize = 1_000_000;
const CALLS: usize = 400_000;
const SECTIONS: usize = 250_000;

/// The measured run, and its level of detail. Times are nanoseconds from the run's start.
#[derive(Debug, Serialize)]
pub struct MeasuredRun<'a> {
    length_ns: u64,
    /// States shorter than this are summed up; 0: none are.
    quantum_ns: u64,
    /// One sample is shown for this number of samples.
    samples_per_shown: usize,
    threads: Vec<ThreadJson<'a>>,
    functions: Vec<&'a str>,
    calls_left_out: usize,
    calls_left_out_below_ns: u64,
    sections_left_out: usize,
    sections_left_out_below_ns: u64,
}

#[derive(Debug, Serialize)]
struct ThreadJson<'a> {
    /// Index among the names of threads.
    thread: u32,
    process: &'a str,
    tid: u32,
    start_ns: u64,
    end_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_by: Option<u32>,
}

/// Adds the run's columns, with detail divided by `coarser`.
pub fn run<'a>(
    measured: &'a Measured<'a>,
    coarser: usize,
    states: &mut Palette<StateColour>,
    columns: &mut Columns,
) -> MeasuredRun<'a> {
    let (start, end) = measured.window();
    let since = |time: Timestamp| time.0.saturating_sub(start.0);
    // The level of detail depends on the number of states.
    let mut items: Vec<Item> = Vec::new();
    let mut ends: Vec<usize> = Vec::with_capacity(measured.threads().len());
    for thread in measured.threads() {
        items.extend(measured.states(thread).map(|state| Item {
            code: states.number(colour(measured, &state.doing)),
            ns: state.end.0.saturating_sub(state.start.0),
            more: waker(measured, &state.doing),
        }));
        ends.push(items.len());
    }
    let of_thread = |place: usize| {
        let first = place.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
        items.get(first..ends.get(place).copied().unwrap_or(first)).unwrap_or_default().iter().copied()
    };
    let quantum = quantum(STATES / coarser, |quantum| {
        let mut count = 0;
        (0..ends.len()).for_each(|place| summed(of_thread(place), quantum, |_, _| count += 1));
        count
    });
    let mut lanes = Lanes::default();
    for (place, thread) in measured.threads().iter().enumerate() {
        lanes.add(since(thread.start), of_thread(place), quantum);
    }
    drop(items);
    lanes.finish("measured", |code| code, columns);
    let samples_per_shown = samples(measured, start, SAMPLES / coarser, columns);
    let (calls_left_out, calls_below, functions) = calls(measured, start, CALLS / coarser, columns);
    let (sections_left_out, sections_below) = sections(measured, start, SECTIONS / coarser, columns);
    let threads = measured.threads().iter().map(|thread| ThreadJson {
        thread: thread.number,
        process: thread.process,
        tid: thread.tid,
        start_ns: since(thread.start),
        end_ns: since(thread.end),
        created_by: thread
            .created_by
            .and_then(|creator| measured.thread(creator))
            .map(|creator| creator.number),
    });
    MeasuredRun {
        length_ns: since(end),
        quantum_ns: quantum,
        samples_per_shown,
        threads: threads.collect(),
        functions,
        calls_left_out,
        calls_left_out_below_ns: calls_below,
        sections_left_out,
        sections_left_out_below_ns: sections_below,
    }
}

fn colour(measured: &Measured<'_>, doing: &ThreadActivity) -> StateColour {
    let mut colour = StateColour {
        state: doing.word(),
        cpu: doing.cpu().map(u32::from),
        reason: doing.reason(),
        ..StateColour::default()
    };
    if let ThreadActivity::Blocked { wait, .. } = doing {
        (colour.object, colour.idle, colour.ended_by) = (wait.object, wait.idle, Some(wait.ended_by));
        colour.lock = wait.object.is_some_and(|object| measured.is_lock(object));
    }
    colour
}

/// The thread that ended a wait: its number plus one, 0 for none.
fn waker(measured: &Measured<'_>, doing: &ThreadActivity) -> u32 {
    let ThreadActivity::Blocked { wakeup: Some(wakeup), .. } = doing else { return 0 };
    let waker = measured.wake(*wakeup).and_then(|wake| measured.thread(wake.waker));
    waker.map_or(0, |waker| waker.number.saturating_add(1))
}

/// Stores for each thread the number of samples, then each sample's time (after the preceding one) and stack. With more
/// than `most` samples, only every second one is shown, or every third and so on. Returns that step.
fn samples(measured: &Measured<'_>, start: Timestamp, most: usize, columns: &mut Columns) -> usize {
    let all: usize = measured.threads().iter().map(|thread| measured.samples(thread).count()).sum();
    let per_shown = all.div_ceil(most.max(1)).max(1);
    let (mut counts, mut times, mut stacks) = (Column::default(), Column::default(), Column::default());
    for thread in measured.threads() {
        let (mut count, mut before) = (0, start);
        for (time, stack) in measured.samples(thread).step_by(per_shown) {
            count += 1;
            times.push(time.0.saturating_sub(before.0));
            stacks.push(u64::from(stack));
            before = time.max(before);
        }
        counts.push(count);
    }
    for (name, column) in [("counts", &counts), ("times", &times), ("stacks", &stacks)] {
        columns.add(format!("samples.{name}"), column);
    }
    per_shown
}

/// A call of a function.
struct Call<'a> {
    from: u64,
    ns: u64,
    depth: usize,
    function: &'a str,
}

fn calls_of<'a>(measured: &'a Measured<'_>, thread: &ThreadFacts<'_>, take: &mut dyn FnMut(Call<'a>)) {
    let mut open = Vec::new();
    for slice in measured.calls(thread) {
        if let Some(function) = slice.enters {
            open.push((function, slice.time));
        } else if let Some((function, entered)) = open.pop() {
            let ns = slice.time.0.saturating_sub(entered.0);
            take(Call { from: entered.0, ns, depth: open.len(), function });
        }
    }
}

/// Stores for each thread the number of calls, then by time each call's start, length, depth and function. The shortest
/// calls are not stored. Returns how many these are, the least length stored, and the names of functions.
fn calls<'a>(
    measured: &'a Measured<'_>,
    start: Timestamp,
    most: usize,
    columns: &mut Columns,
) -> (usize, u64, Vec<&'a str>) {
    let mut all = 0;
    let least = quantum(most, |least| {
        let mut count = 0;
        for thread in measured.threads() {
            calls_of(measured, thread, &mut |call| {
                count += usize::from(call.ns >= least);
            });
        }
        count
    });
    let mut numbers: FxHashMap<&str, u64> = FxHashMap::default();
    let mut names = Vec::new();
    let mut parts: [Column; 5] = Default::default();
    let mut kept = 0;
    for thread in measured.threads() {
        let mut list = Vec::new();
        calls_of(measured, thread, &mut |call| {
            all += 1;
            if call.ns >= least {
                list.push(call);
            }
        });
        list.sort_by_key(|call| (call.from, call.depth));
        kept += list.len();
        let mut before = start.0;
        let [counts, times, lengths, depths, functions] = &mut parts;
        counts.push(list.len() as u64);
        for call in list {
            let number = *numbers.entry(call.function).or_insert_with(|| {
                names.push(call.function);
                names.len() as u64 - 1
            });
            times.push(call.from.saturating_sub(before));
            lengths.push(call.ns);
            depths.push(call.depth as u64);
            functions.push(number);
            before = before.max(call.from);
        }
    }
    let titles = ["counts", "times", "lengths", "depths", "functions"];
    for (title, column) in titles.into_iter().zip(&parts) {
        columns.add(format!("calls.{title}"), column);
    }
    (all - kept, least, names)
}

/// Stores for each thread the number of lock sections, then in order of time the start of each, its length, the wait
/// before it, and its object (doubled, plus one for reading). The shortest sections are omitted. Returns their number,
/// and the least length shown.
fn sections(measured: &Measured<'_>, start: Timestamp, most: usize, columns: &mut Columns) -> (usize, u64) {
    let length =
        |section: &LockSection| section.waited_ns.saturating_add(section.to.0.saturating_sub(section.from.0));
    let least =
        quantum(most, |least| measured.lock_sections().filter(|section| length(section) >= least).count());
    let mut by_thread: FxHashMap<u32, Vec<LockSection>> = FxHashMap::default();
    let mut left_out = 0;
    for section in measured.lock_sections() {
        match length(&section) >= least {
            true => by_thread.entry(section.thread).or_default().push(section),
            false => left_out += 1,
        }
    }
    let mut parts: [Column; 5] = Default::default();
    for thread in measured.threads() {
        let mut list =
            u32::try_from(thread.index).ok().and_then(|index| by_thread.remove(&index)).unwrap_or_default();
        list.sort_by_key(|section| section.from);
        let [counts, times, held, waited, objects] = &mut parts;
        counts.push(list.len() as u64);
        let mut before = start.0;
        for section in list {
            times.push(section.from.0.saturating_sub(before));
            held.push(section.to.0.saturating_sub(section.from.0));
            waited.push(section.waited_ns);
            objects.push(u64::from(section.object) << 1 | u64::from(section.reads));
            before = before.max(section.from.0);
        }
    }
    for (title, column) in ["counts", "times", "held", "waited", "objects"].into_iter().zip(&parts) {
        columns.add(format!("sections.{title}"), column);
    }
    (left_out, least)
}
