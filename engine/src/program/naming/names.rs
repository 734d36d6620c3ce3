//! Names of threads, functions, devices and edges of a recorded program: unique, with what is known.

use crate::event::{CallKind, FunctionFact, FunctionId, HostFact, futex_name, host_of, io_name};
use crate::program::Function;
use crate::timeline::{External, StepKind, Thread, Timeline, Wait, WaitReason, Wake};
use rustc_hash::FxHashMap;

/// Name of the global lock of a Python interpreter.
pub(crate) const GIL: &str = "lock GIL";

/// Unique thread names, `comm/tid`, with several hosts `comm@host/tid`. A second thread with the same id is `comm/tid#2`.
pub(in crate::program) fn threads<'a>(
    threads: impl Iterator<Item = &'a Thread>,
    hosts: &[HostFact],
) -> Vec<String> {
    let mut taken = FxHashMap::default();
    let names = threads.map(|thread| {
        let comm = if thread.comm.is_empty() { "?" } else { &thread.comm };
        unique(numbered(comm, thread.tid, hosts), &mut taken)
    });
    names.collect()
}

/// A name with the number of a thread or process, and its host if there are several.
fn numbered(comm: &str, id: u32, hosts: &[HostFact]) -> String {
    match host_of(hosts, id) {
        Some((host, own)) => format!("{comm}@{}/{own}", host.name),
        None => format!("{comm}/{id}"),
    }
}

/// Names of processes by id, as of threads, with the name of the process's first thread, or else of the first one known.
pub(in crate::program) fn processes(threads: &[Thread], hosts: &[HostFact]) -> FxHashMap<u32, String> {
    let mut names: FxHashMap<u32, String> = FxHashMap::default();
    for thread in threads {
        let comm = if thread.comm.is_empty() { "?" } else { &thread.comm };
        let name = numbered(comm, thread.pid, hosts);
        if thread.tid == thread.pid {
            names.insert(thread.pid, name);
        } else {
            names.entry(thread.pid).or_insert(name);
        }
    }
    names
}

/// The functions with a step or in a base stack of any thread, ascending.
pub(crate) fn functions_used(timeline: &Timeline) -> Vec<FunctionId> {
    let mut seen: rustc_hash::FxHashSet<FunctionId> = rustc_hash::FxHashSet::default();
    for thread in &timeline.threads {
        seen.extend(thread.base_stacks.iter().flat_map(|base| &base.functions));
        seen.extend(thread.steps.iter().filter_map(|step| match step.kind {
            StepKind::Enter(function) => Some(function),
            _ => None,
        }));
    }
    let mut numbers: Vec<FunctionId> = seen.into_iter().collect();
    numbers.sort_unstable();
    numbers
}

/// The functions with these ids, in that order, with unique names: plain, else with the source line, else with module and
/// offset.
///
/// Functions in `probes_removed` lost their probes; those in `partly_probed` had them for a part of the time. Both lists
/// ascend.
pub(in crate::program) fn functions(
    numbers: &[FunctionId],
    facts: &[FunctionFact],
    [probes_removed, partly_probed]: [&[FunctionId]; 2],
) -> Vec<Function> {
    let by_id: FxHashMap<FunctionId, &FunctionFact> = facts.iter().map(|fact| (fact.id, fact)).collect();
    let facts: Vec<Option<&FunctionFact>> = numbers.iter().map(|id| by_id.get(id).copied()).collect();
    let plain: Vec<String> = numbers
        .iter()
        .zip(&facts)
        .map(|(id, fact)| fact.map_or(format!("function #{id}"), plain_name))
        .collect();
    let located: Vec<String> = plain
        .iter()
        .zip(&facts)
        .map(|(name, fact)| match fact.and_then(|fact| fact.location.as_ref()) {
            Some(location) => format!("{name} ({location})"),
            None => name.clone(),
        })
        .collect();
    let (plain_uses, located_uses) = (uses(&plain), uses(&located));
    let is_single = |uses: &FxHashMap<&str, u32>, name: &str| uses.get(name) == Some(&1);
    let mut taken = FxHashMap::default();
    let mut functions = Vec::with_capacity(numbers.len());
    for (index, id) in numbers.iter().enumerate() {
        let (Some(name), Some(located)) = (plain.get(index), located.get(index)) else { continue };
        let fact = facts.get(index).copied().flatten();
        let wanted = match fact {
            _ if is_single(&plain_uses, name) => name.clone(),
            _ if is_single(&located_uses, located) => located.clone(),
            Some(fact) => format!("{name} ({}+{:#x})", fact.module, fact.offset),
            None => name.clone(),
        };
        let function = Function {
            name: unique(wanted, &mut taken),
            location: fact.and_then(|fact| fact.location.clone()),
            probes_removed: probes_removed.binary_search(id).is_ok(),
            partly_counted: partly_probed.binary_search(id).is_ok(),
            module: fact.map(|fact| fact.module.clone()).filter(|module| !module.is_empty()),
            ..Function::default()
        };
        functions.push(function.with_origin());
    }
    functions
}

fn plain_name(fact: &FunctionFact) -> String {
    if fact.name.is_empty() { format!("{}+{:#x}", fact.module, fact.offset) } else { fact.name.clone() }
}

fn uses(names: &[String]) -> FxHashMap<&str, u32> {
    let mut uses = FxHashMap::default();
    for name in names {
        *uses.entry(name.as_str()).or_insert(0) += 1;
    }
    uses
}

/// Makes a name unique: returns the name itself, or with the first free number. `taken` has all names in use, each with
/// the number to try next: a hostile recording may contain a name a million times.
pub(in crate::program) fn unique(name: String, taken: &mut FxHashMap<String, u64>) -> String {
    let Some(mut number) = taken.get(&name).copied() else {
        taken.insert(name.clone(), 2);
        return name;
    };
    let free = loop {
        let free = format!("{name}#{number}");
        number = number.saturating_add(1);
        if !taken.contains_key(&free) {
            break free;
        }
    };
    taken.insert(free.clone(), 2);
    taken.insert(name, number);
    free
}

/// Name of a wake edge: what the wakee waited for, and the edge's number.
pub(in crate::program) fn edge(number: u32, wait: Option<&Wait>) -> String {
    use std::fmt::Write;
    let mut name = String::with_capacity(32);
    let io = wait.and_then(|wait| io_name(wait.kind(), wait.descriptor()));
    let written = match wait.map(|wait| wait.reason) {
        Some(WaitReason::Futex(futex)) if futex.words > 1 => {
            write!(name, "one of {} futexes from {:#x} #{number}", futex.words, futex.word)
        }
        Some(WaitReason::Futex(futex)) => {
            write!(name, "{} {:#x} #{number}", futex_name(futex.operation), futex.word)
        }
        _ => write!(name, "{} #{number}", io.unwrap_or("wake")),
    };
    debug_assert!(written.is_ok(), "writing to a String cannot fail");
    name
}

/// Name of a wait for a lock of the kernel that keeps its recorded length.
pub(in crate::program) const KERNEL_LOCK: &str = "a lock of the kernel";

/// Name of the time that messages between recorded hosts are under way.
pub(crate) const BETWEEN_HOSTS: &str = "network between hosts";

/// Name of the device that a wait is for, if no recorded thread ended the wait.
pub(in crate::program) fn device(wait: &Wait) -> &'static str {
    let Wake::External(external) = wait.wake else { return UNKNOWN };
    if wait.reason.is_stop() {
        return STOPPED;
    }
    if wait.is_idle() {
        return IDLE;
    }
    match (external, io_name(wait.kind(), wait.descriptor())) {
        (External::Signal, _) => "signal",
        (External::UnknownContext, _) => "unknown waker",
        (External::BeforeWindow, _) => "woken before the window",
        (External::NotSeen, _) => "wake-up not seen",
        // The call and descriptor say more than the kind of interrupt.
        (_, Some(name)) => name,
        (External::Timer, _) => TIMER,
        (External::Network | External::Request, _) => "network",
        (External::Block, _) => "disk",
        (External::Device, _) => "device",
        (External::HardIrq, _) => "interrupt",
        (External::SoftIrq, _) => "deferred interrupt",
        (External::Nmi, _) => "non-maskable interrupt",
        (External::Task | External::Idle, None) => match wait.kind() {
            CallKind::Child => "child process",
            CallKind::Sleep | CallKind::Signal => "signal",
            _ => "another process",
        },
    }
}

/// Name of what ended a wait, if no recorded thread did.
pub(in crate::program) fn waker(external: External) -> &'static str {
    match external {
        External::Task => "another process",
        External::Timer => TIMER,
        External::Network => "network",
        External::Request => "client",
        External::Block => "disk",
        External::Device => "device",
        External::HardIrq => "interrupt",
        External::SoftIrq => "deferred interrupt",
        External::Nmi => "non-maskable interrupt",
        External::Idle => "idle CPU",
        External::Signal => "signal",
        External::UnknownContext => "unknown waker",
        External::BeforeWindow => "before the recording",
        External::NotSeen => "not seen",
    }
}

/// Device name of waits for work.
pub(super) const IDLE: &str = "idle";

/// Device name of time in which a thread was stopped by a signal or a debugger.
pub(in crate::program) const STOPPED: &str = "stopped";

/// Device name of unknown time.
pub(in crate::program) const UNKNOWN: &str = "unknown";

/// Device name of a wait that a timer ended, in a call whose name does not describe the wait.
pub(in crate::program) const TIMER: &str = "timer";

/// Device name of the time before a thread was started from outside of the recording.
pub(in crate::program) const NOT_STARTED: &str = "started from outside";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_names_get_the_first_free_number() {
        let mut taken = FxHashMap::default();
        let names = ["a", "a#2", "a", "a", "b", "a#2"].map(|name| unique(name.to_owned(), &mut taken));
        assert_eq!(names, ["a", "a#2", "a#3", "a#4", "b", "a#2#2"]);
    }

    /// Trying numbers from 2 on each time would be quadratic: a million threads of one name would take forever.
    #[test]
    fn a_name_given_a_million_times_is_numbered_in_time() {
        let mut taken = FxHashMap::default();
        for _ in 0..1_000_000 {
            unique("a".to_owned(), &mut taken);
        }
        assert_eq!(unique("a".to_owned(), &mut taken), "a#1000001");
    }
}
