//! The trace event format of Chrome (`chrome://tracing`, and every tool that reads its JSON): as `perfetto`, for tools that
//! do not read that.

use super::Model;
use super::weights::Weight;
use super::words;
use crate::present::delays;
use engine::time::Ticks;
use engine::view::{Doing, Measured, StretchKind, ThreadFacts};
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, Write};

/// Number of the process that stands for critical paths; no process has it.
const PATHS: u64 = 0;
/// Tracks of states have numbers from here on: no thread has them.
const STATES: u64 = 1 << 32;

/// An event, with the names that the format has for its parts.
#[derive(Debug, Default, Serialize)]
struct Event<'a> {
    ph: &'static str,
    pid: u64,
    tid: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    /// An arrow ends at the slice that it points to, not at the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    bp: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Arguments<'a>>,
}

#[derive(Debug, Default, Serialize)]
struct Arguments<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threads: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    weight: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_by: Option<&'a str>,
}

/// Microseconds, as the format wants them; exact to the nanosecond for up to some hundred days.
fn us(ns: u64) -> Option<f64> {
    Some(ns as f64 / 1_000.0)
}

/// Writes the trace.
pub fn write(model: &Model<'_>, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    let mut trace = Trace { out, begun: false };
    trace.paths(model)?;
    if let Some(measured) = &model.measured {
        trace.measured(measured)?;
    }
    writeln!(trace.out, "]}}")
}

struct Trace<'w> {
    out: &'w mut dyn Write,
    begun: bool,
}

impl Trace<'_> {
    fn put(&mut self, event: &Event<'_>) -> io::Result<()> {
        self.out.write_all(if std::mem::replace(&mut self.begun, true) { b",\n" } else { b"\n" })?;
        serde_json::to_writer(&mut *self.out, event)?;
        Ok(())
    }

    fn name(&mut self, of: &'static str, (pid, tid): (u64, u64), name: &str) -> io::Result<()> {
        let args = Some(Arguments { name: Some(name), ..Arguments::default() });
        self.put(&Event { ph: "M", pid, tid, name: Some(of.into()), args, ..Event::default() })
    }

    fn paths(&mut self, model: &Model<'_>) -> io::Result<()> {
        self.name("process_name", (PATHS, 0), "critical path, predicted")?;
        let start_ns = model.measured.as_ref().map_or(0, |measured| measured.window().0.0) as f64;
        let mut tid = 0;
        for cpus in &model.cpus {
            let path = model.path(*cpus);
            tid += 1;
            self.name("thread_name", (PATHS, tid), &Weight::on(*cpus))?;
            let first = tid;
            for stretch in &path.stretches {
                let mut args = Arguments::default();
                let mut at = first;
                let name = match &stretch.kind {
                    StretchKind::Computes { thread, function } => {
                        args.thread = Some(model.thread(*thread));
                        if !path.is_one_path {
                            // Several threads at once: each has its own track.
                            args.weight = Some(stretch.weight);
                            at = first + 1 + u64::from(*thread);
                            tid = tid.max(at);
                        }
                        Cow::Borrowed(model.function(*function))
                    }
                    StretchKind::Passes(kind) => Cow::Owned(delays::words(kind)),
                };
                let ns = |time: Ticks| start_ns + time.as_ns_f64();
                self.put(&Event {
                    ph: "X",
                    pid: PATHS,
                    tid: at,
                    ts: Some(ns(stretch.start) / 1_000.0),
                    dur: Some(Ticks(stretch.end.0 - stretch.start.0).as_ns_f64() / 1_000.0),
                    name: Some(name),
                    args: Some(args),
                    ..Event::default()
                })?;
            }
        }
        Ok(())
    }

    fn measured(&mut self, measured: &Measured<'_>) -> io::Result<()> {
        let first = measured.threads().first().map_or(0, |thread| u64::from(thread.pid));
        for (time, count) in measured.running() {
            let args = Some(Arguments { threads: Some(count), ..Arguments::default() });
            let name = Some("threads on CPUs".into());
            self.put(&Event { ph: "C", pid: first, ts: us(time.0), name, args, ..Event::default() })?;
        }
        for thread in measured.threads() {
            self.thread(measured, thread)?;
        }
        for (number, wake) in (0u64..).zip(measured.wakes()).filter(|(_, wake)| wake.ended_wait) {
            let Some(waker) = measured.thread(wake.waker) else { continue };
            let (pid, tid) = states_of(waker);
            let name = Some("wake-up".into());
            let (cat, id) = (Some("wake"), Some(number));
            self.put(&Event { ph: "s", pid, tid, ts: us(wake.time.0), name, cat, id, ..Event::default() })?;
        }
        self.locks(measured)
    }

    fn thread(&mut self, measured: &Measured<'_>, thread: &ThreadFacts<'_>) -> io::Result<()> {
        let (pid, tid) = (u64::from(thread.pid), u64::from(thread.tid));
        self.name("process_name", (pid, tid), thread.process)?;
        self.name("thread_name", (pid, tid), thread.name)?;
        for call in measured.calls(thread) {
            let ph = if call.enters.is_some() { "B" } else { "E" };
            let name = call.enters.map(Cow::Borrowed);
            self.put(&Event { ph, pid, tid, ts: us(call.time.0), name, ..Event::default() })?;
        }
        let (_, states) = states_of(thread);
        self.name("thread_name", (pid, states), &format!("{} state", thread.name))?;
        let mut woken_by = None;
        for state in measured.states(thread) {
            let mut args = None;
            let from = woken_by.take();
            if let Doing::Blocked { wait, wakeup } = state.doing {
                let wake = wakeup.and_then(|wakeup| measured.wake(wakeup));
                let waker = wake.and_then(|wake| measured.thread(wake.waker)).map(|waker| waker.name);
                args = Some(Arguments {
                    ended_by: Some(waker.unwrap_or(wait.ended_by)),
                    ..Arguments::default()
                });
                woken_by = wakeup;
            }
            let dur = us(state.end.0 - state.start.0);
            let name = Some(words::state(measured, &state.doing));
            let ts = us(state.start.0);
            self.put(&Event { ph: "X", pid, tid: states, ts, dur, name, args, ..Event::default() })?;
            if let Some(wakeup) = from {
                let (name, cat, bp) = (Some("wake-up".into()), Some("wake"), Some("e"));
                let id = Some(u64::from(wakeup));
                self.put(&Event { ph: "f", pid, tid: states, ts, name, cat, id, bp, ..Event::default() })?;
            }
        }
        Ok(())
    }

    /// Asynchronous slices, one row for each lock and thread.
    fn locks(&mut self, measured: &Measured<'_>) -> io::Result<()> {
        for section in measured.lock_sections() {
            let Some(thread) = measured.thread(section.thread) else { continue };
            let (pid, tid) = (u64::from(thread.pid), u64::from(thread.tid));
            let id = Some(u64::from(section.object) << 32 | u64::from(section.thread));
            let mut slice = |name: String, from: u64, to: u64| -> io::Result<()> {
                for (ph, time) in [("b", from), ("e", to)] {
                    let name = Some(Cow::Borrowed(name.as_str()));
                    let cat = Some("lock");
                    self.put(&Event { ph, pid, tid, ts: us(time), name, cat, id, ..Event::default() })?;
                }
                Ok(())
            };
            let lock = measured.object(section.object);
            if section.waited_ns > 0 {
                let began = section.from.0.saturating_sub(section.waited_ns);
                slice(format!("waits for {lock}"), began, section.from.0)?;
            }
            slice(format!("has {lock}"), section.from.0, section.to.0)?;
        }
        Ok(())
    }
}

/// Where the states of a thread are.
fn states_of(thread: &ThreadFacts<'_>) -> (u64, u64) {
    (u64::from(thread.pid), STATES + thread.index as u64)
}
