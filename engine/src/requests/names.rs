//! Names of causes in rows.

use super::cause::{Cause, LockRef, Outside, Source};
use super::groups::GROUPS;
use super::meanwhile::Asleep;
use super::model::{CauseKind, CauseRow};
use super::sampled::{Work, runtimes, users_function};
use super::shares::Shares;
use super::sums::{Key, Sums};
use crate::event::SupportSubject;
use crate::program::naming::awaited_names::{awaited_name, wait_of};
use crate::program::{FunctionRef, Program, Share};
use crate::timeline::Timeline;
use rustc_hash::FxHashMap;

/// The name of [`CauseKind::NoCpuOthers`] in a program with a quota of CPU time.
const QUOTA: &str = "quota";

/// Names functions, threads, locks and waits.
pub(super) struct Namer<'a> {
    timeline: &'a Timeline,
    pub(super) program: &'a Program,
    /// For each kind of wait: the only function in which such waits happened, if it is known; `None`: there are several
    /// functions.
    only: FxHashMap<(Source, &'static str), Option<FunctionRef>>,
    /// For each function: the work of a runtime that it does.
    runtimes: Vec<Option<SupportSubject>>,
    /// Names of files and other ends of sockets by number.
    awaited: FxHashMap<u32, String>,
}

impl<'a> Namer<'a> {
    /// Prepares names for the causes in these sums.
    pub(super) fn of(timeline: &'a Timeline, program: &'a Program, sums: &Sums) -> Namer<'a> {
        let mut only: FxHashMap<(Source, &'static str), Option<FunctionRef>> = FxHashMap::default();
        for key in &sums.keys {
            let Cause::Waiting(outside) = key.cause else { continue };
            let Some(function) = outside.function else { continue };
            let known = only.entry((outside.source, outside.name)).or_insert(Some(function));
            if *known != Some(function) {
                *known = None;
            }
        }
        let awaited = timeline.awaited.iter().map(|fact| (fact.number, awaited_name(fact))).collect();
        Namer { timeline, program, only, runtimes: runtimes(program), awaited }
    }

    /// What a thread computes with this stack; `top`: its innermost function with probes.
    pub(super) fn work_of(&self, stack: u32, top: Option<FunctionRef>) -> Work {
        let mut places = self.program.samples.stack(stack);
        let runtime = places.find_map(|(_, place)| *self.runtimes.get(place.function.0 as usize)?);
        let function = || users_function(self.program, stack).or(top);
        runtime.map_or_else(|| Work::Function(function()), Work::Runtime)
    }

    pub(super) fn work(&self, work: Work) -> String {
        match work {
            Work::Function(function) => self.function(function),
            Work::Runtime(subject) => subject.name().to_owned(),
        }
    }

    pub(super) fn function(&self, function: Option<FunctionRef>) -> String {
        let function = function.and_then(|function| self.program.functions.get(function.0 as usize));
        function.map(|function| function.name.clone()).unwrap_or_default()
    }

    pub(super) fn thread(&self, thread: Option<u32>) -> String {
        let thread = thread.and_then(|thread| self.timeline.threads.get(thread as usize));
        thread.map(|thread| thread.comm.clone()).unwrap_or_default()
    }

    /// The lock's name; all locks that were first used on one line have one name. Of waits for other requests it is the
    /// functions in which most of them began and ended.
    pub(super) fn lock(&self, lock: LockRef) -> String {
        let number = match lock {
            LockRef::Object(number) | LockRef::Word(number) => number,
            LockRef::OtherRequest(name) => return self.other_request(name),
        };
        let object = self.program.recorded.objects.get(number as usize);
        let group = object.and_then(|object| Some(format!("{} {}", object.kind, object.group.as_ref()?)));
        let name = || match lock {
            LockRef::Object(number) => self.program.objects.get(number as usize).cloned(),
            LockRef::Word(_) | LockRef::OtherRequest(_) => object.map(|object| object.name.clone()),
        };
        group.or_else(name).unwrap_or_default()
    }

    fn other_request(&self, name: &str) -> String {
        let waits = &self.program.recorded.waits;
        let wait = waits.iter().find(|wait| !wait.idle && wait.name.as_str() == name);
        let most = |shares: &[Share]| shares.first().map(|share| share.name.clone());
        let asleep = wait.and_then(|wait| most(&wait.sleepers)).map(|function| format!(" in {function}"));
        let of = wait.and_then(|wait| wait.mostly_of()).map(|of| wait_of(name, of));
        let name = of.as_deref().unwrap_or(name);
        let woken = wait.and_then(|wait| most(&wait.wakers)).map(|function| format!(", ended by {function}"));
        format!("{name}{}{}", asleep.unwrap_or_default(), woken.unwrap_or_default())
    }

    /// Kind and name of a cause, without regard to a lock around it. Computing is named by its innermost function with
    /// probes.
    pub(super) fn cause(&self, key: &Key) -> (CauseKind, String) {
        match key.cause {
            Cause::Computing(top) => (CauseKind::Computing, self.function(top)),
            Cause::Woken => (CauseKind::Woken, String::new()),
            Cause::NoCpu => (CauseKind::NoCpu, String::new()),
            Cause::NoCpuOthers => (CauseKind::NoCpuOthers, self.others()),
            Cause::Queued => (CauseKind::Queue, self.thread(key.thread)),
            Cause::Unknown => (CauseKind::Unknown, String::new()),
            Cause::NotFollowed => (CauseKind::NotFollowed, String::new()),
            Cause::Waiting(outside) => self.outside(&outside),
        }
    }

    /// Kind and name of what a thread slept for.
    pub(super) fn asleep(&self, asleep: &Asleep) -> (CauseKind, String) {
        match asleep {
            Asleep::Lock(lock) => (lock.kind(), self.lock(*lock)),
            Asleep::Thread(thread) => (CauseKind::Queue, self.thread(Some(*thread))),
            Asleep::Outside(outside) => self.outside(outside),
        }
    }

    /// A name for other programs that have the CPUs. While a quota is used up, no program need have them.
    fn others(&self) -> String {
        if self.timeline.cpu_quota.is_some() { QUOTA.to_owned() } else { String::new() }
    }

    fn outside(&self, outside: &Outside) -> (CauseKind, String) {
        let kind = match outside.source {
            Source::Disk => CauseKind::Disk,
            Source::Peer => CauseKind::Peer,
            Source::Timer => CauseKind::Timer,
            Source::Process => CauseKind::Process,
            Source::Other => CauseKind::Other,
        };
        // A sleep may have no sampled stack; its function is then taken from other sleeps of the same kind.
        let only = || self.only.get(&(outside.source, outside.name)).copied().flatten();
        let function = self.function(outside.function.or_else(only));
        let place = if function.is_empty() { function } else { format!(" in {function}") };
        let of = outside.of.and_then(|of| self.awaited.get(&of));
        let name = of.map_or_else(|| outside.name.to_owned(), |of| wait_of(outside.name, of));
        (kind, format!("{name}{place}"))
    }
}

impl Namer<'_> {
    /// The part of a key's time that belongs to a row, by group, from 0 to 1.
    pub(super) fn belongs(&self, number: u32, key: &Key, row: &CauseRow, shares: &Shares) -> [f64; GROUPS] {
        let whole = |belongs: bool| [if belongs { 1.0 } else { 0.0 }; GROUPS];
        match (key.lock, key.cause) {
            (Some(lock), _) => whole(row.kind == lock.kind() && self.lock(lock) == row.name),
            (None, Cause::Computing(_)) if row.kind == CauseKind::Computing => {
                std::array::from_fn(|group| shares.part(self, group, number, &row.name))
            }
            (None, Cause::Computing(_)) => whole(false),
            (None, _) => {
                let (kind, name) = self.cause(key);
                whole(kind == row.kind && name == row.name)
            }
        }
    }
}
