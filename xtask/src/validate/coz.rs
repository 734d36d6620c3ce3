//! Two shapes from coz's own examples (Curtsinger and Berger, "Coz", 2015), for which four answers are compared. coz gives
//! estimates, with a run for each question. longpole answers from one recording. The third answers follow from how the
//! programs are built, and the last ones are the measured gains when functions are really made faster.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::programs::{LIMIT, launch};
use crate::command;
use crate::measure::{Measurement, Need, Results, Runs, Setting, Side, in_turns};
use crate::sample::{Sample, digits};

/// Percentages by which a function's work is reduced.
const OFF: [u32; 4] = [10, 20, 50, 100];

struct Shape {
    source: &'static str,
    title: &'static str,
    /// Arguments of the program: rounds and units.
    size: &'static str,
    /// The functions in the order in which the program takes their percentages: name, text in the line of the
    /// function's work, and the largest possible gain on two CPUs or more.
    functions: [(&'static str, &'static str, f64); 2],
}

const SHAPES: [Shape; 2] = [
    Shape {
        source: "toy.c",
        title: "toy: two threads side by side, 67 units of Slow for 64 of Fast",
        size: "101 5000000",
        functions: [("Slow", "sink[0] = burn", 3.0 / 67.0), ("Fast", "sink[1] = burn", 0.0)],
    },
    Shape {
        source: "producer_consumer.c",
        title: "producer–consumer: 10 units of Consume for 7 of Produce",
        size: "1511 40000",
        functions: [("Produce", "sink[0] = burn", 0.0), ("Consume", "sink[1] = burn", 0.3)],
    },
];

pub const COZ: Measurement = Measurement {
    name: "coz",
    about: "What coz finds out with many runs, compared with one recording",
    title: "longpole and coz",
    needs: &[Need::Program("coz", "coz-profiler"), Need::Recorder],
    runs: Runs::Inside(7),
    sides: |setting| {
        let side = |shape: &'static Shape| Side::new(shape.title, move |_| shape.compared(setting));
        Ok(SHAPES.iter().map(side).collect())
    },
    says: "Two of its example shapes, rebuilt. The numbers are how much shorter the run gets if a function computes \
           less by the percentage *off*. Built to: the gain that follows from the program's construction (on two \
           CPUs or more). longpole: from one recording on all CPUs (`what-if --rank`).\ncoz: 0.2.2, `--end-to-end \
           --fixed-line --fixed-speedup`, one run for each question and one without a speed-up,\nmiddle of {runs}. \
           Measured: the program with less work in that function ({runs} runs, and as many of the unchanged \
           program).",
    heads: "program | function | off | built to | longpole | coz | measured",
    rows: Some(|results| {
        let row = |(shape, of, off, answers): (&Shape, usize, u32, [f64; 3])| {
            let (function, _, most) = shape.functions[of];
            let built = most.min(f64::from(off) / 100.0) * 100.0;
            let [ours, coz, real] = answers.map(|gain| format!("{gain:.1} %"));
            let title = shape.title.split(':').next().unwrap_or_default();
            format!("{title} | {function} | {off} % | {built:.1} % | {ours} | {coz} | {real}")
        };
        Ok(answers(results).map(row).collect())
    }),
    ends: |results| {
        let distance =
            |which: usize| answers(results).map(|(.., all)| (all[which] - all[2]).abs()).collect::<Sample>();
        let spent = |name: &str| digits(results.values().filter_map(|(_, value)| value[name].as_f64()).sum());
        Ok(format!(
            "Difference from the measured gain in points of percent, middle (smallest–largest): longpole {}, coz {}. All\n\
             answers took longpole {} s with its two runs, coz {} s.",
            distance(0),
            distance(1),
            spent("longpole_s"),
            spent("coz_s")
        ))
    },
    ..Measurement::NEW
};

/// For each shape, function and percentage: the gains according to longpole, coz and the real run, in percent.
fn answers(results: &Results) -> impl Iterator<Item = (&'static Shape, usize, u32, [f64; 3])> {
    results.values().zip(&SHAPES).flat_map(|((_, value), shape)| {
        (0..shape.functions.len()).flat_map(move |of| {
            OFF.into_iter().enumerate().map(move |(at, off)| {
                let gain = |who: &str| value[who][of][at].as_f64().unwrap_or(f64::NAN);
                (shape, of, off, ["longpole", "coz", "real"].map(gain))
            })
        })
    })
}

/// The gains of each function for each of [`OFF`], in percent.
type Gains = [Vec<f64>; 2];

impl Shape {
    fn compared(&self, setting: &Setting) -> Result<Value> {
        let program = self.build(setting)?;
        let start = Instant::now();
        let longpole = self.longpole(setting, &program)?;
        let longpole_s = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let coz = self.coz(setting, &program)?;
        let coz_s = start.elapsed().as_secs_f64();
        let real = self.real(setting, &program)?;
        Ok(
            json!({ "longpole": longpole, "coz": coz, "real": real, "longpole_s": longpole_s, "coz_s": coz_s }),
        )
    }

    fn source(&self, setting: &Setting) -> PathBuf {
        setting.workspace.root.join("tests/workloads").join(self.source)
    }

    /// Builds the program. Each function's work is on a line of its own, and the debug information has a form that coz
    /// 0.2.2 can read.
    fn build(&self, setting: &Setting) -> Result<PathBuf> {
        let program = setting.file(self.source.trim_end_matches(".c"));
        let flags = "-O2 -g -gdwarf-4 -gno-variable-location-views -DBURN_IN_CALLER -w -o";
        let mut compile = command::line("cc", flags);
        compile.arg(&program).arg(self.source(setting)).args(["-pthread", "-ldl"]);
        command::good(&mut compile, LIMIT)?;
        Ok(program)
    }

    /// The gains according to one recording of longpole.
    fn longpole(&self, setting: &Setting, program: &Path) -> Result<Gains> {
        let file = setting.file("coz.lp");
        launch(setting, "", program, self.size, &file)?;
        let cpus = std::thread::available_parallelism().map_or(2, usize::from).max(2);
        let mut rank = setting.call(&format!("what-if --rank --json --cpus {cpus}"));
        let ended = longpole_tests::run(rank.arg(&file), LIMIT)?;
        let value: Value = serde_json::from_str(&ended.stdout)
            .with_context(|| format!("longpole what-if failed: {}", ended.stderr.trim()))?;
        let ranking = &value["rank"][0];
        let time = ranking["time_ns"].as_f64().context("no time")?;
        let rows = ranking["functions"].as_array().context("no functions")?;
        Ok(self.functions.map(|(function, ..)| {
            let row = rows.iter().find(|row| row["function"] == function);
            let gain = |off| row.and_then(|row| row[format!("gain_{off}_ns")].as_f64()).unwrap_or(0.0);
            OFF.map(|off| gain(off) / time * 100.0).into()
        }))
    }

    /// The gains according to coz's experiments.
    fn coz(&self, setting: &Setting, program: &Path) -> Result<Gains> {
        let code = std::fs::read_to_string(self.source(setting))?;
        let mut gains = Gains::default();
        for (gains, (_, text, _)) in gains.iter_mut().zip(&self.functions) {
            let line = code.lines().position(|line| line.contains(text)).context("the line is gone")? + 1;
            let line = format!("{}:{line}", self.source(setting).display());
            *gains = from_times(setting.runs, |off| self.experiment(setting, program, &line, off))?;
        }
        Ok(gains)
    }

    /// The time of the run with that virtual speed-up, as coz computes it: without the delays that coz inserted.
    /// Sometimes a run ends without an experiment; then the next run has it.
    fn experiment(&self, setting: &Setting, program: &Path, line: &str, off: u32) -> Result<f64> {
        const ATTEMPTS: usize = 5;
        for _ in 0..ATTEMPTS {
            let profile = setting.file("profile.coz");
            // coz appends to an existing profile.
            drop(std::fs::remove_file(&profile));
            let mut coz = command::line("coz", "run --end-to-end --fixed-line");
            coz.args([line, "--fixed-speedup", &off.to_string(), "-o"]).arg(&profile).arg("---").arg(program);
            command::good(coz.args(self.size.split(' ')), LIMIT)?;
            let text = std::fs::read_to_string(&profile).context("coz wrote no profile")?;
            let experiment = text.lines().find(|line| line.starts_with("experiment\t"));
            let fields = experiment.into_iter().flat_map(|line| line.split('\t'));
            let duration = fields.filter_map(|field| field.strip_prefix("duration=")).next();
            if let Some(duration) = duration.and_then(|duration| duration.parse().ok()) {
                return Ok(duration);
            }
        }
        bail!("coz made no experiment on {line} in {ATTEMPTS} runs")
    }

    /// The measured gains with less work in the function.
    fn real(&self, setting: &Setting, program: &Path) -> Result<Gains> {
        let mut gains = Gains::default();
        for (of, gains) in gains.iter_mut().enumerate() {
            *gains = from_times(setting.runs, |off| {
                let mut percent = ["100".to_owned(), "100".to_owned()];
                percent[of] = (100 - off).to_string();
                command::seconds(command::line(program, self.size).args(percent), LIMIT)
            })?;
        }
        Ok(gains)
    }
}

/// The gains for each of [`OFF`] in percent. The times without and with the change are measured in turns.
fn from_times(runs: usize, time: impl Fn(u32) -> Result<f64>) -> Result<Vec<f64>> {
    let off = |variant: usize| variant.checked_sub(1).map_or(0, |at| OFF[at]);
    let times = in_turns(runs, 1 + OFF.len(), false, |variant| time(off(variant)))?;
    let plain = times[0].median();
    Ok(times[1..].iter().map(|time| (plain - time.median()) / plain * 100.0).collect())
}
