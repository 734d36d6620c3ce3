//! The measured run: threads, their states and calls, wake-ups, locks, and how many threads are on CPUs.

use super::trace::{Arguments, Event, Trace, fitting, joined, us};
use crate::export::words;
use crate::level_of_detail::{Item, summed};
use crate::palette::Palette;
use engine::time::Timestamp;
use engine::view::{Measured, ThreadActivity, ThreadFacts};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;

/// Tracks of states have numbers from here on: no thread has such an id.
const STATES: u64 = 1 << 32;

/// Writes the measured run in at most `most` bytes. Returns the quantum, nanoseconds: shorter items are joined or
/// omitted.
pub fn write(measured: &Measured<'_>, most: Option<u64>, trace: &mut Trace<'_>) -> io::Result<u64> {
    let write =
        |quantum, trace: &mut Trace<'_>| Writer { measured, quantum, arrows: Vec::new(), trace }.all();
    let quantum = fitting(most, write);
    write(quantum, trace).map(|()| quantum)
}

struct Writer<'m, 'a, 't, 'w> {
    measured: &'m Measured<'a>,
    quantum: u64,
    /// Whether each wake-up has an arrow; empty if all have one.
    arrows: Vec<bool>,
    trace: &'t mut Trace<'w>,
}

/// A slice of a thread's states on the screen.
struct Shown {
    from: u64,
    ns: u64,
    doing: ThreadActivity,
    /// Number of states that the slice joins; 0 for a single state.
    joined: u32,
    /// The wake-up that ended the state before, if that was a wait.
    woken_by: Option<u32>,
}

impl Writer<'_, '_, '_, '_> {
    fn all(&mut self) -> io::Result<()> {
        let measured = self.measured;
        if self.quantum > 0 {
            self.arrows = vec![false; measured.wakes().count()];
        }
        self.running()?;
        for thread in measured.threads() {
            self.thread(thread)?;
        }
        for (number, wake) in (0u64..).zip(measured.wakes()).filter(|(_, wake)| wake.ended_wait) {
            let Some(waker) = measured.thread(wake.waker) else { continue };
            if self.quantum > 0 && !self.arrows.get(number as usize).is_some_and(|has| *has) {
                self.trace.left_out.wake_ups += 1;
                continue;
            }
            let (pid, tid) = states_of(waker);
            let name = Some("wake-up".into());
            let (cat, id) = (Some("wake"), Some(number));
            let ts = us(wake.time.0);
            self.trace.put(&Event { ph: "s", pid, tid, ts, name, cat, id, ..Event::default() })?;
        }
        if self.quantum > 0 { self.joined_locks() } else { self.locks() }
    }

    /// Writes the number of threads on CPUs over time, or means of it.
    fn running(&mut self) -> io::Result<()> {
        let (measured, quantum) = (self.measured, self.quantum);
        let pid = measured.threads().first().map_or(0, |thread| u64::from(thread.pid));
        let mut put = |time: u64, threads: serde_json::Number| {
            let args = Some(Arguments { threads: Some(threads), ..Arguments::default() });
            let name = Some("threads on CPUs".into());
            self.trace.put(&Event { ph: "C", pid, ts: us(time), name, args, ..Event::default() })
        };
        if quantum == 0 {
            return measured.running().try_for_each(|(time, count)| put(time.0, count.into()));
        }
        let mut result = Ok(());
        means(measured.running(), measured.window().1, quantum, |time, mean| {
            if let (true, Some(mean)) = (result.is_ok(), serde_json::Number::from_f64(mean)) {
                result = put(time, mean);
            }
        });
        result
    }

    fn thread(&mut self, thread: &ThreadFacts<'_>) -> io::Result<()> {
        let (pid, tid) = (u64::from(thread.pid), u64::from(thread.tid));
        self.trace.name("process_name", (pid, tid), thread.process)?;
        self.trace.name("thread_name", (pid, tid), thread.name)?;
        self.calls(thread)?;
        let (_, states) = states_of(thread);
        self.trace.name("thread_name", (pid, states), &format!("{} state", thread.name))?;
        let mut woken_by = None;
        if self.quantum > 0 {
            return self.joined_states(thread);
        }
        for state in self.measured.states(thread) {
            let from = woken_by.take();
            if let ThreadActivity::Blocked { wakeup, .. } = state.doing {
                woken_by = wakeup;
            }
            let (from, ns, woken_by) = (state.start.0, state.end.0 - state.start.0, from);
            self.state(thread, &Shown { from, ns, doing: state.doing, joined: 0, woken_by })?;
        }
        Ok(())
    }

    /// Writes a thread's states without a hole between them; short ones are joined.
    fn joined_states(&mut self, thread: &ThreadFacts<'_>) -> io::Result<()> {
        let mut kinds = Palette::default();
        let mut items = Vec::new();
        items.extend(self.measured.states(thread).map(|state| {
            let (kind, wakeup) = match state.doing {
                ThreadActivity::Blocked { wait, wakeup } => {
                    (ThreadActivity::Blocked { wait, wakeup: None }, wakeup)
                }
                doing => (doing, None),
            };
            let (ns, more) =
                (state.end.0 - state.start.0, wakeup.map_or(0, |wakeup| wakeup.saturating_add(1)));
            Item { code: kinds.number(kind), ns, more }
        }));
        let (mut from, mut woken_by, mut result) = (thread.start.0, None, Ok(()));
        summed(items.into_iter(), self.quantum, |item, joined| {
            let Some(doing) = kinds.get(item.code).filter(|_| result.is_ok()) else { return };
            let mut doing = *doing;
            let ended_by = item.more.checked_sub(1);
            if let ThreadActivity::Blocked { wakeup, .. } = &mut doing {
                *wakeup = ended_by;
            }
            let woken_by = std::mem::replace(&mut woken_by, ended_by);
            result = self.state(thread, &Shown { from, ns: item.ns, doing, joined, woken_by });
            from = from.saturating_add(item.ns);
        });
        result
    }

    fn state(&mut self, thread: &ThreadFacts<'_>, shown: &Shown) -> io::Result<()> {
        let (pid, tid) = states_of(thread);
        let measured = self.measured;
        let mut args =
            joined(shown.joined).map(|joined| Arguments { joined: Some(joined), ..Arguments::default() });
        if let ThreadActivity::Blocked { wait, wakeup } = shown.doing {
            let wake = wakeup.and_then(|wakeup| measured.wake(wakeup));
            let waker = wake.and_then(|wake| measured.thread(wake.waker)).map(|waker| waker.name);
            args.get_or_insert_default().ended_by = Some(waker.unwrap_or(wait.ended_by));
        }
        let (ts, dur) = (us(shown.from), us(shown.ns));
        let name = Some(words::state(measured, &shown.doing));
        self.trace.put(&Event { ph: "X", pid, tid, ts, dur, name, args, ..Event::default() })?;
        if let Some(wakeup) = shown.woken_by {
            if let Some(has) = self.arrows.get_mut(wakeup as usize) {
                *has = true;
            }
            let (name, cat, bp) = (Some("wake-up".into()), Some("wake"), Some("e"));
            let id = Some(u64::from(wakeup));
            self.trace.put(&Event { ph: "f", pid, tid, ts, name, cat, id, bp, ..Event::default() })?;
        }
        Ok(())
    }

    /// Writes calls that are long enough: calls inside a short one are even shorter.
    fn calls(&mut self, thread: &ThreadFacts<'_>) -> io::Result<()> {
        let (pid, tid) = (u64::from(thread.pid), u64::from(thread.tid));
        let is_long = self.long_calls(thread);
        let mut entered = 0;
        // For each open call: whether it is shown, and how many calls inside it are not.
        let mut open: Vec<(bool, u64)> = Vec::new();
        for call in self.measured.calls(thread) {
            let ts = us(call.time.0);
            if let Some(name) = call.enters {
                let shown = is_long.get(entered).copied().unwrap_or(true);
                entered += 1;
                open.push((shown, 0));
                if shown {
                    let name = Some(Cow::Borrowed(name));
                    self.trace.put(&Event { ph: "B", pid, tid, ts, name, ..Event::default() })?;
                }
                continue;
            }
            let Some((shown, within)) = open.pop() else { continue };
            if shown {
                let calls_left_out = Some(within).filter(|within| *within > 0);
                let args = calls_left_out.map(|_| Arguments { calls_left_out, ..Arguments::default() });
                self.trace.put(&Event { ph: "E", pid, tid, ts, args, ..Event::default() })?;
            } else {
                self.trace.left_out.calls += 1;
                if let Some((_, above)) = open.last_mut() {
                    *above += within + 1;
                }
            }
        }
        Ok(())
    }

    /// Whether each call is long enough, in the order of entries; empty if all are shown.
    fn long_calls(&self, thread: &ThreadFacts<'_>) -> Vec<bool> {
        let mut is_long = Vec::new();
        if self.quantum == 0 {
            return is_long;
        }
        let mut open: Vec<(usize, Timestamp)> = Vec::new();
        for call in self.measured.calls(thread) {
            if call.enters.is_some() {
                open.push((is_long.len(), call.time));
                is_long.push(false);
            } else if let Some((place, entered)) = open.pop()
                && let Some(is_long) = is_long.get_mut(place)
            {
                *is_long = call.time.0.saturating_sub(entered.0) >= self.quantum;
            }
        }
        is_long
    }

    /// Writes asynchronous slices: a row for each lock and thread.
    fn locks(&mut self) -> io::Result<()> {
        for section in self.measured.lock_sections() {
            let (row, from) = ((section.object, section.thread), section.from.0);
            if section.waited_ns > 0 {
                self.lock(row, WAITS, (from.saturating_sub(section.waited_ns), from), 0)?;
            }
            self.lock(row, HAS, (from, section.to.0), 0)?;
        }
        Ok(())
    }

    /// Writes the use of locks with short slices joined. Slices of one thread and lock never overlap.
    fn joined_locks(&mut self) -> io::Result<()> {
        let mut rows: BTreeMap<(u32, u32), (u64, Vec<Item>)> = BTreeMap::new();
        for section in self.measured.lock_sections() {
            let (at, items) = rows.entry((section.object, section.thread)).or_default();
            let from = section.from.0.max(*at);
            let began = section.from.0.saturating_sub(section.waited_ns).clamp(*at, from);
            let to = section.to.0.max(from);
            for (code, ns) in [(NOTHING, began - *at), (WAITS, from - began), (HAS, to - from)] {
                items.push(Item { code, ns, more: 0 });
            }
            *at = to;
        }
        for (row, (_, items)) in rows {
            let (mut at, mut result) = (0, Ok(()));
            summed(items.into_iter(), self.quantum, |item, joined| {
                let to = item.ns.saturating_add(at);
                if result.is_ok() && item.code != NOTHING {
                    result = self.lock(row, item.code, (at, to), joined);
                }
                at = to;
            });
            result?;
        }
        Ok(())
    }

    fn lock(&mut self, row: (u32, u32), what: u32, (from, to): (u64, u64), count: u32) -> io::Result<()> {
        let (object, number) = row;
        let Some(thread) = self.measured.thread(number) else { return Ok(()) };
        let (pid, tid) = (u64::from(thread.pid), u64::from(thread.tid));
        let (cat, id) = (Some("lock"), Some(u64::from(object) << 32 | u64::from(number)));
        let does = if what == WAITS { "waits for" } else { "has" };
        let name = format!("{does} {}", self.measured.object(object));
        let mut args = joined(count).map(|joined| Arguments { joined: Some(joined), ..Arguments::default() });
        for (ph, time) in [("b", from), ("e", to)] {
            let (name, args) = (Some(Cow::Borrowed(name.as_str())), args.take());
            self.trace.put(&Event { ph, pid, tid, ts: us(time), name, cat, id, args, ..Event::default() })?;
        }
        Ok(())
    }
}

/// Codes for what a thread does with a lock.
const NOTHING: u32 = 0;
const WAITS: u32 = 1;
const HAS: u32 = 2;

/// Process and track of a thread's states.
fn states_of(thread: &ThreadFacts<'_>) -> (u64, u64) {
    (u64::from(thread.pid), STATES + thread.index as u64)
}

/// The mean of a changing number: one value for each quantum with changes, and one for each stretch without.
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
