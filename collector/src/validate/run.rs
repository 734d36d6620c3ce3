//! Recording, measuring, predicting, in this order.

use super::compare::{Comparison, Predicted, compare, inflation, taken_by_others};
use super::left::Left;
use super::measure::{Measurement, run_once};
use super::setup::{command_for, depends_on_cpus};
use crate::cli::plan::{CapturePlan, InputPlan, RecordPlan, TargetPlan, ValidatePlan};
use crate::cli::{Code, Input, Outcome, UserError, say};
use crate::interpose::Wish;
use crate::live::record_silently;
use crate::present::style::{self, Paint, Style};
use crate::present::validate as present;
use crate::target::CpuList;
use engine::predict::Model;
use engine::program::{ComputeFactors, Program};
use engine::report::{Cpus, Finding};
use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Everything that was found out.
#[derive(Clone, Debug, PartialEq)]
pub struct Validation {
    /// The command, for people.
    pub command: String,
    /// Number of CPUs of the recording.
    pub recorded_on: u32,
    /// How often each number of CPUs was measured.
    pub runs: usize,
    /// The table.
    pub comparison: Comparison,
    /// The same with the CPU time of each function as a recording on the largest number of CPUs shows it, if asked for.
    pub calibrated: Option<Comparison>,
    /// Functions that take more CPU time there, the most time first; empty unless asked for.
    pub inflated: Vec<Inflated>,
    /// What the recordings say about themselves.
    pub findings: Vec<Finding>,
}

/// A function whose CPU time grows with the CPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct Inflated {
    /// Its name; what is in no function has none.
    pub function: Option<String>,
    /// Its own CPU time on one CPU, ns.
    pub one_ns: f64,
    /// On the largest number of CPUs, ns.
    pub many_ns: f64,
}

/// Runs and shows it. Exit code 3 if an error is larger than allowed.
pub fn validate(plan: &ValidatePlan) -> Result<Outcome, UserError> {
    let validation = Work::new(plan)?.validation()?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let written = if plan.json {
        present::json(&validation, &mut out)
    } else {
        present::text(&validation, plan.max_error, &style::for_stdout(), &mut out)
    };
    if let Err(error) = written.and_then(|()| out.flush())
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        return Err(UserError::runtime(
            format!("standard output cannot be written: {error}"),
            "check where the output goes to",
        ));
    }
    let too_large = plan.max_error.is_some_and(|most| validation.comparison.worst_error > most);
    Ok(if too_large { Outcome::Code(Code::Threshold as u8) } else { Outcome::Done })
}

struct Work<'a> {
    plan: &'a ValidatePlan,
    command: &'a [OsString],
    keep_root: bool,
    pool: CpuList,
    folder: tempfile::TempDir,
    style: Style,
    left: RefCell<Left>,
}

impl<'a> Work<'a> {
    fn new(plan: &'a ValidatePlan) -> Result<Work<'a>, UserError> {
        let TargetPlan::Launch { command, keep_root, cpus } = &plan.capture.target else {
            return Err(UserError::usage(
                "a running process cannot be validated: it cannot be run again",
                "give its command: `longpole validate -- COMMAND`",
            ));
        };
        let pool = match cpus {
            Some(cpus) => cpus.clone(),
            None => CpuList::allowed().map_err(|error| {
                UserError::runtime(format!("cannot tell which CPUs there are: {error}"), "give --cpu-list")
            })?,
        };
        if let Some(&most) = plan.cpus.iter().find(|&&count| count as usize > pool.len()) {
            return Err(UserError::usage(
                format!("{most} CPUs cannot be measured: there are {}", pool.len()),
                "give --cpus numbers up to that; `longpole predict` goes further",
            ));
        }
        let folder = tempfile::tempdir().map_err(|error| {
            UserError::runtime(format!("cannot make a folder for the recording: {error}"), "set TMPDIR")
        })?;
        let (style, left) = (style::for_stderr(), RefCell::new(Left::watch()));
        Ok(Work { plan, command, keep_root: *keep_root, pool, folder, style, left })
    }

    /// After each run: says when one has left processes behind, once, before all others are run beside them.
    fn look_for_left(&self) {
        let mut left = self.left.borrow_mut();
        if left.look()
            && let Some(sentence) = left.sentence()
        {
            say(self.style.paint(Paint::Warning, &self.style.text(&format!("! {sentence}"))));
        }
    }

    fn validation(&self) -> Result<Validation, UserError> {
        let counts = self.plan.cpus.as_slice();
        let record_on = |count: u32| self.plan.record_on.unwrap_or(count);
        let each = depends_on_cpus(self.command) || self.plan.record_on.is_none();
        let recorded = |capture: &CapturePlan| -> Result<Vec<Program>, UserError> {
            let setups = if each { counts } else { &counts[..1] };
            setups.iter().map(|&count| self.recorded(capture, count, record_on(count))).collect()
        };
        let capture = &self.plan.capture;
        let mut programs = recorded(capture)?;
        let most_lost = programs.iter().map(lost_share).fold(0.0, f64::max);
        if most_lost > MOST_LOST && capture.uprobes && !self.plan.calibrate {
            let text = recorded_again(most_lost);
            say(self.style.text(&text));
            let without = CapturePlan { uprobes: false, interpose: Wish::Never, ..capture.clone() };
            programs = recorded(&without)?;
            for program in programs.iter_mut().take(1) {
                program.findings.push(Finding { kind: "recorded_again".to_owned(), text: text.clone() });
            }
        }
        let many = match (self.plan.calibrate, counts.last()) {
            (true, Some(&most)) if !each => Some(self.recorded(capture, most, most)?),
            _ => None,
        };
        let measured = self.measured()?;
        let grown = inflation(&measured);
        let program_of = |place: usize| if each { &programs[place] } else { &programs[0] };
        let predicted = predictions(counts, &grown, program_of);
        let (calibrated, inflated) = match &many {
            Some(many) => {
                let (factors, inflated) = factors(&programs[0], many);
                let scaled: Vec<Program> = counts
                    .iter()
                    .map(|&count| programs[0].clone().with_compute(&between(&factors, count, counts)))
                    .collect();
                let predicted = predictions(counts, &vec![1.0; counts.len()], |place| &scaled[place]);
                (Some(compare(&measured, &predicted)), inflated)
            }
            None => (None, Vec::new()),
        };
        Ok(Validation {
            command: self.command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "),
            recorded_on: record_on(1),
            runs: self.plan.runs,
            comparison: compare(&measured, &predicted),
            calibrated,
            inflated,
            findings: self
                .left
                .borrow()
                .finding()
                .into_iter()
                .chain(findings(&measured, &programs))
                .collect(),
        })
    }

    /// Records the command for this number of CPUs on that many.
    fn recorded(&self, capture: &CapturePlan, setup: u32, on: u32) -> Result<Program, UserError> {
        let path = match &self.plan.output {
            Some(path) => path.clone(),
            None => self.folder.path().join(format!("{setup}-on-{on}.lp")),
        };
        self.record(capture, setup, on, &path)?;
        Ok(Input::open(&InputPlan::File(path))?.into_program())
    }

    fn record(&self, capture: &CapturePlan, setup: u32, on: u32, path: &Path) -> Result<(), UserError> {
        let cpus = if on == 1 { "CPU" } else { "CPUs" };
        say(self.style.text(&format!("recording on {on} {cpus}")));
        let target = TargetPlan::Launch {
            command: command_for(self.command, setup),
            keep_root: self.keep_root,
            cpus: Some(self.pool.spread(on as usize)),
        };
        let is_again = !capture.uprobes && self.plan.capture.uprobes;
        let capture = CapturePlan { target, ..capture.clone() };
        let plan = RecordPlan { capture, output: Some(PathBuf::from(path)), force: is_again, duration: None };
        let recorded = record_silently(&plan)?;
        self.look_for_left();
        match recorded {
            Outcome::Done => Ok(()),
            _ => Err(UserError::runtime(
                "the command failed while it was recorded",
                "give a command that ends with exit code 0",
            )),
        }
    }

    /// All rounds: in each of them every number of CPUs once, in turning order, so that what changes slowly on the
    /// machine meets all of them alike.
    fn measured(&self) -> Result<Vec<Measurement>, UserError> {
        let counts = &self.plan.cpus;
        let mut measured: Vec<Measurement> =
            counts.iter().map(|&cpus| Measurement { cpus, runs: Vec::new() }).collect();
        say(self.style.text(&format!(
            "measuring on {} CPUs, {} times each",
            counts.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
            self.plan.runs
        )));
        for round in 0..self.plan.runs {
            let mut order: Vec<usize> = (0..counts.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for place in order {
                let command = command_for(self.command, counts[place]);
                let cpus = self.pool.spread(counts[place] as usize);
                measured[place].runs.push(run_once(&command, &cpus, self.keep_root)?);
                self.look_for_left();
            }
        }
        Ok(measured)
    }
}

/// More than this of the CPUs' time taken by others is said.
const MOST_BY_OTHERS: f64 = 0.03;

/// Those about the measurement first; what several recordings say alike is said once.
fn findings(measured: &[Measurement], programs: &[Program]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let others = taken_by_others(measured);
    if others > MOST_BY_OTHERS {
        findings.push(Finding {
            kind: "busy_machine".to_owned(),
            text: format!(
                "others took {:.0} % of these CPUs' time while the command was measured: measure again on a quiet machine",
                others * 100.0
            ),
        });
    }
    for finding in programs.iter().flat_map(|program| &program.findings) {
        if !findings.contains(finding) {
            findings.push(finding.clone());
        }
    }
    findings
}

/// Of all records, how many a recording may have lost to be predicted from as it is.
const MOST_LOST: f64 = 0.01;

fn lost_share(program: &Program) -> f64 {
    let lost = program.trust.lost as f64;
    lost / (lost + program.trust.events as f64).max(1.0)
}

/// Millions of lock operations a second are more than anybody takes down. Where some are missing it is not known who held
/// what, and every lock is guessed; the scheduler's events alone are whole.
fn recorded_again(lost: f64) -> String {
    format!(
        "{:.0} % of the records were lost, too many to decide locks anew: recorded again without lock operations, so that \
         threads wait for each other as they did in the recording",
        lost * 100.0
    )
}

/// The prediction for each number of CPUs, from the program of its place.
fn predictions<'p>(
    counts: &[u32],
    grown: &[f64],
    program_of: impl Fn(usize) -> &'p Program,
) -> Vec<Predicted> {
    counts
        .iter()
        .zip(grown)
        .enumerate()
        .map(|(place, (&cpus, &inflation))| {
            let program = program_of(place);
            let all =
                ComputeFactors { functions: vec![inflation; program.functions.len()], elsewhere: inflation };
            Predicted {
                cpus,
                time_ns: time(program, cpus),
                inflated_ns: time(&program.clone().with_compute(&all), cpus),
            }
        })
        .collect()
}

fn time(program: &Program, cpus: u32) -> f64 {
    let Some(cpus) = Cpus::count(cpus) else { return 0.0 };
    let prediction = engine::predict::predict(program, &[cpus], &Model::default());
    prediction.results.first().map_or(0.0, |result| result.time_ns)
}

/// How much more CPU time each function of the one program takes in the other, by name.
fn factors(one: &Program, many: &Program) -> (ComputeFactors, Vec<Inflated>) {
    let (few, more) = (one.compute_times(), many.compute_times());
    let ns = |ticks: engine::time::Ticks| ticks.0 as f64 / engine::time::Ticks::PER_NS as f64;
    let mut inflated = Vec::new();
    let mut factor = |function: Option<&str>, one_ns: f64, many_ns: f64| {
        // What hardly runs has no ratio worth the name.
        if one_ns <= 0.0 || many_ns <= 0.0 {
            return 1.0;
        }
        inflated.push(Inflated { function: function.map(str::to_owned), one_ns, many_ns });
        many_ns / one_ns
    };
    let functions = one
        .functions
        .iter()
        .zip(&few.functions)
        .map(|(function, &time)| {
            let there = many.functions.iter().position(|other| other.name == function.name);
            let there = there.and_then(|place| more.functions.get(place)).map_or(0.0, |&time| ns(time));
            factor(Some(&function.name), ns(time), there)
        })
        .collect();
    let elsewhere = factor(None, ns(few.elsewhere), ns(more.elsewhere));
    inflated.sort_by(|a, b| (b.many_ns - b.one_ns).total_cmp(&(a.many_ns - a.one_ns)));
    (ComputeFactors { functions, elsewhere }, inflated)
}

/// The factors for a number of CPUs between the first and the last, on the straight line between them: two
/// recordings tell no more.
fn between(factors: &ComputeFactors, count: u32, counts: &[u32]) -> ComputeFactors {
    let most = counts.last().copied().unwrap_or(1);
    let share = if most <= 1 { 0.0 } else { f64::from(count.saturating_sub(1)) / f64::from(most - 1) };
    let part = |factor: f64| 1.0 + (factor - 1.0) * share;
    ComputeFactors {
        functions: factors.functions.iter().map(|&factor| part(factor)).collect(),
        elsewhere: part(factors.elsewhere),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(f: u64, g: u64) -> Program {
        let text = format!(
            r#"{{"format":"longpole-program","version":1,"threads":[{{"name":"T","ops":[["exec","f",{f}],["exec","g",{g}],["exec",10]]}}]}}"#
        );
        engine::program::json::read(&text).expect("a program")
    }

    #[test]
    fn functions_that_grow_are_told_by_name_and_halfway_they_grow_half() {
        let (factors, inflated) = factors(&program(100, 50), &program(150, 50));
        assert_eq!(factors.functions, [1.5, 1.0]);
        let first = &inflated[0];
        assert_eq!((first.function.as_deref(), first.one_ns, first.many_ns), (Some("f"), 100.0, 150.0));
        let counts = [1, 2, 3];
        assert_eq!(between(&factors, 1, &counts).functions, [1.0, 1.0]);
        assert_eq!(between(&factors, 2, &counts).functions, [1.25, 1.0]);
        assert_eq!(between(&factors, 3, &counts).functions, [1.5, 1.0]);
    }

    #[test]
    fn inflation_makes_the_prediction_longer() {
        let program = program(100, 50);
        let predicted = predictions(&[1, 2], &[1.0, 1.25], |_| &program);
        assert_eq!((predicted[1].time_ns, predicted[1].inflated_ns), (160.0, 200.0));
        assert_eq!(predicted[0].time_ns, predicted[0].inflated_ns);
    }

    /// Radiosity of SPLASH takes locks eight million times a second: two thirds of its operations were lost, and it was
    /// predicted from the rest, wrongly by a third.
    #[test]
    fn a_recording_with_holes_is_not_predicted_from() {
        let of = |events: u64, lost: u64| {
            let trust = engine::report::Trust { events, lost, ..engine::report::Trust::default() };
            lost_share(&Program { trust, ..Program::default() })
        };
        assert_eq!((of(0, 0), of(100, 0)), (0.0, 0.0));
        assert!(of(1_000_000, 100) <= MOST_LOST && of(8_000_000, 15_000_000) > MOST_LOST);
        assert!(recorded_again(0.65).starts_with("65 % of the records were lost"));
    }
}
