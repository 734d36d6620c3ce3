//! Runs a program of the zoo in one of three ways: alone, launched by longpole, or with longpole attached.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::answers::Answers;
use super::entry::{Entry, Mode};
use crate::group::Group;
use crate::process::{Background, has_ended, shell};
use crate::text_unchanged::changed_code;
use crate::workload::fnv;

/// A run that takes longer than this has failed.
const LIMIT: Duration = Duration::from_secs(90);
/// Time between the start of a program and attaching to it.
const WARM: Duration = Duration::from_millis(500);
/// Lengths of an attached recording. The second one is for runs without measured times.
const WINDOW: Duration = Duration::from_millis(4500);
const SHORT_WINDOW: Duration = Duration::from_millis(2000);
/// Time from the start of a launched program until its code is compared with its files.
const LOOK: Duration = Duration::from_millis(400);

/// The parts of a program's ending that are the same in each run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The program's exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// A hash of the program's standard output, if that is the same in each run.
    pub output: Option<u64>,
}

/// Measurements of a program recorded in one way, and longpole's answers about it.
#[derive(Clone, Debug)]
pub struct Figures {
    /// How the program ended without longpole.
    pub alone: Ending,
    /// How the program ended in each recorded run.
    pub recorded: Vec<Ending>,
    /// The largest number of bytes of the program's code that differed from its files during a recording. `None` if the
    /// program ended before the comparison.
    pub changed: Option<usize>,
    /// Measured speed-up from one CPU to two.
    pub speedup: Option<f64>,
    /// longpole's answers about each recording.
    pub answers: Vec<Answers>,
    /// The answer of `diff` about the first two recordings: growth of the predicted time, growth that may be chance,
    /// and whether diff calls the growth clear.
    pub change: Option<(f64, f64, bool)>,
    /// Measured cost, as a part of the target's CPU time or of one CPU, whichever is more. Launched: the CPU time of
    /// longpole and the program, from the program's release at the gate to its end, minus the CPU time of the program
    /// alone. Attached: the CPU time of longpole while it records, compared with that of the program in that time.
    pub cost: Option<f64>,
}

/// The result of one run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub ending: Ending,
    /// Number of bytes of the program's code that differed from its files; `None` if nothing was compared.
    pub changed: Option<usize>,
    pub wall_s: f64,
    /// CPU time in seconds, if this machine has control groups.
    pub cpu_s: Option<f64>,
}

/// The result of a run to which longpole attached.
pub(super) struct Attached {
    pub ending: Ending,
    /// Number of bytes of the program's code that differed from its files; `None` if nothing was compared.
    pub changed: Option<usize>,
    /// Length that the recording should have, in seconds; `None` if the program ended before.
    pub window_s: Option<f64>,
    pub cost: Option<f64>,
}

/// The settings of a run.
pub(super) struct Stage<'a> {
    pub entry: &'a Entry,
    pub mode: Mode,
    pub longpole: &'a Path,
    /// The words that start the built program.
    pub program: &'a str,
    pub work: &'a Path,
    /// Whether recordings use breakpoints.
    pub exact: bool,
    /// Whether times are measured. If not, an attached program and its recording are shorter.
    pub timed: bool,
}

impl Stage<'_> {
    /// Runs the program on these CPUs without longpole.
    pub fn alone(&self, cpus: &str) -> Result<Run, String> {
        let place = Place::new("alone");
        let (mut program, start) = self.start(&place, cpus)?;
        let client = self.client()?;
        program.close_stdin();
        let ended = program.wait(LIMIT).map_err(|error| error.to_string())?;
        let wall_s = start.elapsed().as_secs_f64();
        finish(client)?;
        Ok(Run { ending: self.ending(ended.code), changed: None, wall_s, cpu_s: place.cpu_s() })
    }

    /// longpole launches the program. The CPU time is that of both, from the program's release at the gate to its end.
    pub fn launched(&self, cpus: &str, file: &Path) -> Result<Run, String> {
        let place = Place::new("launched");
        let (variables, words) = self.words();
        let options = self.options();
        let line = format!(
            "env {variables} \"$LONGPOLE\" record --force -o \"$FILE\" --cpu-list {cpus} {options} -- {words} >\"$OUT\""
        );
        let mut record = place.shell(&line);
        record.env("LONGPOLE", self.longpole).env("FILE", file).env("OUT", self.output());
        let mut record = started(&mut record)?;
        let client = self.client()?;
        record.close_stdin();
        let said = record.wait_for_stderr("recording ", LIMIT).map_err(|error| error.to_string())?;
        let (before, start) = (place.cpu_s(), Instant::now());
        let pid = said.split("(pid ").nth(1).and_then(|rest| rest.split(')').next()?.parse().ok());
        let pid = pid.ok_or_else(|| format!("no pid in: {said}"))?;
        let mut changed = None;
        while !has_ended(pid) && start.elapsed() < LIMIT {
            if changed.is_none() && start.elapsed() >= LOOK {
                changed = changed_code(pid).ok().map(|changed| changed.len());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let (after, wall_s) = (place.cpu_s(), start.elapsed().as_secs_f64());
        let ended = record.wait(LIMIT).map_err(|error| error.to_string())?;
        finish(client)?;
        if !file.exists() {
            return Err(format!("no recording: {}", ended.stderr.lines().last().unwrap_or_default()));
        }
        let cpu_s = before.zip(after).map(|(before, after)| after - before);
        Ok(Run { ending: self.ending(ended.code), changed, wall_s, cpu_s })
    }

    /// Runs the program, and attaches longpole to it.
    pub fn attached(&self, cpus: &str, file: &Path) -> Result<Attached, String> {
        let window = if self.timed { WINDOW } else { SHORT_WINDOW };
        let (place, beside) = (Place::new("attached"), Place::new("recorder"));
        let (mut program, _) = self.start(&place, cpus)?;
        let client = self.client()?;
        program.close_stdin();
        std::thread::sleep(WARM);
        let options = self.options();
        let line = format!(
            "\"$LONGPOLE\" record --force -o \"$FILE\" -d {} {options} -p {}",
            window.as_secs_f64(),
            program.pid()
        );
        let mut record = beside.shell(&line);
        let mut record = started(record.env("LONGPOLE", self.longpole).env("FILE", file))?;
        record.close_stdin();
        record.wait_for_stderr("recording ", LIMIT).map_err(|error| error.to_string())?;
        let before = (beside.cpu_s(), place.cpu_s());
        // Recording began before the message, and longpole's work after the end is no cost of recording. So only a part
        // of the time is measured.
        let measured = window.mul_f64(0.85);
        std::thread::sleep(measured);
        let after = (beside.cpu_s(), place.cpu_s());
        let changed = changed_code(program.pid()).ok().map(|changed| changed.len());
        let ended = record.wait(LIMIT).map_err(|error| error.to_string())?;
        let lives = program.is_running().map_err(|error| error.to_string())?;
        let ending = program.wait(LIMIT).map_err(|error| error.to_string())?.code;
        finish(client)?;
        if ended.code != Some(0) {
            let last = ended.stderr.lines().last().unwrap_or_default();
            return Err(format!("longpole record ends with {:?}: {last}", ended.code.or(ended.signal)));
        }
        let grown = |before: Option<f64>, after: Option<f64>| before.zip(after).map(|(from, to)| to - from);
        let cost = grown(before.0, after.0).zip(grown(before.1, after.1));
        let cost = cost.map(|(ours, its)| ours / its.max(measured.as_secs_f64()));
        Ok(Attached {
            ending: self.ending(ending),
            changed,
            window_s: lives.then_some(window.as_secs_f64()),
            cost,
        })
    }

    fn start(&self, place: &Place, cpus: &str) -> Result<(Background, Instant), String> {
        let (variables, words) = self.words();
        let mut command = place.shell(&format!("env {variables} taskset -c {cpus} {words} >\"$OUT\""));
        let start = Instant::now();
        Ok((started(command.env("OUT", self.output()))?, start))
    }

    /// The options of `record`.
    fn options(&self) -> String {
        let exact = self.exact.then_some("--exact");
        exact.iter().chain(self.entry.record).copied().collect::<Vec<_>>().join(" ")
    }

    fn words(&self) -> (String, String) {
        self.entry.words(self.mode, self.timed, self.program, self.work)
    }

    fn client(&self) -> Result<Option<Background>, String> {
        let script = self.entry.script(self.mode, self.timed, self.work);
        script.map(|script| started(&mut shell(&script))).transpose()
    }

    fn output(&self) -> PathBuf {
        self.work.join("out")
    }

    fn ending(&self, code: Option<i32>) -> Ending {
        let output = std::fs::read(self.output()).ok().filter(|_| self.entry.repeatable);
        Ending { code, output: output.map(fnv) }
    }
}

/// Where a process runs: in a control group, if the machine has control groups.
struct Place(Option<Group>);

impl Place {
    fn new(name: &str) -> Place {
        Place(Group::new(&format!("zoo-{name}")).ok())
    }

    fn shell(&self, line: &str) -> Command {
        match &self.0 {
            Some(group) => group.shell(line),
            None => {
                let mut command = shell(&format!("exec {line}"));
                command.env("LC_ALL", "C");
                command
            }
        }
    }

    fn cpu_s(&self) -> Option<f64> {
        self.0.as_ref()?.cpu_s().ok()
    }
}

fn started(command: &mut Command) -> Result<Background, String> {
    Background::start(command).map_err(|error: io::Error| format!("{command:?}: {error}"))
}

fn finish(client: Option<Background>) -> Result<(), String> {
    let Some(mut client) = client else { return Ok(()) };
    client.close_stdin();
    let ended = client.wait(LIMIT).map_err(|error| error.to_string())?;
    if ended.code == Some(0) { Ok(()) } else { Err(format!("its client failed: {}", ended.stderr.trim())) }
}
