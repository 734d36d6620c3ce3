//! Runs a job in a virtual machine and collects the outcome of each test.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::guest::{Job, Programs, Report, TEST_LIMIT_S, script};
use super::initramfs::Initramfs;
use super::machine::{Accelerator, Boot, Machine};
use super::modules;
use super::packages::Kernel;
use crate::command;

/// The source of the first process of each machine.
const INIT: &str = include_str!("init.c");
/// Time that is added to a test's own limit. A machine that reports nothing for longer hangs.
const SPARE: Duration = Duration::from_secs(60);

/// The result of a test in a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The test passed after this number of seconds.
    Passed(u64),
    /// The test failed. The lines are the last ones of its output.
    Failed(Vec<String>),
    /// The test cannot run in that machine. The text is the reason that the test gives.
    NotPossible(String),
}

/// The results of the tests in one machine.
pub struct Ran {
    /// Release of the machine's kernel, as the kernel reports it.
    pub release: String,
    /// The results in the order of the tests. If a test hung, the results after it are missing.
    pub outcomes: Vec<(String, Outcome)>,
}

/// Runs jobs in virtual machines, each in a machine of its own.
pub struct Runner<'a> {
    /// Programs on the host.
    pub programs: Programs<'a>,
    /// Whether the machines may read the kernel's type information.
    pub has_btf: bool,
    /// Folder for files of the machines.
    pub folder: PathBuf,
    /// The accelerator that works on this host; `None`: not known yet.
    pub accelerator: Option<Accelerator>,
}

impl Runner<'_> {
    /// Runs a job with a kernel.
    ///
    /// # Errors
    /// There is no qemu, or the machine does not start.
    pub fn run(&mut self, kernel: &Kernel, job: &Job<'_>) -> Result<Ran> {
        fs::create_dir_all(&self.folder)?;
        let initramfs = self.folder.join("initramfs");
        fs::write(&initramfs, self.archive(kernel, job)?)?;
        let boot = Boot { image: &kernel.image, initramfs: &initramfs, folder: &self.folder };
        let choice = match self.accelerator {
            Some(known) => vec![known],
            None if Path::new("/dev/kvm").exists() => vec![Accelerator::Kvm, Accelerator::Tcg],
            None => vec![Accelerator::Tcg],
        };
        for accelerator in choice {
            let mut machine = Machine::start(&boot, accelerator)?;
            let Some((release, rest)) = await_script(&mut machine, accelerator.boot_limit())? else {
                eprintln!("{} does not start with {}", kernel.release, accelerator.name());
                if accelerator == Accelerator::Tcg {
                    bail!("the machine does not start:\n{}", machine.last_messages());
                }
                continue;
            };
            self.accelerator = Some(accelerator);
            println!("{release} runs with {}", accelerator.name());
            let outcomes = follow(&mut machine, rest, matches!(job, Job::Command(_)))?;
            return Ok(Ran { release, outcomes });
        }
        bail!("no virtual machine starts here")
    }

    fn archive(&self, kernel: &Kernel, job: &Job<'_>) -> Result<Vec<u8>> {
        let (source, program) = (self.folder.join("init.c"), self.folder.join("init"));
        fs::write(&source, INIT)?;
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-static", "-o"]).arg(&program).arg(&source);
        command::must(&mut compiler, "compiling the first process (a static C library is needed)")?;
        let mut archive = Initramfs::new();
        archive.folder("host");
        archive.folder("modules");
        archive.file("init", &fs::read(&program).context("init")?);
        archive.file("script", script(job, &self.programs, self.has_btf).as_bytes());
        for (number, module) in modules::needed(kernel)?.iter().enumerate() {
            archive.file(&format!("modules/{number:02}"), module);
        }
        Ok(archive.finish())
    }
}

/// Waits until the script runs. Returns the kernel's release, and the lines that arrived with it. `None` if the script
/// did not run in time.
fn await_script(machine: &mut Machine, limit: Duration) -> Result<Option<(String, Vec<String>)>> {
    let end = Instant::now() + limit;
    while Instant::now() < end {
        let Some(lines) = machine.lines()? else { return Ok(None) };
        let mut lines = lines.into_iter();
        while let Some(line) = lines.next() {
            if let Some(Report::Ready(release)) = Report::parse(&line) {
                return Ok(Some((release.to_owned(), lines.collect())));
            }
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(None)
}

/// Reads the report until the machine ends or hangs.
fn follow(machine: &mut Machine, first: Vec<String>, shows_output: bool) -> Result<Vec<(String, Outcome)>> {
    let mut outcomes = Vec::new();
    let (mut name, mut output) = (None, Vec::new());
    let mut lines = VecDeque::from(first);
    let limit = Duration::from_secs(TEST_LIMIT_S) + SPARE;
    let mut heard = Instant::now();
    loop {
        while let Some(line) = lines.pop_front() {
            heard = Instant::now();
            match Report::parse(&line) {
                Some(Report::Begin(test)) => (name, output) = (Some(test.to_owned()), Vec::new()),
                Some(Report::Output(text)) if shows_output => println!("{text}"),
                Some(Report::Output(text)) => output.push(text.to_owned()),
                Some(Report::End { code, seconds }) => {
                    let test = name.take().unwrap_or_default();
                    let outcome = judge(code, seconds, std::mem::take(&mut output));
                    println!("  {test}: {}", told(&outcome));
                    outcomes.push((test, outcome));
                }
                Some(Report::Ready(_)) | None => {}
            }
        }
        match machine.lines()? {
            Some(new) => lines.extend(new),
            None => break,
        }
        if heard.elapsed() > limit {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    if let Some(test) = name {
        let messages = machine.last_messages();
        let lines = messages.lines().map(str::to_owned);
        outcomes.push((
            test,
            Outcome::Failed(["the machine hangs or has ended".into()].into_iter().chain(lines).collect()),
        ));
    }
    Ok(outcomes)
}

fn judge(code: i32, seconds: u64, output: Vec<String>) -> Outcome {
    let reason = |line: &String| line.split_once("SKIP ").map(|(_, reason)| reason.to_owned());
    match (code, output.iter().find_map(reason)) {
        (0, Some(reason)) => Outcome::NotPossible(reason),
        (0, None) => Outcome::Passed(seconds),
        _ => Outcome::Failed(output),
    }
}

/// Describes an outcome in a few words. For a failure, also has the end of the output.
fn told(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Passed(seconds) => format!("passed in {seconds} s"),
        Outcome::NotPossible(reason) => format!("not possible: {reason}"),
        Outcome::Failed(output) => format!("FAILED\n    {}", output.join("\n    ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_says_why_it_cannot_run_is_neither_passed_nor_failed() {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(judge(0, 3, lines("ok")), Outcome::Passed(3));
        assert_eq!(judge(0, 3, lines("x\nSKIP a::b: no gdb")), Outcome::NotPossible("a::b: no gdb".into()));
        assert_eq!(
            judge(101, 3, lines("SKIP a: b\npanicked")),
            Outcome::Failed(lines("SKIP a: b\npanicked"))
        );
    }
}
