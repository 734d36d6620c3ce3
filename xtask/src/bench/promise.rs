//! Measures what recording costs a user: CPU time of a program and longpole together, above that of the program alone.
//! The cost is compared with the one that longpole reports, and with its goal.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use longpole_tests::zoo::{ENTRIES, Entry, Keep, Mode, missing, prepare};
use longpole_tests::{Background, Group, has_ended, shell};

use super::Scratch;
use crate::command;
use crate::sample::Sample;
use crate::workspace::Workspace;

/// Number of pairs of runs, unless `LONGPOLE_BENCH_RUNS` says otherwise.
const RUNS: usize = 4;
/// A run takes less, even on a loaded machine.
const LIMIT: Duration = Duration::from_secs(120);
/// Time between the start of a program and attaching to it.
const WARM: Duration = Duration::from_millis(500);
/// longpole's default goal, percent of the program's CPU time.
const BUDGET: f64 = 2.0;
/// The cost that longpole reports is right if it differs from the measured cost by at most this share of it, or by this
/// number of percentage points.
const NEAR: (f64, f64) = (1.0 / 3.0, 0.5);

/// Programs of the zoo, by name.
const FROM_THE_ZOO: [&str; 10] = [
    "x264",
    "python-threads",
    "redis",
    "sqlite3",
    "pigz",
    "node-apart",
    "java-lock",
    "go-mutex",
    "hot-lock",
    "make",
];

/// Further programs, which call functions or start processes as often as they can.
const OWN: [Entry; 2] = [
    Entry::built("million-calls", "C", "zoo/calls.c", "PROGRAM N", 2_000),
    Entry {
        record: &["--children"],
        ..Entry::installed("shell-loop", &[("sh", "dash")], "sh WORK/loop.sh N", 2_500)
    },
];
/// Programs that start processes as fast as they can: no goal can hold for them.
const STORMS: [&str; 2] = ["make", "shell-loop"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Launched,
    Attached,
    Top,
}

const WAYS: [Way; 3] = [Way::Launched, Way::Attached, Way::Top];

/// Costs of a program that is recorded in one way, percent.
#[derive(Default)]
struct Cost {
    measured: Sample,
    said: Sample,
    /// How much longer the program took.
    elapsed: Sample,
}

impl Cost {
    fn is_near(&self) -> bool {
        let (measured, said) = (self.measured.median(), self.said.median());
        (said - measured).abs() <= (measured.abs() * NEAR.0).max(NEAR.1)
    }
}

/// Runs twelve programs in each way.
///
/// # Errors
/// A program that is installed does not run to its end.
pub fn measure(workspace: &Workspace, longpole: &Path, only: &[String]) -> Result<String> {
    let scratch = Scratch::new(workspace, "promise")?;
    let folders = ["alone", "recorded"].map(|name| scratch.0.join(name));
    let keep = Keep::new(longpole, &scratch.0, 1, false)?;
    for folder in &folders {
        std::fs::create_dir_all(folder)?;
        prepare(folder)?;
        std::fs::write(
            folder.join("loop.sh"),
            "i=0; while [ $i -lt $1 ]; do /bin/true; i=$((i + 1)); done\n",
        )?;
    }
    let runs = std::env::var("LONGPOLE_BENCH_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(RUNS);
    let (mut rows, mut absent) = (Vec::new(), Vec::new());
    let of_zoo = FROM_THE_ZOO.iter().filter_map(|name| ENTRIES.iter().find(|entry| entry.name == *name));
    for entry in of_zoo.chain(&OWN) {
        if !only.is_empty() && !only.iter().any(|name| entry.name.starts_with(name.as_str())) {
            continue;
        }
        if let Some(why) = missing(entry) {
            absent.push(format!("{} ({why})", entry.name));
            continue;
        }
        let program = keep.build(entry).map_err(|why| anyhow::anyhow!("{}: {why}", entry.name))?;
        let mut costs = WAYS.map(|_| Cost::default());
        for run in 0..runs {
            let mut cpus = halves();
            if run % 2 == 1 {
                cpus.reverse();
            }
            for (way, cost) in WAYS.into_iter().zip(&mut costs) {
                let cpus = cpus.clone();
                let pair = Pair { entry, program: &program, folders: &folders, cpus, longpole };
                let seen = pair.run(way).with_context(|| entry.name)?;
                cost.measured.push(seen.measured);
                cost.said.push(seen.said);
                cost.elapsed.push(seen.elapsed);
            }
        }
        eprintln!("xtask: {} {}", entry.name, told_row(&costs));
        rows.push((entry.name, costs));
    }
    text(&rows, &absent, runs)
}

fn told_row(costs: &[Cost]) -> String {
    let cell = |cost: &Cost| format!("{} | {} | {}", cost.measured, cost.said, cost.elapsed);
    let cells: Vec<String> = costs.iter().map(cell).collect();
    cells.join(" | ")
}

fn text(rows: &[(&str, [Cost; 3])], absent: &[String], runs: usize) -> Result<String> {
    let calm = || rows.iter().filter(|(name, _)| !STORMS.contains(name)).flat_map(|(_, costs)| costs);
    let all = || rows.iter().flat_map(|(_, costs)| costs);
    let mut text = format!(
        "## What recording costs, and what longpole says of it\n\nPercent of the CPU time of the program alone, or of one CPU if that is more, that it and longpole \
         together take more, what longpole says, and by how many percent the program takes longer: launched by\n`longpole record`, attached to by `record -p`, and watched by \
         `top -p`, {runs} pairs of runs of some ten seconds. The two of a pair\nrun at the same time, each on its half of the CPUs, and \
         change places. It counts from when recording begins (`top`: from its first\nscreen on) to the end of the program. The budget is\n{BUDGET} %; make and the shell's loop \
         start processes as fast as they can.\n\n\
         Within the budget: {} of {} without those two. What longpole says is within a third of what is measured, or half a point: {} of {}.\n\n\
         | program | launched | said | longer | attached | said | longer | top | said | longer |\n|---|---|---|---|---|---|---|---|---|---|\n",
        calm().filter(|cost| cost.measured.median() <= BUDGET).count(),
        calm().count(),
        all().filter(|cost| cost.is_near()).count(),
        all().count(),
    );
    for (name, costs) in rows {
        writeln!(text, "| {name} | {} |", told_row(costs))?;
    }
    if !absent.is_empty() {
        write!(text, "\nNot measured: {}.", absent.join(", "))?;
    }
    Ok(text)
}

/// A program alone and recorded, at the same time, each on its half of the CPUs. If the two took turns on the same
/// CPUs, the ticks of longpole's clock there would also be a cost of the program alone.
struct Pair<'a> {
    entry: &'a Entry,
    /// The words that start the program that was built from the source.
    program: &'a str,
    /// Folders of the two.
    folders: &'a [PathBuf; 2],
    /// CPU lists of the two.
    cpus: [String; 2],
    longpole: &'a Path,
}

/// Results of a pair of runs, percent.
struct Seen {
    measured: f64,
    said: f64,
    elapsed: f64,
}

impl Pair<'_> {
    fn run(&self, way: Way) -> Result<Seen> {
        let groups = ["alone", "recorded"].map(|name| Group::new(&format!("promise-{name}")));
        let ([alone, recorded], recorder) = (groups, Group::new("promise-longpole")?);
        let (alone, recorded) = (alone?, recorded?);
        let mut programs = vec![self.start(&alone, 0)?];
        if way != Way::Launched {
            programs.push(self.start(&recorded, 1)?);
        }
        let mut clients = Vec::new();
        for folder in self.folders {
            if let Some(script) = self.entry.script(Mode::Attached, true, folder) {
                clients.push(Background::start(&mut shell(&script))?);
            }
        }
        for background in programs.iter_mut().chain(&mut clients) {
            background.close_stdin();
        }
        let started = Instant::now();
        let (longpole, pid, before_s) = match programs.get(1) {
            None => self.launch(&recorder)?,
            Some(program) => {
                std::thread::sleep(WARM);
                self.attach(&recorder, way, program.pid())?
            }
        };
        // A launched program starts running once longpole has reported that.
        let begin = if way == Way::Launched { Instant::now() } else { started };
        let (alone_pid, mut alone_took) = (programs[0].pid(), None);
        let mut took = None;
        let mut recorder_s = 0.0;
        while took.is_none() || alone_took.is_none() {
            if begin.elapsed() > LIMIT {
                bail!("does not come to an end");
            }
            if alone_took.is_none() && has_ended(alone_pid) {
                alone_took = Some(started.elapsed());
            }
            if took.is_none() && has_ended(pid) {
                took = Some(begin.elapsed());
                // longpole's work from here on delays no thread.
                recorder_s = recorder.cpu_s()? - before_s;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let seconds = |took: Option<Duration>| took.unwrap_or_default().as_secs_f64();
        let (took_s, alone_s) = (seconds(took), seconds(alone_took));
        for background in programs.into_iter().chain(clients) {
            command::well(background.wait(LIMIT)?, self.entry.name)?;
        }
        let ended = command::well(longpole.wait(LIMIT)?, "longpole")?;
        let screens = std::fs::read_to_string(self.screens()).unwrap_or_default();
        let said = told_cost(if way == Way::Top { &screens } else { &ended.stderr });
        let alone_cpu_s = alone.cpu_s()?;
        let more = (recorded.cpu_s()? + recorder_s - alone_cpu_s) / alone_cpu_s.max(alone_s);
        Ok(Seen {
            measured: 100.0 * more,
            said: said.context("longpole does not say what it cost")?,
            elapsed: 100.0 * (took_s / alone_s - 1.0),
        })
    }

    fn words(&self, side: usize) -> (String, String) {
        self.entry.words(Mode::Attached, true, self.program, &self.folders[side])
    }

    fn start(&self, group: &Group, side: usize) -> Result<Background> {
        let (variables, words) = self.words(side);
        let line = format!("env {variables} taskset -c {} {words} >/dev/null", self.cpus[side]);
        Ok(Background::start(&mut group.shell(&line))?)
    }

    /// Starts longpole. Returns it, the pid of the program that it launched, and the CPU time used until then.
    fn launch(&self, group: &Group) -> Result<(Background, u32, f64)> {
        let (variables, words) = self.words(1);
        let line = format!("env {variables} {} -- {words} >/dev/null", self.record());
        let mut longpole = Background::start(&mut group.shell(&line))?;
        longpole.close_stdin();
        let said = longpole.wait_for_stderr("recording ", LIMIT)?;
        let before_s = group.cpu_s()?;
        let pid = said.split("(pid ").nth(1).and_then(|rest| rest.split(')').next()?.parse().ok());
        Ok((longpole, pid.with_context(|| format!("no pid in: {said}"))?, before_s))
    }

    fn attach(&self, group: &Group, way: Way, pid: u32) -> Result<(Background, u32, f64)> {
        let line = match way {
            // The log shows when recording begins, which is some time before the message.
            Way::Launched | Way::Attached => {
                format!("env LONGPOLE_LOG=capture=debug {} -p {pid}", self.record())
            }
            Way::Top => format!(
                "taskset -c {} {} top --batch {} -p {pid} >{}",
                self.cpus[1],
                self.longpole.display(),
                self.entry.record.join(" "),
                self.screens().display()
            ),
        };
        let mut longpole = Background::start(&mut group.shell(&line))?;
        longpole.close_stdin();
        if way == Way::Attached {
            longpole.wait_for_stderr("kernel's events: ", LIMIT)?;
        } else {
            let begin = Instant::now();
            while std::fs::metadata(self.screens()).map_or(0, |file| file.len()) == 0 {
                if begin.elapsed() > LIMIT {
                    bail!("no screen");
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        let before_s = group.cpu_s()?;
        Ok((longpole, pid, before_s))
    }

    fn record(&self) -> String {
        let file = self.folders[1].join("it.lp");
        let (longpole, options) = (self.longpole.display(), self.entry.record.join(" "));
        format!("taskset -c {} {longpole} record --force -o {} {options}", self.cpus[1], file.display())
    }

    fn screens(&self) -> PathBuf {
        self.folders[1].join("screens")
    }
}

/// CPU lists of the first and the second half of the CPUs; the same list twice if there is one CPU.
fn halves() -> [String; 2] {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let list = |from: usize, to: usize| (from..to).map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(",");
    let half = (cpus / 2).max(1);
    [list(0, half), list(cpus - half, cpus)]
}

/// The last cost in longpole's output, percent.
pub(super) fn told_cost(text: &str) -> Option<f64> {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let cost = |line: &str| {
        let words = words(line);
        let at = words.iter().position(|word| word == "cost")?;
        let percent = words.get(at + 2)?;
        words.get(at + 1)?.parse().ok().filter(|_| percent.starts_with('%'))
    };
    text.lines().filter_map(cost).next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_cost_in_the_output_counts() {
        assert_eq!(
            told_cost("a  cost 1.5 % (0.2 in it)\n\ncost   2.25 %: of\nprobes would cost 9 times"),
            Some(2.25)
        );
        assert_eq!(told_cost("costs nothing"), None);
    }

    #[test]
    fn a_told_cost_is_near_within_a_third_or_half_a_point() {
        let cost = |measured, said| {
            let mut cost = Cost::default();
            cost.measured.push(measured);
            cost.said.push(said);
            cost.is_near()
        };
        assert_eq!(
            [cost(3.0, 2.0), cost(3.0, 1.9), cost(0.1, 0.6), cost(-0.1, 0.5)],
            [true, false, true, false]
        );
    }
}
