//! A recording, seen with the names of the program made from it.

use super::calls::{Calls, Slice};
use super::running::Running;
use super::states::{States, ThreadState};
use crate::event::{FunctionId, SyncObject};
use crate::program::{LockSection, Occurrences, Program, functions_used};
use crate::time::Timestamp;
use crate::timeline::{Birth, Timeline, Wakeup};
use probe_abi::SampleReason;

/// A recording with its own times, ns (`CLOCK_MONOTONIC`).
#[derive(Debug)]
pub struct Measured<'a> {
    pub(super) timeline: &'a Timeline,
    pub(super) program: &'a Program,
    pub(super) occurrences: Occurrences<'a>,
    /// Ids of the program's functions with probes, in order; the program's functions without probes come after these.
    functions: Vec<FunctionId>,
    threads: Vec<ThreadFacts<'a>>,
}

/// A thread of a recording.
#[derive(Clone, Copy, Debug)]
pub struct ThreadFacts<'a> {
    /// Index in [`Timeline::threads`].
    pub index: usize,
    /// Index in [`Program::threads`].
    pub number: u32,
    /// Unique name, as in a report.
    pub name: &'a str,
    /// Its process, as in `server/1234`.
    pub process: &'a str,
    /// Host process id.
    pub pid: u32,
    /// Host thread id.
    pub tid: u32,
    /// Birth, or the window's start.
    pub start: Timestamp,
    /// Death, or the window's end.
    pub end: Timestamp,
    /// Index in [`Timeline::threads`] of the thread that created this one, if that is known.
    pub created_by: Option<u32>,
}

/// An event in which a thread made another one runnable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakeUp {
    /// Time of the wake-up.
    pub time: Timestamp,
    /// Index in [`Timeline::threads`] of the waker.
    pub waker: u32,
    /// Index in `Timeline::threads` of the wakee.
    pub wakee: u32,
    /// Whether the wake-up ended a wait of the wakee.
    pub ended_wait: bool,
}

impl<'a> Measured<'a> {
    /// Combines a timeline with the program that [`crate::translation::from_timeline`] has made from it.
    pub fn of(timeline: &'a Timeline, program: &'a Program) -> Measured<'a> {
        let lived = (0..).zip(&timeline.threads).filter(|(_, thread)| thread.has_lived());
        let threads = lived.zip(0u32..).zip(&program.threads).map(|(((index, thread), number), named)| {
            let created_by = match thread.birth {
                Birth::By(creator) => Some(creator),
                Birth::BeforeWindow | Birth::Unknown => None,
            };
            ThreadFacts {
                index,
                number,
                name: &named.name,
                process: named.process.as_deref().unwrap_or("?"),
                pid: thread.pid,
                tid: thread.tid,
                start: thread.start,
                end: thread.end,
                created_by,
            }
        });
        Measured {
            timeline,
            program,
            occurrences: Occurrences::of(timeline, program),
            functions: functions_used(timeline),
            threads: threads.collect(),
        }
    }

    /// First and last instant of the window.
    pub fn window(&self) -> (Timestamp, Timestamp) {
        (self.timeline.start, self.timeline.end)
    }

    /// All threads with any record.
    pub fn threads(&self) -> &[ThreadFacts<'a>] {
        &self.threads
    }

    /// The thread with this index in [`Timeline::threads`].
    pub fn thread(&self, index: u32) -> Option<&ThreadFacts<'a>> {
        let place = self.threads.binary_search_by_key(&(index as usize), |thread| thread.index).ok()?;
        self.threads.get(place)
    }

    /// The thread's states, without a hole from its start to its end.
    pub fn states(&self, thread: &ThreadFacts<'_>) -> impl Iterator<Item = ThreadState> + '_ {
        States::of(self, thread.index)
    }

    /// The thread's calls of probed functions: entries and exits in order of time, properly nested; at its end all exit.
    pub fn calls(&self, thread: &ThreadFacts<'_>) -> impl Iterator<Item = Slice<'_>> + '_ {
        Calls::of(self, thread.index)
    }

    /// Ticks of the sampling clock that found the thread running, each with the number of the thread's stack in
    /// [`crate::program::Samples::stack`].
    pub fn samples(&self, thread: &ThreadFacts<'_>) -> impl Iterator<Item = (Timestamp, u32)> + '_ {
        let samples =
            self.timeline.threads.get(thread.index).map_or(&[][..], |thread| thread.samples.as_slice());
        let ticks = samples.iter().filter(|seen| seen.reason == SampleReason::Tick);
        ticks.map(|seen| (seen.time, seen.stack))
    }

    /// All wake-ups by threads of the recording, in order of time.
    pub fn wakes(&self) -> impl Iterator<Item = WakeUp> + '_ {
        self.timeline.wakeups.iter().map(wake_up)
    }

    /// The wake-up at this index.
    pub fn wake(&self, place: u32) -> Option<WakeUp> {
        self.timeline.wakeups.get(place as usize).map(wake_up)
    }

    /// All lock sections that a report's lock rows sum up, each thread's in the order of acquisition.
    pub fn lock_sections(&self) -> impl Iterator<Item = LockSection> + '_ {
        self.occurrences.lock_sections()
    }

    /// The number of threads on CPUs over time.
    pub fn running(&self) -> Running<'_> {
        Running::of(self.timeline)
    }

    /// The name of an object, by the object's index in [`Timeline::locks`].
    pub fn object(&self, object: u32) -> &'a str {
        self.program.objects.get(object as usize).map_or("?", String::as_str)
    }

    /// Whether an object is a lock, or a condition variable that the program uses as one.
    pub fn is_lock(&self, object: u32) -> bool {
        let kind = self.timeline.locks.get(object as usize).map(|lock| lock.kind);
        matches!(kind, Some(SyncObject::Mutex | SyncObject::RwLock | SyncObject::SpinLock))
            || self.program.locks.iter().any(|lock| lock.object.0 == object)
    }

    /// An object's kind, e.g. `mutex`.
    pub fn object_kind(&self, object: u32) -> &'static str {
        self.timeline.locks.get(object as usize).map_or("?", |lock| lock.kind.name())
    }

    /// Path and build-id of the binary with this file name, if a process had it mapped.
    pub fn binary(&self, name: &str) -> Option<(&'a str, Option<&'a str>)> {
        let all = self.timeline.mappings.iter();
        let mut found = all.filter(|mapping| mapping.path.rsplit('/').next() == Some(name));
        found.next().map(|mapping| (mapping.path.as_str(), mapping.build_id.as_deref()))
    }

    /// The name of a function with probes; `?` for all other functions.
    pub(super) fn function(&self, id: FunctionId) -> &'a str {
        let number = self.functions.binary_search(&id).ok();
        let function = number.and_then(|number| self.program.functions.get(number));
        function.map_or("?", |function| &function.name)
    }
}

fn wake_up(wakeup: &Wakeup) -> WakeUp {
    let Wakeup { time, waker, wakee, ended } = *wakeup;
    WakeUp { time, waker, wakee, ended_wait: ended.is_some() }
}
