//! Builds and runs the zoo's programs in one folder, and runs longpole's commands on the recordings.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::answers::{Answers, ask, compare, length_s};
use super::entry::{Entry, Mode, Source};
use super::judge::middle;
use super::runs::{Figures, Run, Stage};
use crate::process;
use crate::workload::{self, Problem};

const LIMIT: Duration = Duration::from_secs(180);

/// A folder with input files for the programs, and with their recordings.
pub struct Keep {
    longpole: PathBuf,
    folder: PathBuf,
    cpus: u32,
    /// Number of runs of each program.
    runs: usize,
    /// Whether the length of runs is measured.
    timed: bool,
    /// Whether recordings use breakpoints.
    exact: bool,
}

impl Keep {
    /// Uses this folder, which is not removed. The recordings in it are `NAME-launched-1.lp` and so on. Programs from
    /// packages need the files that [`super::prepare`] writes to the folder.
    ///
    /// # Errors
    /// No file can be written in the folder. Nothing can be written there.
    pub fn new(longpole: &Path, folder: &Path, runs: usize, timed: bool) -> std::io::Result<Keep> {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from).min(2);
        std::fs::create_dir_all(folder.join("built"))?;
        let (longpole, folder) = (longpole.to_path_buf(), folder.to_path_buf());
        Ok(Keep { longpole, folder, cpus: cpus as u32, runs: runs.max(1), timed, exact: false })
    }

    /// Changes recordings to use breakpoints.
    #[must_use]
    pub fn exact(self) -> Keep {
        Keep { exact: true, ..self }
    }

    /// Builds the program, and returns the words that start it.
    ///
    /// # Errors
    /// The program cannot be built here.
    pub fn build(&self, entry: &Entry) -> Result<String, Problem> {
        let source = match entry.source {
            Source::Installed(..) => return Ok(String::new()),
            Source::Built(source) => source,
        };
        let file = workload::source(source);
        let (name, ending) = source.rsplit_once('.').unwrap_or((source, ""));
        let name = name.rsplit('/').next().unwrap_or(name);
        let place = self.folder.join("built").join(format!("{name}.{ending}"));
        match ending {
            "java" => {
                must(Command::new("javac").arg("-d").arg(&place).arg(&file))?;
                Ok(format!("java -XX:ActiveProcessorCount=2 -cp {} {name}", place.display()))
            }
            "js" => Ok(format!("node {}", file.display())),
            "py" => {
                // The interpreter itself, and not a script that chooses one of several interpreters.
                let which = "import sys; print(sys.executable)";
                let python = must(Command::new("python3").args(["-c", which]))?;
                Ok(format!("{} {}", python.trim(), file.display()))
            }
            _ => workload::build(source).map(|program| program.display().to_string()),
        }
    }

    /// Runs the program alone and launched by longpole, in turns, and runs longpole's commands on the recordings. If
    /// times are measured, the program also runs alone on one CPU.
    ///
    /// # Errors
    /// The program cannot be run, or a command of longpole fails.
    pub fn launched(&self, entry: &Entry, program: &str) -> Result<Figures, String> {
        let stage = self.stage(entry, program, Mode::Launched);
        let (mut one, mut all, mut recorded) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..self.runs {
            if self.timed && self.cpus > 1 {
                one.push(stage.alone("0")?);
            }
            if self.timed || round == 0 {
                all.push(stage.alone(self.cpu_list())?);
            }
            recorded.push(stage.launched(self.cpu_list(), &self.file(entry, Mode::Launched, round))?);
        }
        let wall = |runs: &[Run]| middle(runs.iter().map(|run| run.wall_s).collect());
        let cpu = |runs: &[Run]| Some(middle(runs.iter().map(|run| run.cpu_s).collect::<Option<Vec<_>>>()?));
        let real = vec![wall(&all); self.runs];
        let (answers, change) = self.ask(entry, Mode::Launched, &real)?;
        Ok(Figures {
            alone: all.first().map(|run| run.ending).ok_or("no run")?,
            recorded: recorded.iter().map(|run| run.ending).collect(),
            changed: recorded.iter().filter_map(|run| run.changed).max(),
            speedup: (!one.is_empty()).then(|| wall(&one) / wall(&all)),
            answers,
            change,
            cost: cpu(&recorded)
                .zip(cpu(&all))
                .map(|(recorded, alone)| (recorded - alone) / alone.max(wall(&all))),
        })
    }

    /// Attaches to the program for a part of its life, and runs longpole's commands on the recordings. `speedup` is the
    /// measured one from one CPU to two.
    ///
    /// # Errors
    /// Those of [`Keep::launched`].
    pub fn attached(&self, entry: &Entry, program: &str, speedup: Option<f64>) -> Result<Figures, String> {
        let stage = self.stage(entry, program, Mode::Attached);
        let alone = stage.alone(self.cpu_list())?.ending;
        let (mut recorded, mut real, mut costs) = (Vec::new(), Vec::new(), Vec::new());
        let mut changed = None;
        for round in 0..self.runs {
            let file = self.file(entry, Mode::Attached, round);
            let run = stage.attached(self.cpu_list(), &file)?;
            recorded.push(run.ending);
            changed = changed.max(run.changed);
            // If the program ended before the recording's time was over, only the recording shows how long it was
            // recorded.
            real.push(run.window_s.map_or_else(|| length_s(&self.longpole, &file), Ok)?);
            costs.extend(run.cost);
        }
        let (answers, change) = self.ask(entry, Mode::Attached, &real)?;
        let cost = (!costs.is_empty()).then(|| middle(costs));
        Ok(Figures { alone, recorded, changed, speedup, answers, change, cost })
    }

    #[expect(clippy::type_complexity, reason = "two fields of the figures")]
    fn ask(
        &self,
        entry: &Entry,
        mode: Mode,
        real_s: &[f64],
    ) -> Result<(Vec<Answers>, Option<(f64, f64, bool)>), String> {
        let file = |round| self.file(entry, mode, round);
        let mut answers = Vec::new();
        for (round, real_s) in real_s.iter().enumerate() {
            answers.push(ask(&self.longpole, &file(round), self.cpus, *real_s, round == 0)?);
        }
        let Some(first) = answers.first_mut().filter(|_| real_s.len() > 1) else {
            return Ok((answers, None));
        };
        let (growth, noise, clear, before_s) = compare(&self.longpole, [&file(0), &file(1)], self.cpus)?;
        first.others.push(("diff", before_s / first.time_s - 1.0));
        Ok((answers, Some((growth, noise, clear))))
    }

    fn stage<'a>(&'a self, entry: &'a Entry, program: &'a str, mode: Mode) -> Stage<'a> {
        let (longpole, work) = (&self.longpole, &self.folder);
        Stage { entry, mode, longpole, program, work, exact: self.exact, timed: self.timed }
    }

    fn cpu_list(&self) -> &'static str {
        if self.cpus > 1 { "0,1" } else { "0" }
    }

    fn file(&self, entry: &Entry, mode: Mode, round: usize) -> PathBuf {
        let mode = if mode == Mode::Launched { "launched" } else { "attached" };
        self.folder.join(format!("{}-{mode}-{}.lp", entry.name, round + 1))
    }
}

fn must(command: &mut Command) -> Result<String, Problem> {
    let ended = process::run(command, LIMIT)
        .map_err(|error| Problem::NoCompiler(format!("{}: {error}", command.get_program().display())))?;
    if ended.code == Some(0) { Ok(ended.stdout) } else { Err(Problem::Broken(ended.stderr)) }
}
