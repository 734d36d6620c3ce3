//! The measured run: threads, their states and calls, wake-ups, locks, and how many threads are on CPUs.

use super::trace::{Arguments, Event, Trace, joined, us};
use crate::export::detail::{self, Arrows, Does, ShownCall, ShownState, ShownUse, fitting};
use crate::export::words;
use engine::view::{Measured, ThreadActivity, ThreadFacts};
use std::borrow::Cow;
use std::io;

/// Tracks of states have numbers from here on: no thread has such an id.
const STATES: u64 = 1 << 32;

/// Writes the measured run in at most `most` bytes. Returns the quantum, nanoseconds: shorter items are joined or
/// omitted.
pub fn write(measured: &Measured<'_>, most: Option<u64>, trace: &mut Trace<'_>) -> io::Result<u64> {
    let write = |quantum, trace: &mut Trace<'_>| {
        Writer { measured, quantum, arrows: Arrows::new(measured, quantum), trace }.all()
    };
    let quantum = fitting(most, |quantum, out| write(quantum, &mut Trace::new(out)));
    write(quantum, trace).map(|()| quantum)
}

struct Writer<'m, 'a, 't, 'w> {
    measured: &'m Measured<'a>,
    quantum: u64,
    arrows: Arrows,
    trace: &'t mut Trace<'w>,
}

impl Writer<'_, '_, '_, '_> {
    fn all(&mut self) -> io::Result<()> {
        let measured = self.measured;
        self.running()?;
        for thread in measured.threads() {
            self.thread(thread)?;
        }
        for (number, wake) in (0u32..).zip(measured.wakes()).filter(|(_, wake)| wake.ended_wait) {
            let Some(waker) = measured.thread(wake.waker) else { continue };
            if !self.arrows.has(number) {
                self.trace.left_out.wake_ups += 1;
                continue;
            }
            let (pid, tid) = states_of(waker);
            let name = Some("wake-up".into());
            let (cat, id) = (Some("wake"), Some(u64::from(number)));
            let ts = us(wake.time.0);
            self.trace.put(&Event { ph: "s", pid, tid, ts, name, cat, id, ..Event::default() })?;
        }
        detail::uses(measured, self.quantum, |shown| self.lock(&shown))
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
        detail::mean_running(measured, quantum, |time, mean| {
            serde_json::Number::from_f64(mean).map_or(Ok(()), |mean| put(time, mean))
        })
    }

    fn thread(&mut self, thread: &ThreadFacts<'_>) -> io::Result<()> {
        let (pid, tid) = (u64::from(thread.pid), u64::from(thread.tid));
        self.trace.name("process_name", (pid, tid), thread.process)?;
        self.trace.name("thread_name", (pid, tid), thread.name)?;
        self.calls(thread)?;
        let (_, states) = states_of(thread);
        self.trace.name("thread_name", (pid, states), &format!("{} state", thread.name))?;
        detail::states(self.measured, thread, self.quantum, |shown| self.state(thread, shown))
    }

    fn state(&mut self, thread: &ThreadFacts<'_>, shown: &ShownState) -> io::Result<()> {
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
            self.arrows.mark(wakeup);
            let (name, cat, bp) = (Some("wake-up".into()), Some("wake"), Some("e"));
            let id = Some(u64::from(wakeup));
            self.trace.put(&Event { ph: "f", pid, tid, ts, name, cat, id, bp, ..Event::default() })?;
        }
        Ok(())
    }

    fn calls(&mut self, thread: &ThreadFacts<'_>) -> io::Result<()> {
        let (pid, tid) = (u64::from(thread.pid), u64::from(thread.tid));
        let trace = &mut *self.trace;
        let left_out = detail::calls(self.measured, thread, self.quantum, |call| match call {
            ShownCall::Begin { time, name } => {
                let name = Some(Cow::Borrowed(name));
                trace.put(&Event { ph: "B", pid, tid, ts: us(time), name, ..Event::default() })
            }
            ShownCall::End { time, left_out } => {
                let calls_left_out = Some(left_out).filter(|left_out| *left_out > 0);
                let args = calls_left_out.map(|_| Arguments { calls_left_out, ..Arguments::default() });
                trace.put(&Event { ph: "E", pid, tid, ts: us(time), args, ..Event::default() })
            }
        })?;
        self.trace.left_out.calls += left_out;
        Ok(())
    }

    /// Writes an asynchronous slice: a row for each lock and thread.
    fn lock(&mut self, shown: &ShownUse) -> io::Result<()> {
        let Some(thread) = self.measured.thread(shown.thread) else { return Ok(()) };
        let (pid, tid) = (u64::from(thread.pid), u64::from(thread.tid));
        let (cat, id) = (Some("lock"), Some(u64::from(shown.object) << 32 | u64::from(shown.thread)));
        let does = if shown.does == Does::Waits { "waits for" } else { "has" };
        let name = format!("{does} {}", self.measured.object(shown.object));
        let mut args =
            joined(shown.joined).map(|joined| Arguments { joined: Some(joined), ..Arguments::default() });
        for (ph, time) in [("b", shown.from), ("e", shown.to)] {
            let (name, args) = (Some(Cow::Borrowed(name.as_str())), args.take());
            self.trace.put(&Event { ph, pid, tid, ts: us(time), name, cat, id, args, ..Event::default() })?;
        }
        Ok(())
    }
}

/// Process and track of a thread's states.
fn states_of(thread: &ThreadFacts<'_>) -> (u64, u64) {
    (u64::from(thread.pid), STATES + thread.index as u64)
}
