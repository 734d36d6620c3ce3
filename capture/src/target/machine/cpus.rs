//! Lists of CPUs as the kernel writes them, and starting a process on some CPUs.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::BTreeSet;
use std::fmt;
use std::io;

/// A set of CPUs, by number, never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuList(BTreeSet<usize>);

impl CpuList {
    /// Parses `0-3,8` as in `/sys/devices/system/cpu/online`; `None` if the text is no such list, or empty.
    pub fn parse(text: &str) -> Option<CpuList> {
        let mut cpus = BTreeSet::new();
        for part in text.trim().split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (first.trim().parse::<usize>().ok()?, last.trim().parse::<usize>().ok()?);
            if first > last || last >= CpuSet::MAX_CPU {
                return None;
            }
            cpus.extend(first..=last);
        }
        CpuList::of(cpus)
    }

    /// A list of these CPUs; `None` if there are none.
    pub fn of(cpus: impl IntoIterator<Item = usize>) -> Option<CpuList> {
        let cpus: BTreeSet<usize> = cpus.into_iter().collect();
        (!cpus.is_empty()).then_some(CpuList(cpus))
    }

    /// CPUs on which longpole, and so a process that it starts, may run.
    ///
    /// # Errors
    ///
    /// The kernel does not give the list.
    pub fn allowed() -> io::Result<CpuList> {
        let set = sched_getaffinity(None)?;
        CpuList::of((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)))
            .ok_or_else(|| io::Error::other("no CPU to run on"))
    }

    /// The number of CPUs.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Always false: a list has at least one CPU.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The CPUs' numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().copied()
    }

    /// The CPUs that are not in `others`.
    pub fn without(&self, others: &CpuList) -> Option<CpuList> {
        CpuList::of(self.0.difference(&others.0).copied())
    }

    /// `count` of the CPUs, or all if there are not more: one of each core before a second one of any, since hardware threads
    /// share their core, and two of one core are less than two CPUs.
    pub fn spread(&self, count: usize) -> CpuList {
        self.spread_over(count, |cpu| {
            let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
            CpuList::parse(&std::fs::read_to_string(path).ok()?)
        })
    }

    fn spread_over(&self, count: usize, siblings: impl Fn(usize) -> Option<CpuList>) -> CpuList {
        // The number of smaller allowed CPUs on the same core.
        let rank = |cpu: usize| {
            siblings(cpu)
                .map_or(0, |core| core.iter().filter(|&other| other < cpu && self.0.contains(&other)).count())
        };
        let mut order: Vec<(usize, usize)> = self.0.iter().map(|&cpu| (rank(cpu), cpu)).collect();
        order.sort_unstable();
        let chosen: BTreeSet<usize> = order.into_iter().take(count.max(1)).map(|(_, cpu)| cpu).collect();
        CpuList(chosen)
    }
}

impl fmt::Display for CpuList {
    /// Writes the list as in `0-3,8`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.iter().copied().peekable();
        let mut first_part = true;
        while let Some(first) = rest.next() {
            let mut last = first;
            while let Some(next) = rest.next_if_eq(&(last + 1)) {
                last = next;
            }
            if !std::mem::take(&mut first_part) {
                f.write_str(",")?;
            }
            if first == last { write!(f, "{first}")? } else { write!(f, "{first}-{last}")? }
        }
        Ok(())
    }
}

/// Runs `work` in a thread that may use only these CPUs; a process that `work` starts inherits that. The calling thread
/// keeps its own CPUs.
///
/// # Errors
/// No thread can be started, or none of the CPUs may be used.
pub fn on<T: Send>(cpus: &CpuList, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(cpu));
    std::thread::scope(|scope| {
        let pinned =
            std::thread::Builder::new().name("lp-start".to_owned()).spawn_scoped(scope, move || {
                sched_setaffinity(None, &set)?;
                work()
            })?;
        pinned.join().unwrap_or_else(|_| Err(io::Error::other("the starting thread failed")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> CpuList {
        CpuList::parse(text).expect(text)
    }

    #[test]
    fn cpu_lists_are_read_and_written_as_the_kernel_does() {
        for text in ["0", "0-3", "0,2", "0-1,4-6,9"] {
            assert_eq!(list(text).to_string(), text);
        }
        assert_eq!(list("3,1,2,0-1\n").to_string(), "0-3");
        for wrong in ["", "a", "1-", "3-1", "-1", "0,,1", "0-99999999", "18446744073709551616"] {
            assert_eq!(CpuList::parse(wrong), None, "{wrong}");
        }
        assert_eq!(list("0-3").without(&list("1")).expect("some").to_string(), "0,2-3");
        assert_eq!(list("1").without(&list("0-3")), None);
    }

    #[test]
    fn cpus_are_spread_over_cores_before_second_threads() {
        // CPUs 0 and 1 are one core, 2 and 3 another one, and 4 is alone.
        let siblings = |cpu: usize| CpuList::parse(["0-1", "0-1", "2-3", "2-3", "4"].get(cpu)?);
        let spread = |count| list("0-4").spread_over(count, siblings).to_string();
        assert_eq!((spread(1), spread(2), spread(3)), ("0".into(), "0,2".into(), "0,2,4".into()));
        assert_eq!((spread(4), spread(9)), ("0-2,4".into(), "0-4".into()));
        // CPU 0, the core's first thread, is not in the list, so CPU 1 has the core to itself.
        assert_eq!(list("1,2,3").spread_over(2, siblings).to_string(), "1-2");
    }

    #[test]
    fn a_child_inherits_the_given_cpus_and_the_caller_keeps_its_own() {
        let before = CpuList::allowed().expect("CPUs");
        let one = before.spread(1);
        let out =
            on(&one, || std::process::Command::new("cat").arg("/proc/self/status").output()).expect("cat");
        let text = String::from_utf8(out.stdout).expect("text");
        let line = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("a line");
        assert_eq!(list(line), one);
        assert_eq!(CpuList::allowed().expect("CPUs"), before);
        assert!(on(&list("1023"), || Ok(())).is_err());
    }
}
