//! Facts about one process: its program, its PIDs, and its tracer.

use super::proc_dir::ProcDir;
use super::proc_text::{Stat, status_field};
use crate::target::error::TargetError;
use crate::target::machine::clock::tick_ns;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use symbols::{safe_path, safe_within};

/// A process that can be watched.
#[derive(Debug)]
pub struct Process {
    /// Host process id.
    pub pid: u32,
    /// PID of the process in each PID namespace: longpole's namespace first, the process's own last.
    pub namespace_pids: Vec<u32>,
    /// Short name, safe to print.
    pub comm: String,
    /// Path of the process's program as the process sees it, safe to print: the path by which it was started, which may
    /// be a link.
    pub executable: String,
    /// The process that traces the first thread, such as a debugger: PID and short name, safe to print.
    pub tracer: Option<(u32, String)>,
    folder: ProcDir,
    first_thread: u32,
    began_ticks: u64,
}

impl Process {
    /// Reads facts about a process. The error says why the process cannot be recorded.
    pub fn open(pid: u32) -> Result<Process, TargetError> {
        if pid == std::process::id() {
            return Err(TargetError::OwnProcess { pid });
        }
        let folder = ProcDir::open(pid)?;
        let status = folder.text("status")?;
        let leader: Option<u32> = status_field(&status, "Tgid").and_then(|text| text.parse().ok());
        if let Some(leader) = leader.filter(|&leader| leader != pid) {
            return Err(TargetError::IsThread { tid: pid, pid: leader });
        }
        let stat = Stat::parse(&folder.text("stat")?)
            .ok_or_else(|| TargetError::Unreadable { pid, what: format!("/proc/{pid}/stat") })?;
        if stat.is_kernel_thread {
            return Err(TargetError::KernelThread { pid });
        }
        let is_alive = |tid: &u32| {
            let text = folder.text(&format!("task/{tid}/stat")).unwrap_or_default();
            Stat::parse(&text).is_some_and(|stat| !stat.is_dead())
        };
        // This is called only if needed: there may be thousands of threads, and little time.
        let others = || folder.numbers("task").unwrap_or_default().into_iter().filter(is_alive);
        let Some(first_thread) = foremost(pid, !stat.is_dead(), others) else {
            return Err(TargetError::Zombie { pid });
        };
        let executable = folder.link(&format!("task/{first_thread}/exe"))?;
        let typed = super::invoked_path::path(&folder, &executable);
        let status_of_first = folder.text(&format!("task/{first_thread}/status")).unwrap_or_default();
        let tracer = status_field(&status_of_first, "TracerPid").and_then(|text| text.parse().ok());
        let tracer = tracer.filter(|&pid: &u32| pid != 0).map(|pid| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            (pid, comm(&name))
        });
        let namespace_pids = status_field(&status, "NSpid").unwrap_or_default().split_ascii_whitespace();
        Ok(Process {
            pid,
            namespace_pids: namespace_pids.filter_map(|word| word.parse().ok()).collect(),
            comm: folder.text("comm").map(|text| comm(&text)).unwrap_or_default(),
            executable: typed.unwrap_or_else(|| without_deleted(&safe_path(&executable))),
            tracer,
            first_thread,
            began_ticks: stat.start_ticks,
            folder,
        })
    }

    /// A path that opens the file of the process's program, even if the file is deleted, replaced or in a container.
    /// The path is invalid once the process has ended.
    pub fn open_path(&self) -> PathBuf {
        match self.first_thread == self.pid {
            true => PathBuf::from(format!("/proc/{}/exe", self.pid)),
            // The leader has ended and has no program any more.
            false => PathBuf::from(format!("/proc/{}/task/{}/exe", self.pid, self.first_thread)),
        }
    }

    /// File name of the process's program, for messages.
    pub fn program_name(&self) -> &str {
        self.executable.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(&self.comm)
    }

    /// Start of the process, in the kernel's ticks since boot. It distinguishes the process from a later one with the
    /// same PID.
    pub fn start_ticks(&self) -> Option<u64> {
        Stat::parse(&self.folder.text("stat").ok()?).map(|stat| stat.start_ticks)
    }

    /// Start of the process by the wall clock, accurate to one or two seconds.
    pub fn began(&self) -> Option<SystemTime> {
        let text = std::fs::read_to_string("/proc/stat").ok()?;
        let boot = text.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
        let since_boot = Duration::from_nanos(self.began_ticks.saturating_mul(tick_ns()));
        SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(boot))?.checked_add(since_boot)
    }

    /// Whether both values are the same process, and not two that had the same PID one after the other.
    pub fn is_same(&self, other: &Process) -> bool {
        self.pid == other.pid && self.began_ticks == other.began_ticks
    }

    pub(super) fn folder(&self) -> &ProcDir {
        &self.folder
    }
}

/// The thread that represents a process: its leader, or another thread if the leader has ended. The leader need not have
/// the smallest number: the kernel starts again from small numbers when they have run out.
fn foremost<I: Iterator<Item = u32>>(
    pid: u32,
    leader_lives: bool,
    threads: impl FnOnce() -> I,
) -> Option<u32> {
    if leader_lives { Some(pid) } else { threads().next() }
}

/// A name from /proc, made safe to print.
pub fn comm(text: &str) -> String {
    safe_within(text.strip_suffix('\n').unwrap_or(text), 64)
}

/// Removes the mark that the kernel adds to the path of a program whose file was deleted.
pub fn without_deleted(path: &str) -> String {
    path.strip_suffix(" (deleted)").unwrap_or(path).to_owned()
}

/// Descendants of `pid`: children, their children and so on; without longpole itself and its own children.
pub fn descendants(pid: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for child in pids {
        let text = std::fs::read(format!("/proc/{child}/stat")).unwrap_or_default();
        if let Some(stat) = Stat::parse(&String::from_utf8_lossy(&text)) {
            children.entry(stat.parent).or_default().push(child);
        }
    }
    below(pid, std::process::id(), &children)
}

fn below(pid: u32, own: u32, children: &BTreeMap<u32, Vec<u32>>) -> Vec<u32> {
    let mut found = BTreeSet::new();
    let mut open = vec![pid];
    while let Some(parent) = open.pop() {
        for &child in children.get(&parent).into_iter().flatten() {
            if child != own && child != pid && found.insert(child) {
                open.push(child);
            }
        }
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_leave_out_longpole_and_end_on_circles() {
        let children =
            BTreeMap::from([(1, vec![2, 3]), (2, vec![4]), (3, vec![5]), (4, vec![1]), (9, vec![8])]);
        assert_eq!(below(1, 3, &children), [2, 4]);
        assert_eq!(below(7, 3, &children), [0u32; 0]);
    }

    /// A program whose threads come and go must not count as ended when a thread other than the leader ends.
    #[test]
    fn the_leader_stands_for_its_process_whatever_its_number() {
        assert_eq!(foremost(32765, true, || [433, 434, 32765].into_iter()), Some(32765));
        assert_eq!(foremost(32765, false, || [433, 434].into_iter()), Some(433), "the leader is gone");
        assert_eq!(foremost(7, false, || [0u32; 0].into_iter()), None);
    }

    #[test]
    fn a_process_that_cannot_be_recorded_is_an_error_with_the_reason() {
        let own = std::process::id();
        assert_eq!(Process::open(own).unwrap_err(), TargetError::OwnProcess { pid: own });
        // This PID is above the kernel's largest one.
        assert_eq!(Process::open(4_194_305).unwrap_err(), TargetError::NoSuchProcess { pid: 4_194_305 });
        assert_eq!(Process::open(0).unwrap_err(), TargetError::NoSuchProcess { pid: 0 });
        let kernel = std::fs::read_to_string("/proc/2/stat").unwrap_or_default();
        if Stat::parse(&kernel).is_some_and(|stat| stat.is_kernel_thread) {
            assert_eq!(Process::open(2).unwrap_err(), TargetError::KernelThread { pid: 2 });
        } else {
            println!(
                "SKIP a_process_that_cannot_be_recorded_is_an_error_with_the_reason (kernel thread): PID 2 is none here"
            );
        }
    }

    #[test]
    fn a_zombie_is_distinguished_from_a_missing_process() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        let is_dead = || {
            let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
            Stat::parse(&text).unwrap().is_dead()
        };
        while !is_dead() {
            std::thread::yield_now();
        }
        assert_eq!(Process::open(pid).unwrap_err(), TargetError::Zombie { pid });
        child.wait().unwrap();
        assert_eq!(Process::open(pid).unwrap_err(), TargetError::NoSuchProcess { pid });
    }

    #[test]
    fn opening_a_thread_is_an_error_that_names_its_process() {
        let (stop, wait) = std::sync::mpsc::channel::<()>();
        let worker = std::thread::spawn(move || wait.recv().is_err());
        let own = std::process::id();
        let tid = loop {
            let threads = ProcDir::open(own).unwrap().numbers("task").unwrap();
            if let Some(tid) = threads.into_iter().find(|&tid| tid != own) {
                break tid;
            }
        };
        assert_eq!(Process::open(tid).unwrap_err(), TargetError::IsThread { tid, pid: own });
        drop(stop);
        worker.join().unwrap();
    }

    #[test]
    fn an_ended_process_is_not_taken_for_its_successor() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let folder = ProcDir::open(child.id()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(folder.text("status"), Err(TargetError::ExitedDuringAttach { pid: child.id() }));
    }
}
