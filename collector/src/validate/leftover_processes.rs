//! Finds processes that the command leaves running when it ends: they use the machine while later runs are measured.
//! They are reported, and not touched.

use crate::present::words::finding::sentence;
use capture::target::{Process, descendants};
use engine::report::{Finding, Names};
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

/// A process that ends by itself within this time is not reported: parts of a pipeline end one after the other.
const GRACE: Duration = Duration::from_millis(200);
/// Largest number of processes that are named.
const MOST_NAMED: usize = 3;

/// See the module.
#[derive(Debug)]
pub(super) struct LeftoverProcesses {
    /// Names of processes known so far, by pid.
    known: BTreeMap<u32, String>,
    own: Option<(u64, u64)>,
}

impl LeftoverProcesses {
    /// Makes longpole the subreaper: a process that loses its parent becomes a child of longpole, however it went into the
    /// background. So processes that a run leaves behind can be distinguished from all others.
    pub fn watch() -> LeftoverProcesses {
        if let Err(error) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
            log::warn!("longpole cannot notice processes that the command leaves behind: {error}");
        }
        let own = std::fs::metadata("/proc/self/exe").ok().map(|found| file(&found));
        let mut left = LeftoverProcesses { known: BTreeMap::new(), own };
        // Children that longpole has before the first run do not count.
        left.known = left.alive();
        left.known.values_mut().for_each(String::clear);
        left
    }

    /// Checks after a run. `true`: this run is the first one that has left a process behind.
    pub fn look(&mut self) -> bool {
        let first = self.names().next().is_none();
        let until = Instant::now() + GRACE;
        loop {
            let mut new = self.alive();
            new.retain(|pid, _| !self.known.contains_key(pid));
            if new.is_empty() {
                return false;
            }
            if Instant::now() >= until {
                self.known.extend(new);
                return first;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Children and grandchildren of longpole that still run, without those that run longpole itself.
    fn alive(&self) -> BTreeMap<u32, String> {
        let processes = descendants(std::process::id()).into_iter().filter_map(|pid| Process::open(pid).ok());
        let foreign = processes.filter(|process| {
            let program = std::fs::metadata(process.open_path()).ok().map(|found| file(&found));
            program.is_none() || program != self.own
        });
        foreign.map(|process| (process.pid, process.program_name().to_owned())).collect()
    }

    fn names(&self) -> impl Iterator<Item = (&u32, &String)> {
        self.known.iter().filter(|(_, name)| !name.is_empty())
    }

    /// A finding about the processes that were left running, if there are any.
    pub fn finding(&self) -> Option<Finding> {
        let mut names = self.names().map(|(pid, name)| format!("{name} (pid {pid})"));
        let first: Vec<String> = names.by_ref().take(MOST_NAMED).collect();
        let processes = Names { names: first, more: names.count() };
        (processes.count() > 0).then_some(Finding::LeftRunning { processes })
    }

    /// A sentence about the processes that were left running, if there are any.
    pub fn sentence(&self) -> Option<String> {
        self.finding().map(|finding| sentence(&finding))
    }
}

/// Identity of a file: device and inode.
fn file(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftover_processes_are_named_up_to_three_and_counted() {
        let mut left = LeftoverProcesses { known: BTreeMap::from([(3, String::new())]), own: None };
        assert_eq!(left.finding(), None);
        left.known.insert(7, "sleep".to_owned());
        let one = left.sentence().expect("one");
        assert!(
            one.starts_with("the command left 1 process running when it ended: sleep (pid 7). "),
            "{one}"
        );
        left.known.extend((8..12).map(|pid| (pid, "daemon".to_owned())));
        let five = left.sentence().expect("five");
        assert!(five.contains("5 processes") && five.contains("daemon (pid 9) and 2 more."), "{five}");
    }
}
