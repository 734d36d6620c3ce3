//! The data of all formats: the measured run, and the prediction for each CPU count. Each part is computed when a
//! format asks for it.

use crate::cores::on_all_cores;
use engine::attribution::{Grouping, with_sampled_calls};
use engine::predict::{self, Timing};
use engine::program::{FunctionRef, Program, ProgramError};
use engine::report::{Builder, Cpus, Detail, Report};
use engine::time::Timestamp;
use engine::timeline::Timeline;
use engine::view::{Frame, Measured, PathView, StackBuilder, Stacks, Together};
use std::sync::OnceLock;

/// The origin of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The file's name.
    pub name: String,
    /// The recorded command.
    pub command: Option<String>,
    /// The host of the recording.
    pub host: Option<String>,
    /// Version of longpole that made the recording.
    pub longpole: Option<String>,
    /// One instant on the recording's clock, and the same instant since 1970, nanoseconds.
    pub clock: Option<(u64, u64)>,
}

impl About {
    /// An instant of the recording's clock in nanoseconds since 1970.
    pub fn at(&self, time: Timestamp) -> Option<u64> {
        let (monotonic_ns, realtime_ns) = self.clock?;
        Some(realtime_ns.saturating_sub(monotonic_ns).saturating_add(time.0))
    }
}

/// See the module.
#[derive(Debug)]
pub struct Model<'a> {
    /// The measured run; `None` for a program JSON.
    pub measured: Option<Measured<'a>>,
    /// The program, with its samples.
    pub program: &'a Program,
    /// CPU counts, in the order asked for.
    pub cpus: Vec<Cpus>,
    /// The origin of the recording.
    pub about: About,
    /// The same program with calls of the functions that only samples show.
    expanded: OnceLock<Program>,
    report: OnceLock<Report>,
    machine: predict::Model,
    timing: Timing<'a>,
}

impl<'a> Model<'a> {
    /// The model of a recording, or of a program without a recording.
    ///
    /// # Errors
    /// The program fails [`Program::check`].
    pub fn new(
        timeline: Option<&'a Timeline>,
        program: &'a Program,
        cpus: Vec<Cpus>,
        about: About,
    ) -> Result<Model<'a>, ProgramError> {
        let machine = predict::Model::default();
        let timing = Timing::new(program, &machine)?;
        let measured = timeline.map(|timeline| Measured::of(timeline, program));
        Ok(Model {
            measured,
            program,
            cpus,
            about,
            report: OnceLock::new(),
            expanded: OnceLock::new(),
            machine,
            timing,
        })
    }

    /// The program that [`Model::path`] runs: threads and functions have the same numbers as in [`Model::program`].
    pub fn expanded(&self) -> &Program {
        self.expanded.get_or_init(|| with_sampled_calls(self.program.clone()))
    }

    /// The critical path of the predicted run on a number of CPUs.
    pub fn path(&self, cpus: Cpus) -> PathView {
        // The program was checked, and stays valid when sampled functions become calls.
        match Timing::new(self.expanded(), &self.machine) {
            Ok(timing) => engine::view::path(&timing, cpus),
            Err(_) => PathView::default(),
        }
    }

    /// The predicted time on a number of CPUs, nanoseconds; the same as in a report.
    pub fn time_ns(&self, cpus: Cpus) -> f64 {
        self.timing.time_ns(cpus)
    }

    /// Computes call stacks with their CPU time, and their share of the predicted time on each CPU count.
    pub fn stacks(&self) -> Stacks {
        let builder = StackBuilder::new(&self.timing);
        let parts = on_all_cores(&self.timing.groups(&self.cpus), |cpus| builder.at(cpus));
        builder.conclude(&self.cpus, parts.into_iter().flatten().collect())
    }

    /// Computes report, prediction and call stacks in one pass; [`Model::keep`] then stores the report.
    ///
    /// # Errors
    /// The program fails [`Program::check`].
    pub fn together(&self) -> Result<Together<'_>, ProgramError> {
        Together::new(&self.timing, &self.cpus, &self.machine)
    }

    /// Stores a report for the CPU counts of this model.
    pub fn keep(&self, report: Report) {
        // A report that was made before is the same.
        let _ = self.report.set(report);
    }

    /// The machine model that [`Model::path`] uses.
    pub fn machine(&self) -> &predict::Model {
        &self.machine
    }

    /// The report for the CPU counts of this model, computed at first use.
    pub fn report(&self) -> &Report {
        self.report.get_or_init(|| {
            match Builder::new(self.program, &self.cpus, Detail::Functions, Grouping::Function, &self.machine)
            {
                Ok(builder) => {
                    let parts = on_all_cores(&builder.groups(), |cpus| builder.at(cpus));
                    builder.conclude(parts.into_iter().flatten().collect())
                }
                Err(report) => *report,
            }
        })
    }

    /// Name of the recorded program: that of its first process.
    pub fn title(&self) -> &str {
        let process = self.program.threads.first().and_then(|thread| thread.process.as_deref());
        process.unwrap_or("program")
    }

    /// File and line of a frame; without a sampled line, where its function begins.
    pub fn source(&self, frame: &Frame) -> (Option<&str>, Option<u64>) {
        let place = frame.place.and_then(|place| self.program.samples.places.get(place.0 as usize));
        match place.and_then(|place| place.line.as_deref()) {
            Some(line) => file_and_line(line),
            None => self.declared(frame.function),
        }
    }

    /// File and line where a function begins.
    pub fn declared(&self, function: FunctionRef) -> (Option<&str>, Option<u64>) {
        let function = self.program.functions.get(function.0 as usize);
        function.and_then(|function| function.location.as_deref()).map_or((None, None), file_and_line)
    }

    /// The name of a thread of the program.
    pub fn thread(&self, number: u32) -> &str {
        self.program.threads.get(number as usize).map_or("?", |thread| &thread.name)
    }

    /// A function's name; for `None`, the name for code where no function is known.
    pub fn function(&self, function: Option<FunctionRef>) -> &str {
        let function = function.and_then(|function| self.program.functions.get(function.0 as usize));
        function.map_or(NO_FUNCTION, |function| &function.name)
    }
}

/// Stands for a function where none is known.
pub const NO_FUNCTION: &str = "(function not known)";

/// File and line of `file:line`.
fn file_and_line(location: &str) -> (Option<&str>, Option<u64>) {
    match location.rsplit_once(':').map(|(file, line)| (file, line.parse())) {
        Some((file, Ok(line))) => (Some(file), Some(line)),
        _ => (Some(location), None),
    }
}
