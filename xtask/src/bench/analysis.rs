//! Cost of `report` and `info` for recordings of several sizes, and of `perf sched timehist` for the same programs.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::apps::{App, Load, PROGRAMS, Recorded, prepare, recorded};
use super::summary::events;
use crate::command;
use crate::measure::{Measurement, Need, Outcome, Runs, Setting, Side, built, table, watched};
use crate::sample::{Sample, digits};

/// If the runs of a command on a recording would together take longer than this, there are fewer of them.
const PATIENCE: Duration = Duration::from_secs(3);
const LIMIT: Duration = Duration::from_secs(300);
/// `report --whole` is not run on recordings of more events than this.
const MOST_WHOLE: f64 = 1e6;
/// perf runs only with programs of at most this many longpole events, because its files are a hundred times as large.
const MOST_PERF: f64 = 1e6;

/// Our own programs, each with arguments for recordings of 0.05 to 10 million events.
const OWN: [(&str, &str, &[&str]); 2] = [
    ("hand-over", "pingpong.c", &["8000", "80000", "300000", "2000000"]),
    ("contended mutex", "two_mutexes.c", &["100000 100 300 1", "800000 100 300 1"]),
];
/// Names of the real programs.
const REAL: [&str; 3] = ["redis", "nginx", "x264"];
/// The commands that are run on each recording.
const COMMANDS: [&str; 3] = ["info", "report", "report --whole"];
const PERF: &str = "perf sched timehist";

/// With `--huge`: how often the middle of a hand-over recording is repeated, and the free disk space that this needs.
const HUGE_TIMES: &str = "60";
const HUGE_BYTES: u64 = 4 << 30;
const HUGE: &str = "generated";
const PART: &str = "report --from 30s --to 31s";

pub const ANALYSIS: Measurement = Measurement {
    name: "analysis",
    about: "What `report` and `info` take of recordings of several sizes, and `perf sched timehist` of the same programs",
    title: "Analysing recordings",
    needs: &[Need::Recorder, Need::Tracefs],
    runs: Runs::Inside(3),
    chooses: true,
    sides: |setting| {
        let mut sides = Vec::new();
        for (name, source, sizes) in OWN.into_iter().filter(|(name, ..)| setting.wants(name)) {
            let program = built(source)?;
            for arguments in sizes {
                let line = format!("{program} {arguments}");
                sides.push(Side::new(name, move |_| both(setting, &Load::Command("", &line))));
            }
        }
        let is_real = |app: &&App| REAL.contains(&app.name) && setting.wants(app.name);
        let apps =
            REAL.iter().filter_map(|name| PROGRAMS.iter().filter(is_real).find(|app| app.name == *name));
        let apps: Vec<&App> = apps.collect();
        if !apps.is_empty() {
            prepare(&setting.folder)?;
        }
        for app in apps {
            sides.push(match app.missing() {
                Some(why) => Side::absent(app.name, why),
                None => Side::new(app.name, move |_| both(setting, &app.load)).may_fail(),
            });
        }
        if setting.wishes.huge {
            sides.push(Side::new(HUGE, |_| huge(setting)).unlisted());
        }
        Ok(sides)
    },
    says: "The times are for reading recordings with default settings on one core (`taskset -c 0`). Next to them, \
           `perf sched timehist` reads its own recording of the same program in the same run. {runs} runs, fewer of \
           a command that takes longer than 3 s. Growth: the power of\nthe number of events by which the time grows \
           from the row above. `report` analyses of more than 500,000 events the 250,000\nthat are most like them, \
           or fewer if they stand for many lock operations. `report --whole` analyses all, up to 1.00 million; \
           perf's events are its own.",
    heads: "program | events | MB | bytes per event | command | seconds | million events/s | growth | memory, MB",
    rows: Some(|results| {
        let mut rows = Vec::new();
        let listed: Vec<&Outcome> = results.listed().collect();
        for command in COMMANDS {
            let mut before: Option<(&str, f64, f64)> = None;
            for side in &listed {
                let Some((recording, taken)) = taken(side, "longpole", command) else { continue };
                let (name, events, seconds) =
                    (side.label.as_str(), number(&recording["events"]), taken.0.median());
                let known = before.filter(|(known, ..)| *known == name);
                let growth = known.and_then(|(_, e, s)| growth([(e, s), (events, seconds)]));
                before = Some((name, events, seconds));
                rows.push(row(name, recording, command, &taken, growth));
            }
        }
        // perf has one row for each program: the largest recording with which it is run.
        let perf = listed.iter().filter_map(|side| Some((&side.label, taken(side, "perf", PERF)?)));
        let mut of_perf = Vec::new();
        for (name, taken) in perf {
            of_perf.retain(|(known, _)| *known != name);
            of_perf.push((name, taken));
        }
        rows.extend(of_perf.iter().map(|(name, (recording, taken))| row(name, recording, PERF, taken, None)));
        Ok(rows)
    }),
    ends: |results| {
        let mut text = String::new();
        if let Some(side) = results.sides.iter().find(|side| side.label == HUGE)
            && let Some(recording) = side.last()
        {
            let commands = COMMANDS.into_iter().chain([PART]);
            let rows = commands.filter_map(|command| {
                let (_, (seconds, peak)) = taken(side, "longpole", command)?;
                Some(format!("`{command}` | {seconds} | {}", digits(peak)))
            });
            text = format!(
                "A generated recording of {} million events, {} MB:\n\n{}",
                digits(number(&recording["longpole"]["events"]) / 1e6),
                digits(number(&recording["longpole"]["bytes"]) / 1e6),
                table("command | seconds | memory, MB", rows)
            );
        }
        let why = results.values().filter_map(|(name, value)| Some((name, value["perf"].as_str()?)));
        let why: Vec<String> = why.map(|(name, why)| format!("perf of {name} ({why})")).collect();
        if !why.is_empty() {
            text.push_str(&format!("\nNot measured: {}.", why.join(", ")));
        }
        Ok(text)
    },
    ..Measurement::NEW
};

/// What longpole and perf need for a program. If perf failed, `perf` is a text with the reason.
fn both(setting: &Setting, load: &Load<'_>) -> Result<Value> {
    let longpole = of_longpole(setting, load)?;
    if number(&longpole["events"]) > MOST_PERF {
        return Ok(json!({ "longpole": longpole }));
    }
    let perf = of_perf(setting, load).unwrap_or_else(|error| json!(format!("{error:#}")));
    Ok(json!({ "longpole": longpole, "perf": perf }))
}

fn of_longpole(setting: &Setting, load: &Load<'_>) -> Result<Value> {
    let file = setting.file("analysis.lp");
    let said = recorded(load, &setting.folder, "recording ", |what| {
        let mut record = setting.call("record --force -o");
        record.arg(&file);
        match what {
            Recorded::Command(line) => record.args(["--", "sh", "-c", line]),
            Recorded::Server(pid) => record.args(["--children", "-p"]).arg(pid.to_string()),
        };
        record
    })?;
    let row = analysed(setting, &file, events(&said)?)?;
    std::fs::remove_file(&file)?;
    Ok(row)
}

/// What each command needs for a recording.
fn analysed(setting: &Setting, file: &Path, events: f64) -> Result<Value> {
    let mut row = json!({ "events": events, "bytes": std::fs::metadata(file)?.len() });
    for command in COMMANDS {
        if !command.contains("--whole") || events <= MOST_WHOLE {
            row[command] = on_one_core(setting, &setting.longpole, command, file)?;
        }
    }
    Ok(row)
}

fn of_perf(setting: &Setting, load: &Load<'_>) -> Result<Value> {
    let file = setting.file("perf.data");
    let said = recorded(load, &setting.folder, "", |what| {
        let mut record = command::line("perf", "sched record -o");
        record.arg(&file);
        if let Recorded::Command(line) = what {
            record.args(["--", "sh", "-c", line]);
        }
        record
    })?;
    let events = samples(&said).with_context(|| format!("perf says no number of events: {said}"))?;
    let taken = on_one_core(setting, Path::new("perf"), "sched timehist -i", &file)?;
    let row = json!({ "events": events, "bytes": std::fs::metadata(&file)?.len(), PERF: taken });
    std::fs::remove_file(&file)?;
    Ok(row)
}

/// A recording of a hundred million events, made from a smaller one by repeating its middle.
fn huge(setting: &Setting) -> Result<Value> {
    let (small, large) = (setting.file("small.lp"), setting.file("huge.lp"));
    let mut df = command::line("df", "--output=avail -B1");
    let free = command::text(df.arg(&setting.folder))?;
    let free: u64 = free.lines().last().unwrap_or_default().trim().parse().context("df says no number")?;
    ensure!(free > HUGE_BYTES, "a huge recording needs {} GB of free disk", HUGE_BYTES >> 30);
    let line = format!("{} 400000", built("pingpong.c")?);
    let mut record = setting.call("record --force -o");
    command::good(record.arg(&small).args(["--", "sh", "-c", &line]), LIMIT)?;
    let repeat = setting.example("repeated_session", "--package recording")?;
    let said = command::good(Command::new(repeat).args([&small, &large]).arg(HUGE_TIMES), LIMIT)?.stdout;
    let events: f64 = said.trim().parse().with_context(|| format!("no number of events: {said}"))?;
    let mut row = analysed(setting, &large, events)?;
    row[PART] = on_one_core(setting, &setting.longpole, PART, &large)?;
    Ok(json!({ "longpole": row }))
}

/// Time of a command on one CPU in seconds, and its largest memory in megabytes. A quick command runs several times.
fn on_one_core(setting: &Setting, program: &Path, words: &str, file: &Path) -> Result<Value> {
    let (mut seconds, mut peak_mb, began) = (Vec::new(), 0.0_f64, Instant::now());
    while seconds.len() < setting.runs && (seconds.is_empty() || began.elapsed() < PATIENCE) {
        let mut command = command::line("taskset", "-c 0");
        command.arg(program).args(words.split(' ')).arg(file);
        let taken = watched(&mut command, LIMIT)?.well(&command)?;
        seconds.push(taken.seconds);
        peak_mb = peak_mb.max(taken.peak_mb());
    }
    Ok(json!({ "seconds": seconds, "peak_mb": peak_mb }))
}

/// The recording of longpole or perf, and the seconds and megabytes that a command needs for it.
fn taken<'a>(side: &'a Outcome, whose: &str, command: &str) -> Option<(&'a Value, (Sample, f64))> {
    let recording = &side.last()?[whose];
    let taken = &recording[command];
    let seconds = taken["seconds"].as_array()?.iter().map(number).collect();
    Some((recording, (seconds, number(&taken["peak_mb"]))))
}

fn row(name: &str, recording: &Value, command: &str, taken: &(Sample, f64), growth: Option<f64>) -> String {
    let ((seconds, peak), events, bytes) = (taken, number(&recording["events"]), number(&recording["bytes"]));
    let growth = growth.map_or_else(|| "–".to_owned(), digits);
    format!(
        "{name} | {events:.0} | {} | {} | `{command}` | {seconds} | {} | {growth} | {}",
        digits(bytes / 1e6),
        digits(bytes / events.max(1.0)),
        digits(events / seconds.median() / 1e6),
        digits(*peak)
    )
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// The count in `[ perf record: Captured and wrote 1.2 MB perf.data (12345 samples) ]`.
fn samples(said: &str) -> Option<f64> {
    let (before, _) = said.split_once(" samples)")?;
    before.rsplit_once('(')?.1.parse().ok()
}

/// The exponent of the growth: the seconds grow from one recording to the next with this power of the number of events.
fn growth([before, now]: [(f64, f64); 2]) -> Option<f64> {
    let [events, seconds] = [now.0 / before.0, now.1 / before.1];
    (events > 1.5 && seconds > 0.0).then(|| seconds.ln() / events.ln())
}

#[cfg(test)]
mod tests {
    use super::{growth, samples};

    #[test]
    fn perf_s_number_of_samples_is_read_from_its_output() {
        let said = "[ perf record: Captured and wrote 1.2 MB perf.data (12345 samples) ]";
        assert_eq!(samples(said), Some(12_345.0));
        assert_eq!(samples("nothing (here)"), None);
    }

    #[test]
    fn growth_is_the_exponent_of_time_in_events() {
        let square = growth([(10.0, 1.0), (100.0, 100.0)]).expect("ten times as many");
        assert!((square - 2.0).abs() < 1e-12);
        assert_eq!(growth([(10.0, 1.0), (11.0, 5.0)]), None, "about as many");
    }
}
