//! Facts about threads and processes, for the recording, when longpole attaches.

use super::proc_dir::ProcDir;
use super::proc_text::{Stat, cpu_time_ns, status_field};
use super::process::{Process, comm, descendants};
use crate::target::error::TargetError;
use crate::target::machine::clock::{monotonic_ns, tick_ns};
use crate::target::machine::cpus::CpuList;
use engine::event::{Facts, ProcessFact, ThreadFact};
use std::collections::BTreeSet;

/// Largest number of times that the lists of threads and children are read. They are read again until nothing is new,
/// since new threads may appear during the reading. Later threads are in the events, since the capture starts first.
const MAX_ROUNDS: usize = 16;

/// Facts about the process of `asked` (and its existing descendants, if `children`), with all threads as /proc shows
/// them now; the process asked for comes first. If it has ended since it was opened, or ends during the reading, it is
/// reported as it was at that time, with the threads that could still be read. `Facts::start_ns` stays 0: only the
/// capture knows the time from which events are complete. Must be called after the capture has started, so that no
/// thread's birth is missed.
pub fn attach_facts(asked: &Process, children: bool) -> Facts {
    let pid = asked.pid;
    let mut facts = Facts::default();
    match Process::open(pid) {
        // The process may run another program by now.
        Ok(now) if now.is_same(asked) => add(&mut facts, &now),
        _ => add(&mut facts, asked),
    }
    let mut seen = BTreeSet::from([pid]);
    for _ in 0..if children { MAX_ROUNDS } else { 0 } {
        let new: Vec<u32> = descendants(pid).into_iter().filter(|&child| seen.insert(child)).collect();
        if new.is_empty() {
            break;
        }
        for child in new {
            // A child that has ended in the meantime, or that may not be read, is skipped.
            if let Ok(process) = Process::open(child) {
                add(&mut facts, &process);
            }
        }
    }
    facts
}

/// Facts about the present state of these processes and their threads. A process that has ended is skipped;
/// [`Facts::start_ns`] stays 0.
pub fn facts_of(pids: &[u32]) -> Facts {
    let mut facts = Facts::default();
    let alive = pids.iter().filter_map(|&pid| Process::open(pid).ok());
    alive.for_each(|process| add(&mut facts, &process));
    facts
}

/// The living threads of a process; at least one.
pub fn threads_of(pid: u32) -> Result<Vec<ThreadFact>, TargetError> {
    let threads = threads(&ProcDir::open(pid)?)?;
    if threads.is_empty() { Err(TargetError::ExitedDuringAttach { pid }) } else { Ok(threads) }
}

/// Like [`threads_of`], at the end of a recording: also with the thread that each one waits for.
pub fn threads_at_end(pid: u32) -> Result<Vec<ThreadFact>, TargetError> {
    let mut threads = threads_of(pid)?;
    super::awaited_thread::add(&ProcDir::open(pid)?, &mut threads);
    Ok(threads)
}

fn add(facts: &mut Facts, process: &Process) {
    facts.threads.extend(threads(process.folder()).unwrap_or_default());
    facts.processes.push(ProcessFact {
        pid: process.pid,
        comm: process.comm.clone(),
        executable: process.executable.clone(),
        inner_pids: process.namespace_pids.get(1..).unwrap_or_default().to_vec(),
    });
}

/// The living threads of a process; empty if all have ended.
fn threads(folder: &ProcDir) -> Result<Vec<ThreadFact>, TargetError> {
    let mut seen = BTreeSet::new();
    let mut threads = Vec::new();
    for _ in 0..MAX_ROUNDS {
        let now = match folder.numbers("task") {
            // The process has ended since the round before, whose threads are still true.
            Err(_) if !seen.is_empty() => break,
            now => now?,
        };
        let new: Vec<u32> = now.into_iter().filter(|&tid| seen.insert(tid)).collect();
        if new.is_empty() {
            break;
        }
        threads.extend(new.into_iter().filter_map(|tid| thread(folder, tid)));
    }
    Ok(threads)
}

/// The CPUs allowed according to /proc/PID/status.
fn allowed_cpus(status: &str) -> Vec<u32> {
    let list = status_field(status, "Cpus_allowed_list").and_then(CpuList::parse);
    list.iter().flat_map(CpuList::iter).filter_map(|cpu| u32::try_from(cpu).ok()).collect()
}

/// Facts about one thread; `None` if it has ended.
fn thread(folder: &ProcDir, tid: u32) -> Option<ThreadFact> {
    let read = |name: &str| folder.text(&format!("task/{tid}/{name}")).ok();
    let stat = Stat::parse(&read("stat")?)?;
    let cpu_time_ns = read("schedstat").as_deref().and_then(cpu_time_ns);
    let seen_ns = monotonic_ns();
    (!stat.is_dead()).then(|| ThreadFact {
        tid,
        pid: folder.pid(),
        start_time_ns: stat.start_ticks.saturating_mul(tick_ns()),
        comm: comm(&read("comm").unwrap_or_default()),
        state: stat.thread_state(),
        seen_ns,
        cpu_time_ns,
        nice: stat.nice,
        cpus: read("status").as_deref().map(allowed_cpus).unwrap_or_default(),
        ..ThreadFact::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::event::ThreadState;
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};

    struct Killed(Child);

    impl Drop for Killed {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn attach_facts_contain_a_sleeping_child_and_its_own_child() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 100 & echo $!; wait"]).stdout(Stdio::piped());
        let mut shell = Killed(command.spawn().unwrap());
        let mut line = String::new();
        BufReader::new(shell.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (pid, grandchild) = (shell.0.id(), line.trim().parse::<u32>().unwrap());
        let before = monotonic_ns();
        let facts = loop {
            // The grandchild may not have run exec yet.
            let facts = attach_facts(&Process::open(pid).unwrap(), true);
            let asleep = facts.threads.iter().all(|thread| thread.state == ThreadState::Sleeping);
            if facts.processes.iter().any(|process| process.comm == "sleep") && asleep {
                break facts;
            }
            std::thread::yield_now();
        };
        let without = attach_facts(&Process::open(pid).unwrap(), false);
        Command::new("kill").arg(grandchild.to_string()).status().unwrap();

        assert_eq!((facts.processes.len(), facts.threads.len()), (2, 2));
        let (main, child) = (&facts.processes[0], &facts.processes[1]);
        assert_eq!((main.pid, main.comm.as_str(), child.pid), (pid, "sh", grandchild));
        assert!(child.executable.starts_with('/'), "{}", child.executable);
        let thread = &facts.threads[0];
        assert_eq!((thread.tid, thread.pid), (pid, pid));
        assert!(thread.seen_ns >= before && thread.seen_ns <= monotonic_ns());
        assert!(thread.start_time_ns > 0);
        assert_eq!((without.processes.len(), without.threads.len()), (1, 1));
    }

    #[test]
    fn attach_facts_of_an_ended_process_are_those_read_before() {
        let mut child = Killed(Command::new("sleep").arg("100").spawn().unwrap());
        let asked = loop {
            let asked = Process::open(child.0.id()).unwrap();
            if asked.comm == "sleep" {
                break asked;
            }
        };
        child.0.kill().unwrap();
        child.0.wait().unwrap();
        let facts = attach_facts(&asked, true);
        assert_eq!((facts.processes.len(), facts.threads.len()), (1, 0));
        assert_eq!((facts.processes[0].pid, facts.processes[0].comm.as_str()), (asked.pid, "sleep"));
    }

    #[test]
    fn threads_of_this_process_have_names_states_and_cpu_time() {
        let (stop, wait) = std::sync::mpsc::channel::<()>();
        let named = std::thread::Builder::new().name("a\u{1b}b".into());
        let worker = named.spawn(move || wait.recv().is_err()).unwrap();
        // The kernel counts a thread's CPU time at a switch or a tick, and this thread may not have had one yet.
        let counted = |thread: &ThreadFact| {
            thread.state == ThreadState::Running && thread.cpu_time_ns.is_some_and(|ns| ns > 0)
        };
        let began = std::time::Instant::now();
        loop {
            let threads = threads_of(std::process::id()).unwrap();
            if threads.iter().any(|thread| thread.comm == "a\u{fffd}b") && threads.iter().any(counted) {
                break;
            }
            assert!(began.elapsed() < std::time::Duration::from_secs(20), "{threads:?}");
            std::thread::yield_now();
        }
        drop(stop);
        worker.join().unwrap();
    }
}
