//! Two ways of doing the same work, each for half a second in turn: a machine that is shared, and slower from one second to
//! the next, is then slower for both.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use longpole_tests::shell;

/// How long one runs before it is the other's turn. Not shorter: the clock goes on while a program is held, so what it
/// does twenty times a second is due at the beginning of each turn once more, and every thread is woken to be let go. At a
/// tenth of a second that was half as many wake-ups again for longpole, and a Redis under load seemed 6 to 10 % slower where
/// the same server needed 2.4 % more CPU time with longpole than without.
const TURN: Duration = Duration::from_millis(500);
/// How often is looked whether a work is done.
const LOOK: Duration = Duration::from_millis(1);
/// Nothing takes longer on a machine that has anything left for it.
const LIMIT: Duration = Duration::from_secs(240);

/// Processes that can be held all at once: a control group.
pub struct Group {
    folder: PathBuf,
}

impl Group {
    /// An empty one, let go.
    ///
    /// # Errors
    /// There are no control groups of version 2, or they are not ours to make.
    pub fn new(name: &str) -> Result<Group> {
        let mounts = std::fs::read_to_string("/proc/mounts")?;
        let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let root = mounts
            .find_map(|fields| {
                (fields.get(2) == Some(&"cgroup2"))
                    .then(|| fields.get(1).copied())
                    .flatten()
                    .map(PathBuf::from)
            })
            .context("no control groups of version 2 are mounted: `mount -t cgroup2 none /mnt`")?;
        let folder = root.join(format!("longpole-bench-{name}-{}", std::process::id()));
        std::fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Group { folder })
    }

    /// A line of shell that becomes a member before it becomes the program.
    pub fn shell(&self, line: &str) -> Command {
        let mut command = shell(&format!("echo $$ > \"$GROUP\" && exec {line}"));
        command.env("GROUP", self.folder.join("cgroup.procs")).env("LC_ALL", "C");
        command
    }

    /// Returns when none of its processes runs any more.
    pub fn hold(&self) -> Result<()> {
        self.put("cgroup.freeze", "1")?;
        let end = Instant::now() + LIMIT;
        // Somebody may be in the middle of a disk's answer.
        while !std::fs::read_to_string(self.folder.join("cgroup.events"))?.contains("frozen 1") {
            if Instant::now() > end {
                bail!("{} cannot be held", self.folder.display());
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(())
    }

    pub fn let_go(&self) -> Result<()> {
        self.put("cgroup.freeze", "0")
    }

    /// CPU time of all that its processes have done so far, those that are gone included.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn cpu_s(&self) -> Result<f64> {
        let stat = std::fs::read_to_string(self.folder.join("cpu.stat"))?;
        let usage = stat.lines().find_map(|line| line.strip_prefix("usage_usec "));
        let usage: f64 =
            usage.and_then(|text| text.trim().parse().ok()).context("no usage_usec in cpu.stat")?;
        Ok(usage / 1e6)
    }

    fn put(&self, file: &str, text: &str) -> Result<()> {
        let path = self.folder.join(file);
        let mut file =
            std::fs::File::options().write(true).open(&path).with_context(|| path.display().to_string())?;
        file.write_all(text.as_bytes()).with_context(|| path.display().to_string())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Whoever is left in it was started for a measurement that is over.
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

/// One of two works.
pub struct Work<'a> {
    /// Its processes, held.
    pub group: &'a Group,
    /// Whether it is done.
    pub done: &'a mut dyn FnMut() -> bool,
}

/// What a work took.
#[derive(Clone, Copy, Default)]
pub struct Took {
    /// Seconds.
    pub wall_s: f64,
    /// CPU time of all its processes, seconds.
    pub cpu_s: f64,
}

/// Lets both run in turns until both are done; what each has taken. Both are let go in the end.
///
/// # Errors
/// One cannot be held, or does not come to an end.
pub fn in_turns(mut works: [Work<'_>; 2]) -> Result<[Took; 2]> {
    let mut took = [Duration::ZERO; 2];
    let mut done = [false; 2];
    let mut cpu_s = [0.0; 2];
    for (cpu_s, work) in cpu_s.iter_mut().zip(&works) {
        *cpu_s = -work.group.cpu_s()?;
    }
    let begin = Instant::now();
    // First, second, second, first: neither is always the one that comes later.
    for turn in [0, 1, 1, 0].into_iter().cycle() {
        if done == [true; 2] {
            break;
        }
        if begin.elapsed() > LIMIT {
            bail!("a work does not come to an end");
        }
        let (Some(work), Some(took), Some(done)) =
            (works.get_mut(turn), took.get_mut(turn), done.get_mut(turn))
        else {
            break;
        };
        if *done {
            continue;
        }
        let start = Instant::now();
        work.group.let_go()?;
        while start.elapsed() < TURN && !*done {
            std::thread::sleep(LOOK);
            *done = (work.done)();
        }
        *took += start.elapsed();
        // What it does after its work is not in the other's way either.
        work.group.hold()?;
    }
    for (cpu_s, work) in cpu_s.iter_mut().zip(&works) {
        *cpu_s += work.group.cpu_s()?;
        work.group.let_go()?;
    }
    let [first, second] = took.map(|took| took.as_secs_f64());
    let [cpu_first, cpu_second] = cpu_s;
    Ok([Took { wall_s: first, cpu_s: cpu_first }, Took { wall_s: second, cpu_s: cpu_second }])
}

/// Whether the process has ended, whoever waits for it.
pub fn has_ended(pid: u32) -> bool {
    let stat =
        std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_none_or(|state| matches!(state, 'Z' | 'X'))
}
