//! What timelines show of a recording at a level of detail. With a quantum of 0 that is everything. Otherwise items shorter
//! than the quantum are joined with their neighbours ([`summed`]), which keeps the sums of each thread and state. Short calls
//! and arrows are omitted, and counted.

use crate::level_of_detail::{Item, Room, summed};
use crate::palette::Palette;
use engine::time::{Ticks, Timestamp};
use engine::view::{Measured, PathView, StretchKind, ThreadActivity, ThreadFacts};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Number of items that are too short for the level of detail and are in no sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    pub calls: u64,
    pub wake_ups: u64,
    pub path_stretches: u64,
}

/// A slice of a thread's states on the screen.
#[derive(Clone, Copy, Debug)]
pub struct ShownState {
    /// Its beginning, nanoseconds.
    pub from: u64,
    /// Its length, nanoseconds.
    pub ns: u64,
    pub doing: ThreadActivity,
    /// Number of states that the slice joins; 0 for a single state.
    pub joined: u32,
    /// The wake-up that ended the state before, if that was a wait.
    pub woken_by: Option<u32>,
}

/// A thread's states without a hole between them; short ones are joined.
pub fn states(
    measured: &Measured<'_>,
    thread: &ThreadFacts<'_>,
    quantum: u64,
    mut take: impl FnMut(&ShownState) -> io::Result<()>,
) -> io::Result<()> {
    let mut woken_by = None;
    if quantum == 0 {
        return measured.states(thread).try_for_each(|state| {
            let (from, ns, by) = (state.start.0, state.end.0 - state.start.0, woken_by.take());
            if let ThreadActivity::Blocked { wakeup, .. } = state.doing {
                woken_by = wakeup;
            }
            take(&ShownState { from, ns, doing: state.doing, joined: 0, woken_by: by })
        });
    }
    let mut kinds = Palette::default();
    let mut items = Vec::new();
    items.extend(measured.states(thread).map(|state| {
        let (kind, wakeup) = match state.doing {
            ThreadActivity::Blocked { wait, wakeup } => {
                (ThreadActivity::Blocked { wait, wakeup: None }, wakeup)
            }
            doing => (doing, None),
        };
        let (ns, more) = (state.end.0 - state.start.0, wakeup.map_or(0, |wakeup| wakeup.saturating_add(1)));
        Item { code: kinds.number(kind), ns, more }
    }));
    let (mut from, mut result) = (thread.start.0, Ok(()));
    summed(items.into_iter(), quantum, |item, joined| {
        let Some(doing) = kinds.get(item.code).filter(|_| result.is_ok()) else { return };
        let mut doing = *doing;
        let ended_by = item.more.checked_sub(1);
        if let ThreadActivity::Blocked { wakeup, .. } = &mut doing {
            *wakeup = ended_by;
        }
        let woken_by = std::mem::replace(&mut woken_by, ended_by);
        result = take(&ShownState { from, ns: item.ns, doing, joined, woken_by });
        from = from.saturating_add(item.ns);
    });
    result
}

/// Which wake-ups end a state that is shown: only these have arrows.
#[derive(Debug, Default)]
pub struct Arrows {
    /// Empty if all wake-ups have one.
    shown: Vec<bool>,
}

impl Arrows {
    pub fn new(measured: &Measured<'_>, quantum: u64) -> Arrows {
        Arrows { shown: if quantum > 0 { vec![false; measured.wakes().count()] } else { Vec::new() } }
    }

    /// The arrow of this wake-up ends on the screen.
    pub fn mark(&mut self, wakeup: u32) {
        if let Some(shown) = self.shown.get_mut(wakeup as usize) {
            *shown = true;
        }
    }

    /// Whether a wake-up that ended a wait has an arrow.
    pub fn has(&self, wakeup: u32) -> bool {
        self.shown.is_empty() || self.shown.get(wakeup as usize).is_some_and(|shown| *shown)
    }
}

/// The beginning or the end of a call.
#[derive(Clone, Copy, Debug)]
pub enum ShownCall<'a> {
    Begin {
        time: u64,
        name: &'a str,
    },
    End {
        time: u64,
        /// Number of shorter calls inside this one that are omitted.
        left_out: u64,
    },
}

/// A thread's calls that are long enough: calls inside a short one are even shorter. Returns how many are omitted.
pub fn calls<'m>(
    measured: &'m Measured<'_>,
    thread: &ThreadFacts<'_>,
    quantum: u64,
    mut take: impl FnMut(ShownCall<'m>) -> io::Result<()>,
) -> io::Result<u64> {
    let is_long = long_calls(measured, thread, quantum);
    let (mut entered, mut all_left_out) = (0, 0);
    // For each open call: whether it is shown, and how many calls inside it are not.
    let mut open: Vec<(bool, u64)> = Vec::new();
    for call in measured.calls(thread) {
        let time = call.time.0;
        if let Some(name) = call.enters {
            let shown = is_long.get(entered).copied().unwrap_or(true);
            entered += 1;
            open.push((shown, 0));
            if shown {
                take(ShownCall::Begin { time, name })?;
            }
            continue;
        }
        let Some((shown, left_out)) = open.pop() else { continue };
        if shown {
            take(ShownCall::End { time, left_out })?;
        } else {
            all_left_out += 1;
            if let Some((_, above)) = open.last_mut() {
                *above += left_out + 1;
            }
        }
    }
    Ok(all_left_out)
}

/// Whether each call is long enough, in the order of entries; empty if all are shown.
fn long_calls(measured: &Measured<'_>, thread: &ThreadFacts<'_>, quantum: u64) -> Vec<bool> {
    let mut is_long = Vec::new();
    if quantum == 0 {
        return is_long;
    }
    let mut open: Vec<(usize, Timestamp)> = Vec::new();
    for call in measured.calls(thread) {
        if call.enters.is_some() {
            open.push((is_long.len(), call.time));
            is_long.push(false);
        } else if let Some((place, entered)) = open.pop()
            && let Some(is_long) = is_long.get_mut(place)
        {
            *is_long = call.time.0.saturating_sub(entered.0) >= quantum;
        }
    }
    is_long
}

/// What a thread does with a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    Waits,
    Has,
    Reads,
    /// Its release is not known: `to` is `from`.
    Takes,
}

/// A slice of a thread's use of a lock.
#[derive(Clone, Copy, Debug)]
pub struct ShownUse {
    pub object: u32,
    pub thread: u32,
    pub does: Does,
    pub from: u64,
    pub to: u64,
    /// Number of slices that this one joins; 0 for a single one.
    pub joined: u32,
}

/// The use of locks. With short slices joined, those of one thread and lock never overlap.
pub fn uses(
    measured: &Measured<'_>,
    quantum: u64,
    mut take: impl FnMut(ShownUse) -> io::Result<()>,
) -> io::Result<()> {
    if quantum > 0 {
        return joined_uses(measured, quantum, take);
    }
    for section in measured.lock_sections() {
        let (object, thread, from) = (section.object, section.thread, section.from.0);
        if section.waited_ns > 0 {
            let began = from.saturating_sub(section.waited_ns);
            take(ShownUse { object, thread, does: Does::Waits, from: began, to: from, joined: 0 })?;
        }
        let does = match (section.given_back, section.reads) {
            (false, _) => Does::Takes,
            (true, true) => Does::Reads,
            (true, false) => Does::Has,
        };
        take(ShownUse { object, thread, does, from, to: section.to.0, joined: 0 })?;
    }
    Ok(())
}

fn joined_uses(
    measured: &Measured<'_>,
    quantum: u64,
    mut take: impl FnMut(ShownUse) -> io::Result<()>,
) -> io::Result<()> {
    const DOES: [Option<Does>; 4] = [None, Some(Does::Waits), Some(Does::Has), Some(Does::Reads)];
    let mut rows: BTreeMap<(u32, u32), (u64, Vec<Item>)> = BTreeMap::new();
    for section in measured.lock_sections() {
        let (at, items) = rows.entry((section.object, section.thread)).or_default();
        let from = section.from.0.max(*at);
        let began = section.from.0.saturating_sub(section.waited_ns).clamp(*at, from);
        let to = section.to.0.max(from);
        let has = if section.reads { 3 } else { 2 };
        for (code, ns) in [(0, began - *at), (1, from - began), (has, to - from)] {
            items.push(Item { code, ns, more: 0 });
        }
        *at = to;
    }
    for ((object, thread), (_, items)) in rows {
        let (mut from, mut result) = (0, Ok(()));
        summed(items.into_iter(), quantum, |item, joined| {
            let to = item.ns.saturating_add(from);
            let does = DOES.get(item.code as usize).copied().flatten();
            if let Some(does) = does.filter(|_| result.is_ok()) {
                result = take(ShownUse { object, thread, does, from, to, joined });
            }
            from = to;
        });
        result?;
    }
    Ok(())
}

/// A slice of a critical path, in the time of the predicted run.
#[derive(Clone, Copy, Debug)]
pub struct ShownStretch<'p> {
    pub kind: &'p StretchKind,
    pub start: Ticks,
    pub end: Ticks,
    pub weight: f64,
    /// Number of stretches that this one joins; 0 for a single one.
    pub joined: u32,
}

/// The stretches of a path. Short ones are joined on a single path, else omitted. Returns how many are omitted.
pub fn path(
    path: &PathView,
    quantum: u64,
    mut take: impl FnMut(&ShownStretch<'_>) -> io::Result<()>,
) -> io::Result<u64> {
    let mut left_out = 0;
    if quantum == 0 || !path.is_one_path {
        for stretch in &path.stretches {
            let (start, end) = (stretch.start, stretch.end);
            if Ticks(end.0 - start.0).as_ns_f64() < quantum as f64 {
                left_out += 1;
                continue;
            }
            take(&ShownStretch { kind: &stretch.kind, start, end, weight: stretch.weight, joined: 0 })?;
        }
        return Ok(left_out);
    }
    let mut kinds = Palette::default();
    let mut items = Vec::with_capacity(path.stretches.len());
    items.extend(path.stretches.iter().map(|stretch| Item {
        code: kinds.number(stretch.kind.clone()),
        ns: stretch.end.nearest_ns().saturating_sub(stretch.start.nearest_ns()),
        more: 0,
    }));
    let (mut at, mut result) = (0u64, Ok(()));
    summed(items.into_iter(), quantum, |item, joined| {
        let Some(kind) = kinds.get(item.code).filter(|_| result.is_ok()) else { return };
        let start = Ticks::from_ns(at);
        at = at.saturating_add(item.ns);
        result = take(&ShownStretch { kind, start, end: Ticks::from_ns(at), weight: 1.0, joined });
    });
    result.map(|()| left_out)
}

/// The mean number of threads on CPUs: one value for each quantum with changes, and one for each stretch without. The quantum
/// is not 0.
pub fn mean_running(
    measured: &Measured<'_>,
    quantum: u64,
    mut take: impl FnMut(u64, f64) -> io::Result<()>,
) -> io::Result<()> {
    let mut result = Ok(());
    means(measured.running(), measured.window().1, quantum, |time, mean| {
        if result.is_ok() {
            result = take(time, mean);
        }
    });
    result
}

fn means(
    changes: impl Iterator<Item = (Timestamp, u32)>,
    end: Timestamp,
    quantum: u64,
    mut take: impl FnMut(u64, f64),
) {
    let (mut begin, mut at, mut count, mut area) = (None, 0, 0, 0.0);
    for (Timestamp(time), next) in changes.chain([(end, 0)]) {
        let begin = begin.get_or_insert(time);
        at = time.min(at.max(*begin));
        let whole = time.saturating_sub(*begin) / quantum * quantum;
        if whole > 0 {
            let first = begin.saturating_add(quantum);
            take(*begin, (area + (first - at) as f64 * f64::from(count)) / quantum as f64);
            if whole > quantum {
                take(first, f64::from(count));
            }
            *begin = begin.saturating_add(whole);
            (at, area) = (*begin, 0.0);
        }
        area += time.saturating_sub(at) as f64 * f64::from(count);
        (at, count) = (time, next);
    }
    if let Some(begin) = begin.filter(|begin| at > *begin) {
        take(begin, area / (at - begin) as f64);
    }
}

/// A quantum (ns) with which `write` stays within `most` bytes: 0 if all fits, else a microsecond doubled as often as needed.
/// If none fits: at least a day, which leaves as little as possible.
pub fn fitting(most: Option<u64>, write: impl Fn(u64, &mut dyn Write) -> io::Result<()>) -> u64 {
    const LONGEST: u64 = 86_400_000_000_000;
    let Some(most) = most else { return 0 };
    let fits = |quantum| write(quantum, &mut Room { left: most, out: io::sink() }).is_ok();
    if fits(0) {
        return 0;
    }
    // Each try takes time, so the quantum grows by factors of four first.
    let mut quantum = 1_000;
    while quantum < LONGEST && !fits(quantum) {
        quantum *= 4;
    }
    if quantum > 1_000 && fits(quantum / 2) { quantum / 2 } else { quantum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_over_a_quantum_keep_the_sum_of_the_counts() {
        let changes = [(100, 1), (103, 2), (104, 0), (135, 3), (136, 1)];
        let mut told = Vec::new();
        let times = changes.map(|(time, count)| (Timestamp(time), count));
        means(times.into_iter(), Timestamp(145), 10, |time, mean| told.push((time, mean)));
        assert_eq!(told, [(100, 0.5), (110, 0.0), (130, 0.7), (140, 1.0)]);
    }
}
