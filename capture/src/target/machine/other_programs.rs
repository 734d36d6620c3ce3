//! Measures which CPU time programs use that are not recorded: a load generator next to a server, a build.

use super::clock::{monotonic_ns, tick_ns};
use crate::target::processes::proc_text::Stat;
use engine::event::{OtherProgram, OtherPrograms};
use rustc_hash::FxHashMap;
use std::path::Path;

/// Number of programs that are kept: those that use most CPU time.
const MOST: usize = 8;
/// Number of processes that are read at most: reading more would take tenths of a second.
const MOST_PROCESSES: usize = 8192;

/// The CPU time of all processes at some instant.
#[derive(Debug)]
pub struct CpuTimes {
    at_ns: u64,
    /// The time of the reading in ticks since boot, the unit of a process's start in /proc.
    at_ticks: u64,
    /// For each process: its start and its CPU time, both in ticks.
    all: FxHashMap<u32, (u64, u64)>,
}

impl CpuTimes {
    /// Now.
    pub fn now() -> CpuTimes {
        let (at_ns, at_ticks) = (monotonic_ns(), ticks_since_boot());
        let all = processes(&[]).map(|(pid, _, stat)| (pid, (stat.start_ticks, stat.cpu_ticks))).collect();
        CpuTimes { at_ns, at_ticks, all }
    }

    /// CPU time that processes other than these, longpole and its children have used since the reading. Descendants of these
    /// processes are counted apart: they belong to the program, but were not recorded.
    pub fn used_by_others(&self, recorded: &[u32]) -> OtherPrograms {
        let own = std::process::id();
        let mut programs: FxHashMap<(bool, String), OtherProgram> = FxHashMap::default();
        let all: Vec<(u32, String, Stat)> = processes(recorded).collect();
        let parents: FxHashMap<u32, u32> = all.iter().map(|(pid, _, stat)| (*pid, stat.parent)).collect();
        for (pid, name, stat) in all {
            // What has ended and is not awaited may have been recorded.
            if pid == own || stat.parent == own || stat.is_dead() {
                continue;
            }
            let is_child = is_below(stat.parent, recorded, &parents);
            let before = self.all.get(&pid).filter(|(start, _)| *start == stat.start_ticks);
            let before = match before {
                Some((_, ticks)) => *ticks,
                None if stat.start_ticks >= self.at_ticks => 0,
                // The first reading missed the process, so its CPU time until then is not known.
                None => continue,
            };
            let ticks = stat.cpu_ticks.saturating_sub(before);
            let cpu_ns = ticks.saturating_mul(tick_ns());
            if cpu_ns > 0 {
                let program = programs.entry((is_child, name.clone())).or_default();
                program.name = name;
                program.processes = program.processes.saturating_add(1);
                program.cpu_ns = program.cpu_ns.saturating_add(cpu_ns);
            }
        }
        let mut of = |is_child: bool| {
            let own = programs.extract_if(|(child, _), _| *child == is_child);
            let mut own: Vec<OtherProgram> = own.map(|(_, program)| program).collect();
            own.sort_by(|a, b| b.cpu_ns.cmp(&a.cpu_ns).then_with(|| a.name.cmp(&b.name)));
            own
        };
        let children = of(true).into_iter().reduce(|all, other| OtherProgram {
            processes: all.processes.saturating_add(other.processes),
            cpu_ns: all.cpu_ns.saturating_add(other.cpu_ns),
            ..all
        });
        let mut programs = of(false);
        programs.truncate(MOST);
        OtherPrograms {
            measured_ns: monotonic_ns().saturating_sub(self.at_ns),
            programs,
            children: children.map(Box::new),
        }
    }
}

/// Whether the process is one of `recorded` or a descendant of one. `parents`: the parent of each other process.
fn is_below(pid: u32, recorded: &[u32], parents: &FxHashMap<u32, u32>) -> bool {
    let ancestors = std::iter::successors(Some(pid), |pid| parents.get(pid).copied());
    // Processes that end and begin meanwhile could make a circle.
    ancestors.take(MOST_PROCESSES).any(|pid| recorded.contains(&pid))
}

/// Time since boot in ticks, the unit in which /proc gives the start of processes.
fn ticks_since_boot() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let ns = seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0));
    ns / tick_ns().max(1)
}

/// Number, short name and line of each process except these and the kernel's own threads: part of the kernel threads'
/// work is for the recorded program.
fn processes(without: &[u32]) -> impl Iterator<Item = (u32, String, Stat)> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let numbers = numbers.filter(|pid| !without.contains(pid));
    numbers.take(MOST_PROCESSES).filter_map(|pid| {
        let bytes = std::fs::read(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let stat = Stat::parse(&text).filter(|stat| !stat.is_kernel_thread)?;
        let (name, _) = text.split_once('(')?.1.rsplit_once(')')?;
        // A process chooses its own name, so control characters are replaced.
        let name = name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        Some((pid, name, stat))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::Duration;

    #[test]
    fn a_busy_process_is_listed_unless_it_is_recorded() {
        // A grandchild: children of this process count as its own. By a name that no other process has.
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("lp-busy-test");
        std::os::unix::fs::symlink("/bin/sh", &program).expect("a link");
        let mut shell = Command::new("sh");
        let command = format!("{} -c 'while :; do :; done' & echo $!; wait", program.display());
        shell.args(["-c", &command]).stdout(std::process::Stdio::piped());
        let mut shell = shell.spawn().expect("a shell");
        let mut line = String::new();
        let output = shell.stdout.take().expect("its output");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).expect("a number");
        let busy: u32 = line.trim().parse().expect("a number");
        let before = CpuTimes::now();
        let used = |recorded: &[u32]| {
            let others = before.used_by_others(recorded);
            others
                .programs
                .iter()
                .find(|program| program.name == "lp-busy-test")
                .map_or(0, |program| program.cpu_ns)
        };
        let until = std::time::Instant::now() + Duration::from_secs(20);
        while used(&[]) < 50_000_000 && std::time::Instant::now() < until {
            std::thread::sleep(Duration::from_millis(50));
        }
        let (seen, without, of_parent) = (used(&[]), used(&[busy]), used(&[shell.id()]));
        let children = before.used_by_others(&[shell.id()]).children;
        // A process that the first reading has missed, although it began earlier.
        let late = CpuTimes { all: FxHashMap::default(), at_ticks: ticks_since_boot() + 1, ..before };
        let missed = late.used_by_others(&[]).programs.iter().any(|program| program.name == "lp-busy-test");
        let _ = rustix::process::kill_process(
            rustix::process::Pid::from_raw(busy as i32).expect("a process"),
            rustix::process::Signal::KILL,
        );
        let _ = shell.wait();
        assert!(seen >= 50_000_000, "{seen}");
        assert_eq!((without, of_parent, missed), (0, 0, false));
        let children = children.expect("a child of the shell");
        assert_eq!((children.name.as_str(), children.processes), ("lp-busy-test", 1));
        assert!(children.cpu_ns >= seen, "{children:?}");
    }
}
