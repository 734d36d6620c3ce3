//! Cost of `report` and `info` for recordings of several sizes, and of `perf sched timehist` for the same programs.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use longpole_tests::workload;

use super::app_files::prepare;
use super::app_list::{APPS, App, Load};
use super::app_runs::{Recorded, recorded};
use super::apps::{is_here, leading_number};
use super::handover::Tracefs;
use super::{Scratch, Watched, example, watched};
use crate::command;
use crate::sample::{Sample, digits};
use crate::workspace::Workspace;

/// Runs of a command; fewer if together they take longer than `PATIENCE`.
const RUNS: usize = 3;
const PATIENCE: Duration = Duration::from_secs(3);
const LIMIT: Duration = Duration::from_secs(300);
/// Largest recording, in events, on which `report --whole` is run.
const MOST_WHOLE: f64 = 1e6;
/// perf runs with programs of at most this many longpole events: its files are a hundred times as large.
const MOST_PERF: f64 = 1e6;

/// The project's own programs, each with arguments for recordings of 0.05 to 10 million events.
const OWN: [(&str, &[&str]); 2] = [
    ("pingpong.c", &["8000", "80000", "300000", "2000000"]),
    ("two_mutexes.c", &["100000 100 300 1", "800000 100 300 1"]),
];
/// Names of the project's own programs, and programs of [`APPS`].
const OWN_NAMES: [&str; 2] = ["hand-over", "contended mutex"];
const REAL: [&str; 3] = ["redis", "nginx", "x264"];

/// With `--huge`: how often the middle of a hand-over recording is repeated.
const HUGE_TIMES: &str = "60";
const HUGE_BYTES: u64 = 4 << 30;

/// Commands on a recording: their names in the table, and their arguments.
const COMMANDS: [(&str, &[&str]); 3] =
    [("info", &["info"]), ("report", &["report"]), ("report --whole", &["report", "--whole"])];

/// A recording, and what each command costs on it.
struct Row {
    name: String,
    events: f64,
    bytes: f64,
    /// Costs of the commands, in the order of [`COMMANDS`].
    taken: Vec<Option<Taken>>,
}

/// Cost of one command on one recording.
struct Taken {
    seconds: Sample,
    peak_mb: f64,
}

/// The cost of perf for the same program.
struct Perf {
    name: String,
    events: f64,
    bytes: f64,
    taken: Taken,
}

/// Records all programs and analyses the recordings.
///
/// # Errors
/// longpole cannot record or analyse an own program.
pub fn measure(workspace: &Workspace, longpole: &Path, only: &[String], huge: bool) -> Result<String> {
    let scratch = Scratch::new(workspace, "analysis")?;
    let _tracefs = Tracefs::mounted();
    let bench = Bench { longpole, folder: &scratch.0 };
    let wanted = |name: &str| only.is_empty() || only.iter().any(|only| name.starts_with(only.as_str()));
    let (mut rows, mut perf, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for (name, (source, sizes)) in OWN_NAMES.into_iter().zip(OWN).filter(|(name, _)| wanted(name)) {
        let program = workload::build(source)?;
        for arguments in sizes {
            let line = format!("{} {arguments}", program.display());
            bench.both(name, &Load::Command("", &line), (&mut rows, &mut perf, &mut missing))?;
        }
    }
    let apps: Vec<&App> =
        REAL.iter().filter_map(|name| APPS.iter().find(|app| app.name == *name && wanted(name))).collect();
    if !apps.is_empty() {
        prepare(&scratch.0)?;
    }
    for app in apps {
        let away = app.needs.iter().find(|(program, _)| !is_here(program));
        let done = match away {
            Some((program, package)) => {
                Err(anyhow::anyhow!("{program} is missing: `apt-get install {package}`"))
            }
            None => bench.both(app.name, &app.load, (&mut rows, &mut perf, &mut missing)),
        };
        if let Err(error) = done {
            missing.push(format!("{} ({error:#})", app.name));
        }
    }
    ensure!(!rows.is_empty(), "nothing was measured: {}", missing.join(", "));
    let huge = if huge { bench.huge(workspace)? } else { String::new() };
    text(&rows, &perf, &missing, &huge)
}

struct Bench<'a> {
    longpole: &'a Path,
    folder: &'a Path,
}

/// Rows of longpole and perf, and reasons why some are missing.
type Results<'r> = (&'r mut Vec<Row>, &'r mut Vec<Perf>, &'r mut Vec<String>);

impl Bench<'_> {
    fn both(&self, name: &str, load: &Load<'_>, (rows, perf, missing): Results<'_>) -> Result<()> {
        let row = self.longpole(name, load)?;
        let small = row.events <= MOST_PERF;
        rows.push(row);
        // perf has one row for each program: the largest size with which it is run.
        perf.retain(|known| !small || known.name != name);
        if small {
            match self.perf(name, load) {
                Ok(taken) => perf.push(taken),
                Err(error) => missing.push(format!("perf of {name} ({error:#})")),
            }
        }
        Ok(())
    }

    fn longpole(&self, name: &str, load: &Load<'_>) -> Result<Row> {
        let file = self.folder.join("analysis.lp");
        let said = recorded(load, self.folder, "recording ", |what| {
            let mut record = Command::new(self.longpole);
            record.args(["record", "--force", "-o"]).arg(&file);
            match what {
                Recorded::Command(line) => record.args(["--", "sh", "-c", line]),
                Recorded::Server(pid) => record.args(["--children", "-p"]).arg(pid.to_string()),
            };
            record
        })?;
        let events = said.lines().find_map(|line| line.strip_prefix("events "));
        let events = events.map(|rest| leading_number(rest.trim())).context("no number of events")?;
        let row = self.row(name, &file, events)?;
        std::fs::remove_file(&file)?;
        Ok(row)
    }

    fn row(&self, name: &str, file: &Path, events: f64) -> Result<Row> {
        let bytes = std::fs::metadata(file)?.len() as f64;
        let mut taken = Vec::new();
        for (_, arguments) in COMMANDS {
            let wanted = !arguments.contains(&"--whole") || events <= MOST_WHOLE;
            let take = || on_one_core(self.longpole, |command| _ = command.args(arguments).arg(file));
            taken.push(wanted.then(take).transpose()?);
        }
        eprintln!("xtask: {name}, {events} events");
        Ok(Row { name: name.to_owned(), events, bytes, taken })
    }

    fn perf(&self, name: &str, load: &Load<'_>) -> Result<Perf> {
        let file = self.folder.join("perf.data");
        let said = recorded(load, self.folder, "", |what| {
            let mut record = Command::new("perf");
            record.args(["sched", "record", "-o"]).arg(&file);
            if let Recorded::Command(line) = what {
                record.args(["--", "sh", "-c", line]);
            }
            record
        })?;
        let events = samples(&said).with_context(|| format!("perf says no number of events: {said}"))?;
        let bytes = std::fs::metadata(&file)?.len() as f64;
        let taken = on_one_core(Path::new("perf"), |command| {
            _ = command.args(["sched", "timehist", "-i"]).arg(&file);
        })?;
        std::fs::remove_file(&file)?;
        Ok(Perf { name: name.to_owned(), events, bytes, taken })
    }

    /// A recording of a hundred million events: the middle of a smaller one, repeated.
    fn huge(&self, workspace: &Workspace) -> Result<String> {
        let (small, large) = (self.folder.join("small.lp"), self.folder.join("huge.lp"));
        let free = free_bytes(self.folder)?;
        ensure!(free > HUGE_BYTES, "a huge recording needs {} GB of free disk", HUGE_BYTES >> 30);
        let line = format!("{} 400000", workload::build("pingpong.c")?.display());
        let mut record = Command::new(self.longpole);
        record.args(["record", "--force", "-o"]).arg(&small).args(["--", "sh", "-c", &line]);
        command::good(&mut record, LIMIT)?;
        let repeat: PathBuf = example(workspace, "repeated_session", &["--package", "recording"])?;
        let said = command::good(Command::new(repeat).args([&small, &large]).arg(HUGE_TIMES), LIMIT)?.stdout;
        let events: f64 = said.trim().parse().with_context(|| format!("no number of events: {said}"))?;
        let row = self.row("generated", &large, events)?;
        let part = ["report", "--from", "30s", "--to", "31s"];
        let part = on_one_core(self.longpole, |command| _ = command.args(part).arg(&large))?;
        let mut text = format!(
            "\nA generated recording of {} million events, {} MB:\n\n| command | seconds | memory, MB |\n|---|---|---|\n",
            digits(events / 1e6),
            digits(row.bytes / 1e6)
        );
        let all = COMMANDS.iter().map(|(command, _)| *command).zip(&row.taken);
        let all = all.filter_map(|(command, taken)| Some((command, taken.as_ref()?)));
        for (command, taken) in all.chain([("report --from 30s --to 31s", &part)]) {
            writeln!(text, "| `{command}` | {} | {} |", taken.seconds, digits(taken.peak_mb))?;
        }
        Ok(text)
    }
}

/// Free bytes on this folder's file system.
fn free_bytes(folder: &Path) -> Result<u64> {
    let line = command::text(Command::new("df").args(["--output=avail", "-B1"]).arg(folder))?;
    line.lines().last().unwrap_or_default().trim().parse().context("df says no number")
}

/// Runs a command on one CPU; up to `RUNS` times if it is quick.
fn on_one_core(program: &Path, arguments: impl Fn(&mut Command)) -> Result<Taken> {
    let mut taken = Taken { seconds: Sample::default(), peak_mb: 0.0 };
    let began = Instant::now();
    while taken.seconds.len() < RUNS && (taken.seconds.len() == 0 || began.elapsed() < PATIENCE) {
        let mut command = Command::new("taskset");
        command.args(["-c", "0"]).arg(program);
        arguments(&mut command);
        let Watched { status, seconds, peak_kib } = watched(&mut command, LIMIT).context("taskset")?;
        ensure!(status.is_some_and(|status| status.success()), "{command:?}: {status:?}");
        taken.seconds.push(seconds);
        taken.peak_mb = taken.peak_mb.max(peak_kib as f64 * 1024.0 / 1e6);
    }
    Ok(taken)
}

/// The count in `[ perf record: Captured and wrote 1.2 MB perf.data (12345 samples) ]`.
fn samples(said: &str) -> Option<f64> {
    let (before, _) = said.split_once(" samples)")?;
    before.rsplit_once('(')?.1.parse().ok()
}

/// The power of the number of events by which the time grows from one recording to the next.
fn growth([before, now]: [(f64, f64); 2]) -> Option<f64> {
    let [events, seconds] = [now.0 / before.0, now.1 / before.1];
    (events > 1.5 && seconds > 0.0).then(|| seconds.ln() / events.ln())
}

fn text(rows: &[Row], perf: &[Perf], missing: &[String], huge: &str) -> Result<String> {
    let mut text = format!(
        "## Analysing recordings\n\nThe times are for reading recordings with default settings on one core (`taskset \
         -c 0`). Next to them, `perf sched timehist` reads its own recording of the same program in the same run. \
         {RUNS} runs, fewer of \
         a command that takes longer than {} s. Growth: the power of\nthe number of events by which the time grows \
         from the row above. `report` analyses \
         of more than 500,000 events the 250,000\nthat are most like them, or fewer if they stand for many lock operations. `report --whole` analyses all, up to {} million; perf's events are \
         its own.\n\n| program | events | MB | bytes per event | command | seconds | million events/s | growth | memory, MB |\n\
         |---|---|---|---|---|---|---|---|---|\n",
        PATIENCE.as_secs(),
        digits(MOST_WHOLE / 1e6),
    );
    for (place, (command, _)) in COMMANDS.into_iter().enumerate() {
        let mut before: Option<(&str, f64, f64)> = None;
        for row in rows {
            let Some(Some(taken)) = row.taken.get(place) else { continue };
            let now = (row.events, taken.seconds.median());
            let known =
                before.filter(|(name, ..)| *name == row.name).map(|(_, events, seconds)| (events, seconds));
            let growth = known.and_then(|known| growth([known, now])).map_or_else(|| "–".to_owned(), digits);
            before = Some((&row.name, now.0, now.1));
            line(&mut text, (&row.name, row.events, row.bytes), command, taken, &growth)?;
        }
    }
    for perf in perf {
        let what = (perf.name.as_str(), perf.events, perf.bytes);
        line(&mut text, what, "perf sched timehist", &perf.taken, "–")?;
    }
    text.push_str(huge);
    if !missing.is_empty() {
        write!(text, "\nNot measured: {}.", missing.join(", "))?;
    }
    Ok(text)
}

fn line(
    text: &mut String,
    (name, events, bytes): (&str, f64, f64),
    command: &str,
    taken: &Taken,
    growth: &str,
) -> Result<()> {
    let seconds = taken.seconds.median();
    Ok(writeln!(
        text,
        "| {name} | {events:.0} | {} | {} | `{command}` | {} | {} | {growth} | {} |",
        digits(bytes / 1e6),
        digits(bytes / events.max(1.0)),
        taken.seconds,
        digits(events / seconds / 1e6),
        digits(taken.peak_mb)
    )?)
}

#[cfg(test)]
mod tests {
    use super::{growth, samples};

    #[test]
    fn perf_s_number_of_samples_is_read_from_its_output() {
        assert_eq!(
            samples("[ perf record: Captured and wrote 1.2 MB perf.data (12345 samples) ]"),
            Some(12_345.0)
        );
        assert_eq!(samples("nothing (here)"), None);
    }

    #[test]
    fn growth_is_the_exponent_of_time_in_events() {
        let square = growth([(10.0, 1.0), (100.0, 100.0)]).expect("ten times as many");
        assert!((square - 2.0).abs() < 1e-12);
        assert_eq!(growth([(10.0, 1.0), (11.0, 5.0)]), None, "about as many");
    }
}
