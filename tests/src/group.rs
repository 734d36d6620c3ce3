//! Control groups. All processes of a group can be frozen at once, and the group's CPU time is known to the
//! microsecond.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::process::shell;

/// Longest time that freezing may take, even on a loaded machine.
const LIMIT: Duration = Duration::from_secs(240);

/// A control group of version 2. Dropping it kills the processes that are still in it.
pub struct Group {
    folder: PathBuf,
}

impl Group {
    /// Makes an empty group that is not frozen.
    ///
    /// # Errors
    /// There are no control groups of version 2, or this process may not make one.
    pub fn new(name: &str) -> io::Result<Group> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let mounts = std::fs::read_to_string("/proc/mounts")?;
        let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let root = mounts
            .find_map(|fields| {
                (fields.get(2) == Some(&"cgroup2"))
                    .then(|| fields.get(1).copied())
                    .flatten()
                    .map(PathBuf::from)
            })
            .ok_or_else(|| {
                io::Error::other("no control groups of version 2 are mounted: `mount -t cgroup2 none /mnt`")
            })?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = root.join(format!("longpole-{name}-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder).map_err(|error| named(&folder, &error))?;
        Ok(Group { folder })
    }

    /// A command that runs this line of shell in the group: the shell joins the group and then executes the program.
    pub fn shell(&self, line: &str) -> Command {
        let mut command = shell(&format!("echo $$ > \"$GROUP\" && exec {line}"));
        command.env("GROUP", self.folder.join("cgroup.procs")).env("LC_ALL", "C");
        command
    }

    /// Freezes the group. Returns when none of its processes runs any more.
    ///
    /// # Errors
    /// The kernel refuses, or a process is not frozen in time.
    pub fn hold(&self) -> io::Result<()> {
        self.put("cgroup.freeze", "1")?;
        let end = Instant::now() + LIMIT;
        // A process that waits for a disk is frozen only after that wait.
        while !std::fs::read_to_string(self.folder.join("cgroup.events"))?.contains("frozen 1") {
            if Instant::now() > end {
                return Err(io::Error::other(format!("{} cannot be held", self.folder.display())));
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(())
    }

    /// Lets the group's processes run again.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn let_go(&self) -> io::Result<()> {
        self.put("cgroup.freeze", "0")
    }

    /// CPU time that the group's processes have used so far, in seconds. Processes that have ended count, too.
    ///
    /// # Errors
    /// `cpu.stat` cannot be read, or has no such number.
    pub fn cpu_s(&self) -> io::Result<f64> {
        let stat = std::fs::read_to_string(self.folder.join("cpu.stat"))?;
        let usage = stat.lines().find_map(|line| line.strip_prefix("usage_usec "));
        let usage: Option<f64> = usage.and_then(|text| text.trim().parse().ok());
        usage.map(|usage| usage / 1e6).ok_or_else(|| io::Error::other("no usage_usec in cpu.stat"))
    }

    fn put(&self, file: &str, text: &str) -> io::Result<()> {
        let path = self.folder.join(file);
        let file = std::fs::File::options().write(true).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| named(&path, &error))
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

impl Drop for Group {
    fn drop(&mut self) {
        drop(self.let_go());
        drop(self.put("cgroup.kill", "1"));
        for _ in 0..200 {
            if std::fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
