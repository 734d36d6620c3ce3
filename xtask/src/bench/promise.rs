//! What recording costs a user: CPU time of the program and longpole together, compared with that of the program alone.
//! The result is compared with the cost that longpole reports, and with its goal.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use longpole_tests::zoo::{ENTRIES, Entry, Keep, Mode, missing, prepare};
use longpole_tests::{Background, Group, has_ended, shell};
use serde_json::json;

use super::summary::{launched_pid, told_cost};
use crate::command;
use crate::measure::{Fills, Measurement, Need, Outcome, Results, Runs, Side};

/// Longest time of a run, even on a loaded machine.
const LIMIT: Duration = Duration::from_secs(120);
/// Time between the start of a program and attaching to it.
const WARM: Duration = Duration::from_millis(500);
/// longpole's default goal, in percent of the program's CPU time.
const BUDGET: f64 = 2.0;
/// The reported cost is right if it differs from the measured one by at most this part of it, or by this many
/// percentage points.
const NEAR: (f64, f64) = (1.0 / 3.0, 0.5);

/// Names of the programs from the zoo.
const FROM_THE_ZOO: &str =
    "x264 python-threads redis sqlite3 pigz node-apart java-lock go-mutex hot-lock make";
/// Other programs, which call functions or start processes as often as possible.
const OWN: [Entry; 2] = [
    Entry::built("million-calls", "C", "zoo/calls.c", "PROGRAM N", 2_000),
    Entry {
        record: &["--children"],
        ..Entry::installed("shell-loop", &[("sh", "dash")], "sh WORK/loop.sh N", 2_500)
    },
];
/// Programs that start processes as fast as possible. longpole cannot keep its goal for them.
const STORMS: [&str; 2] = ["make", "shell-loop"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Launched,
    Attached,
    Top,
}

const WAYS: [(Way, &str); 3] = [(Way::Launched, "launched"), (Way::Attached, "attached"), (Way::Top, "top")];

pub const PROMISE: Measurement = Measurement {
    name: "promise",
    about: "What recording costs twelve programs, launched, attached to and under `top`, and what longpole says of that",
    title: "What recording costs, and what longpole says of it",
    needs: &[Need::Recorder],
    runs: Runs::Times(4),
    chooses: true,
    sides: |setting| {
        let folders = ["alone", "recorded"].map(|name| setting.file(name));
        let keep = Keep::new(&setting.longpole, &setting.folder, 1, false)?;
        for folder in &folders {
            std::fs::create_dir_all(folder)?;
            prepare(folder)?;
            let lines = "i=0; while [ $i -lt $1 ]; do /bin/true; i=$((i + 1)); done\n";
            std::fs::write(folder.join("loop.sh"), lines)?;
        }
        let of_zoo =
            FROM_THE_ZOO.split(' ').filter_map(|name| ENTRIES.iter().find(|entry| entry.name == name));
        let mut sides = Vec::new();
        for (stage, entry) in of_zoo.chain(&OWN).filter(|entry| setting.wants(entry.name)).enumerate() {
            let side = if let Some(why) = missing(entry) {
                Side::absent(entry.name, why)
            } else {
                let program = keep.build(entry).map_err(|why| anyhow!("{}: {why}", entry.name))?;
                let (folders, longpole) = (folders.clone(), setting.longpole.display().to_string());
                let mut pair = Pair { entry, program, folders, cpus: halves(), longpole };
                Side::new(entry.name, move |run| {
                    pair.cpus = halves();
                    if run % 2 == 1 {
                        pair.cpus.reverse();
                    }
                    let mut figures = json!({});
                    for (way, name) in WAYS {
                        for (figure, percent) in pair.run(way)? {
                            figures[format!("{name} {figure}")] = percent.into();
                        }
                    }
                    Ok(figures)
                })
            };
            sides.push(side.stage(stage));
        }
        Ok(sides)
    },
    says: "Percent of the CPU time of the program alone, or of one CPU if that is more, that it and longpole \
           together take more, what longpole says, and by how many percent the program takes longer: launched \
           by\n`longpole record`, attached to by `record -p`, and watched by `top -p`, {runs} pairs of runs of some \
           ten seconds. The two of a pair\nrun at the same time, each on its half of the CPUs, and change places. It \
           counts from when recording begins (`top`: from its first\nscreen on) to the end of the program. The \
           budget is\n2 %; make and the shell's loop start processes as fast as they can.\n\nWithin the budget: \
           {within} of {calm} without those two. What longpole says is within a third of what is measured, or half a \
           point: {near} of {all}.",
    fills,
    heads: "program",
    columns: &[
        ("launched", |side, _| side.spread("launched measured", 1.0)),
        ("said", |side, _| side.spread("launched said", 1.0)),
        ("longer", |side, _| side.spread("launched longer", 1.0)),
        ("attached", |side, _| side.spread("attached measured", 1.0)),
        ("said", |side, _| side.spread("attached said", 1.0)),
        ("longer", |side, _| side.spread("attached longer", 1.0)),
        ("top", |side, _| side.spread("top measured", 1.0)),
        ("said", |side, _| side.spread("top said", 1.0)),
        ("longer", |side, _| side.spread("top longer", 1.0)),
    ],
    ..Measurement::NEW
};

/// The numbers of costs that are within the budget, and of reported costs that are right. Storms do not count.
fn fills(results: &Results) -> Result<Fills> {
    let (mut calm, mut within, mut all, mut near) = (0, 0, 0, 0);
    for side in results.listed() {
        for (_, way) in WAYS {
            let (measured, said) = cost(side, way)?;
            let is_calm = !STORMS.contains(&side.label.as_str());
            calm += usize::from(is_calm);
            within += usize::from(is_calm && measured <= BUDGET);
            all += 1;
            near += usize::from(is_near(measured, said));
        }
    }
    let counts = [("within", within), ("calm", calm), ("near", near), ("all", all)];
    Ok(counts.map(|(name, count)| (name, count.to_string())).into())
}

/// Measured and reported cost of a program in one way of recording, in percent.
fn cost(side: &Outcome, way: &str) -> Result<(f64, f64)> {
    Ok((side.median(&format!("{way} measured"))?, side.median(&format!("{way} said"))?))
}

fn is_near(measured: f64, said: f64) -> bool {
    (said - measured).abs() <= (measured.abs() * NEAR.0).max(NEAR.1)
}

/// A program alone and recorded, at the same time, each on one half of the CPUs. If both took turns on the same CPUs,
/// the ticks of longpole's clock there would also cost the program alone.
struct Pair {
    entry: &'static Entry,
    /// The words that start the built program.
    program: String,
    /// The folders of both copies.
    folders: [PathBuf; 2],
    /// The CPU lists of both copies.
    cpus: [String; 2],
    longpole: String,
}

impl Pair {
    /// The figures of a pair of runs, in percent.
    fn run(&self, way: Way) -> Result<[(&'static str, f64); 3]> {
        let groups = ["alone", "recorded"].map(|name| Group::new(&format!("promise-{name}")));
        let ([alone, recorded], recorder) = (groups, Group::new("promise-longpole")?);
        let (alone, recorded) = (alone?, recorded?);
        let mut programs = vec![self.start(&alone, 0)?];
        if way != Way::Launched {
            programs.push(self.start(&recorded, 1)?);
        }
        let mut clients = Vec::new();
        for folder in &self.folders {
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
        // A launched program begins when longpole has printed that it launched it.
        let begin = if way == Way::Launched { Instant::now() } else { started };
        let (alone_pid, mut alone_took) = (programs[0].pid(), None);
        let mut took = None;
        let mut recorder_s = 0.0;
        while took.is_none() || alone_took.is_none() {
            ensure!(begin.elapsed() <= LIMIT, "does not come to an end");
            if alone_took.is_none() && has_ended(alone_pid) {
                alone_took = Some(started.elapsed());
            }
            if took.is_none() && has_ended(pid) {
                took = Some(begin.elapsed());
                // From here on, longpole's work delays nobody.
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
        let said = told_cost(if way == Way::Top { &screens } else { &ended.stderr })?;
        let alone_cpu_s = alone.cpu_s()?;
        let more = (recorded.cpu_s()? + recorder_s - alone_cpu_s) / alone_cpu_s.max(alone_s);
        Ok([("measured", 100.0 * more), ("said", said), ("longer", 100.0 * (took_s / alone_s - 1.0))])
    }

    fn words(&self, side: usize) -> (String, String) {
        self.entry.words(Mode::Attached, true, &self.program, &self.folders[side])
    }

    fn start(&self, group: &Group, side: usize) -> Result<Background> {
        let (variables, words) = self.words(side);
        let line = format!("env {variables} taskset -c {} {words} >/dev/null", self.cpus[side]);
        Ok(Background::start(&mut group.shell(&line))?)
    }

    /// Starts longpole. Returns it, the PID of the program that it launched, and the CPU time used so far.
    fn launch(&self, group: &Group) -> Result<(Background, u32, f64)> {
        let (variables, words) = self.words(1);
        let line = format!("env {variables} {} -- {words} >/dev/null", self.record());
        let mut longpole = Background::start(&mut group.shell(&line))?;
        longpole.close_stdin();
        let said = longpole.wait_for_stderr("recording ", LIMIT)?;
        let before_s = group.cpu_s()?;
        Ok((longpole, launched_pid(&said)?, before_s))
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
                self.longpole,
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
                ensure!(begin.elapsed() <= LIMIT, "no screen");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        let before_s = group.cpu_s()?;
        Ok((longpole, pid, before_s))
    }

    fn record(&self) -> String {
        let file = self.folders[1].join("it.lp");
        let (longpole, options) = (&self.longpole, self.entry.record.join(" "));
        format!("taskset -c {} {longpole} record --force -o {} {options}", self.cpus[1], file.display())
    }

    fn screens(&self) -> PathBuf {
        self.folders[1].join("screens")
    }
}

/// CPU lists of the first and second half of the CPUs. On a machine with one CPU, both lists are the same.
fn halves() -> [String; 2] {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let list = |from: usize, to: usize| (from..to).map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(",");
    let half = (cpus / 2).max(1);
    [list(0, half), list(cpus - half, cpus)]
}

#[cfg(test)]
mod tests {
    use super::is_near;

    #[test]
    fn a_told_cost_is_near_within_a_third_or_half_a_point() {
        let costs = [(3.0, 2.0), (3.0, 1.9), (0.1, 0.6), (-0.1, 0.5)];
        assert_eq!(costs.map(|(measured, said)| is_near(measured, said)), [true, false, true, false]);
    }
}
