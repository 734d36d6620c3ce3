//! Time to attach to and detach from a program of 5,000 functions. The program's memory shows when breakpoints come and go.

use std::fmt::Write;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use longpole_tests::{Background, workload};

use super::Scratch;
use super::sample::Sample;
use crate::command;
use crate::workspace::Workspace;

const RUNS: usize = 7;
const FUNCTIONS: usize = 5_000;
const LIMIT: Duration = Duration::from_secs(120);
/// The instruction that a uprobe writes over the first byte of a function (x86-64: int3).
const BREAKPOINT: u8 = 0xcc;

/// Attaches and detaches several times.
///
/// # Errors
/// The program or longpole cannot be run, or not every function gets its probe.
pub fn measure(workspace: &Workspace, longpole: &Path) -> Result<String> {
    let program = workload::build_many_functions(FUNCTIONS)?;
    let scratch = Scratch::new(workspace, "attach")?;
    let (mut attach, mut detach, mut end) = (Sample::default(), Sample::default(), Sample::default());
    for _ in 0..RUNS {
        let mut target =
            Background::start(&mut Command::new(&program)).context("cannot start the program")?;
        target.line(LIMIT)?;
        let text = Text::of(&target.line(LIMIT)?, target.pid())?;
        if text.probed()? != 0 {
            bail!("breakpoints before anything was attached");
        }
        let start = Instant::now();
        let mut record = Command::new(longpole);
        record.args(["record", "--force", "--exact", "--functions", "*", "--max-functions", "6000"]);
        record.args(["-p", &target.pid().to_string(), "-o"]);
        let mut record = Background::start(record.arg(scratch.0.join("attach.lp"))).context("longpole")?;
        text.wait_for(FUNCTIONS, &mut record)?;
        attach.push(start.elapsed().as_secs_f64() * 1e3);
        // During the sleep the program calls some of the functions now and then.
        std::thread::sleep(Duration::from_millis(500));
        let start = Instant::now();
        record.signal("INT")?;
        text.wait_for(0, &mut record)?;
        detach.push(start.elapsed().as_secs_f64() * 1e3);
        let ended = record.wait(LIMIT)?;
        end.push(start.elapsed().as_secs_f64() * 1e3);
        command::well(ended, "longpole record")?;
        if !target.is_running()? {
            bail!("the program did not survive");
        }
    }
    let mut text = String::from("## Attaching to a program of 5,000 functions\n\n");
    write!(
        text,
        "Entry and exit probes on all of them, {RUNS} times, seen from the program's own memory. The targets are 1 s and \
         0.5 s.\n\n| from | to | ms |\n|---|---|---|\n\
         | start of `longpole record -p PID` | last breakpoint in place | {attach} |\n\
         | ^C | last breakpoint gone | {detach} |\n\
         | ^C | longpole has ended, recording complete | {end} |"
    )?;
    Ok(text)
}

/// The functions of a program in its memory.
struct Text {
    memory: File,
    first: u64,
    length: usize,
    offsets: Vec<usize>,
}

impl Text {
    /// Reads the line of addresses that the program prints.
    fn of(line: &str, pid: u32) -> Result<Self> {
        let addresses: Result<Vec<u64>, _> =
            line.split_whitespace().map(|text| u64::from_str_radix(text, 16)).collect();
        let addresses = addresses.context("the program prints no addresses")?;
        let first = addresses.iter().copied().min().context("no addresses")?;
        let offsets: Result<Vec<usize>, _> =
            addresses.iter().map(|address| usize::try_from(address - first)).collect();
        let offsets = offsets.context("addresses far apart")?;
        let length = offsets.iter().max().map_or(1, |last| last + 1);
        let memory = File::open(format!("/proc/{pid}/mem")).context("cannot read the program's memory")?;
        Ok(Self { memory, first, length, offsets })
    }

    /// Number of functions that start with a breakpoint.
    fn probed(&self) -> Result<usize> {
        let mut bytes = vec![0; self.length];
        self.memory.read_exact_at(&mut bytes, self.first).context("cannot read the program's memory")?;
        Ok(self.offsets.iter().filter(|offset| bytes.get(**offset) == Some(&BREAKPOINT)).count())
    }

    fn wait_for(&self, count: usize, record: &mut Background) -> Result<()> {
        let end = Instant::now() + LIMIT;
        loop {
            let probed = self.probed()?;
            if probed == count {
                return Ok(());
            }
            if Instant::now() > end || (count > 0 && !record.is_running()?) {
                bail!("{probed} of {FUNCTIONS} functions have a breakpoint instead of {count}");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
