//! Arguments → plan, for commands that record. Errors of several arguments together are found here.

use super::record_args::{CaptureArguments, RecordArguments, TopArguments, ValidateArguments};
use super::value;
use crate::exit::UserError;
use crate::plan::cpus_in_command::{depends_on_cpus, doubling};
use crate::plan::keep::{Keep, RingPlan};
use crate::plan::per::Per;
use crate::plan::trigger::Condition;
use crate::plan::{
    Breakpoints, CapturePlan, CpuRunsPlan, ListenPlan, MOST_FUNCTIONS, RecordPlan, Selection, TargetPlan,
    TopPlan, ValidatePlan, names_locks,
};
use capture::interpose::InterposeMode;
use capture::target::{self, CpuList};
use engine::event::SamplingFact;
use std::time::Duration;

/// The plan of `longpole record`.
pub fn record(mut args: RecordArguments) -> Result<RecordPlan, UserError> {
    let per = record_requests(&args.per, &mut args.capture);
    let cpu_runs = args.cpus.map(|cpus| CpuRunsPlan { cpus, rounds: args.runs });
    if cpu_runs.as_ref().is_some_and(|runs| runs.cpus.len() < 2) {
        return Err(UserError::usage(
            "--cpus needs two numbers of CPUs to compare",
            "give two or more, such as --cpus 1,2",
        ));
    }
    let keep = keep(args.ring, args.trigger, args.max_size)?;
    Ok(RecordPlan {
        cpu_runs,
        keep,
        duration: args.duration,
        per: args.per.into_iter().next(),
        output: args.output,
        force: args.force,
        capture: per.recorded(from_samples_if_attached(capture("record", args.capture)?)),
    })
}

/// Kinds of requests that need no probes.
#[derive(Clone, Copy, Default)]
struct Requests {
    at_sockets: bool,
    traces: bool,
}

impl Requests {
    fn recorded(self, capture: CapturePlan) -> CapturePlan {
        CapturePlan { every_request: self.at_sockets, thread_contexts: self.traces, ..capture }
    }
}

/// Adds the functions whose calls are requests; returns which other requests are meant.
fn record_requests<'p>(per: impl IntoIterator<Item = &'p Per>, capture: &mut CaptureArguments) -> Requests {
    let mut others = Requests::default();
    for per in per {
        match per {
            Per::Function(name) => capture.functions.push(name.clone()),
            Per::Sockets(_) => others.at_sockets = true,
            Per::Traces => others.traces = true,
        }
    }
    others
}

fn keep(
    ring: Option<Duration>,
    triggers: Vec<Condition>,
    most_bytes: Option<u64>,
) -> Result<Keep, UserError> {
    match (ring, most_bytes) {
        (Some(span), _) => Ok(Keep::Ring(RingPlan { span, triggers })),
        (None, _) if !triggers.is_empty() => Err(UserError::usage(
            "--trigger saves a ring, but --ring is missing",
            "give the length to keep, such as --ring 60s --trigger 'parallelism<1.5 for 2s'",
        )),
        (None, Some(most_bytes)) => Ok(Keep::Newest { most_bytes }),
        (None, None) => Ok(Keep::All),
    }
}

/// The plan of `longpole top`.
pub fn top(mut args: TopArguments) -> Result<TopPlan, UserError> {
    if args.window < args.refresh {
        return Err(UserError::usage(
            "--window is shorter than --refresh",
            "give a window at least as long as the time between two screens, such as --window 10s",
        ));
    }
    let per = record_requests(&args.per, &mut args.capture);
    let capture = from_samples(on_request(capture("top", args.capture)?, args.once || args.batch));
    Ok(TopPlan {
        cpus: args.cpus,
        refresh: args.refresh,
        window: args.window,
        duration: args.duration,
        once: args.once,
        batch: args.batch,
        json: args.json,
        listen: args.listen.map(|address| ListenPlan { address, token: args.listen_token }),
        per: args.per,
        capture: per.recorded(capture),
    })
}

/// The plan of a live screen without probes: the user may ask for some while it runs.
fn on_request(capture: CapturePlan, is_printed: bool) -> CapturePlan {
    match capture.breakpoints {
        Breakpoints::None if !is_printed => CapturePlan { breakpoints: Breakpoints::OnRequest, ..capture },
        _ => capture,
    }
}

/// Like `from_samples`, for a program that already runs and serves users: attaching must not slow it down. With
/// `--overhead none` all probes are set at once.
fn from_samples_if_attached(capture: CapturePlan) -> CapturePlan {
    match capture.target {
        TargetPlan::Attach { .. } if capture.budget_ppm.is_some() => {
            let from_samples =
                capture.breakpoints == Breakpoints::Exact && capture.selection.functions.is_empty();
            CapturePlan { from_samples, ..capture }
        }
        _ => capture,
    }
}

/// Without an option about functions, an unknown program's functions are sampled first: probing all of them at once may
/// slow it down.
fn from_samples(capture: CapturePlan) -> CapturePlan {
    let from_samples = capture.breakpoints == Breakpoints::Exact
        && capture.sampling.is_some()
        && capture.selection.functions.is_empty();
    CapturePlan { from_samples, ..capture }
}

/// The plan of `longpole validate`.
pub fn validate(args: ValidateArguments) -> Result<ValidatePlan, UserError> {
    // The measured time includes the command's children, so these are recorded, too.
    let capture = CapturePlan { children: true, ..capture("validate", args.capture)? };
    let TargetPlan::Launch { command, cpus: pool, .. } = &capture.target else {
        return Err(UserError::usage(
            "a running process cannot be validated, since longpole cannot run it again",
            "give its command: `longpole validate -- COMMAND`",
        ));
    };
    let cpus = args.cpus.unwrap_or_else(|| {
        let there = pool.clone().map_or_else(CpuList::allowed, Ok).map_or(1, |cpus| cpus.len());
        doubling(u32::try_from(there).unwrap_or(u32::MAX))
    });
    let several = args.record_on.is_none() || depends_on_cpus(command);
    if several && args.output.is_some() {
        return Err(UserError::usage(
            "-o is for one recording, but here each number of CPUs has its own recording",
            "leave out -o",
        ));
    }
    Ok(ValidatePlan {
        cpus,
        record_on: args.record_on,
        runs: args.runs,
        recordings: args.recordings,
        max_error: args.max_error,
        output: args.output,
        force: args.force,
        json: args.json,
        capture,
    })
}

/// The target: processes or a command.
fn target(name: &str, args: &mut CaptureArguments) -> Result<TargetPlan, UserError> {
    let pids = value::pids(&args.pid, target::named)?;
    Ok(match (pids.is_empty(), args.command.is_empty()) {
        (false, false) => {
            return Err(UserError::usage(
                "both -p PID and a command to start",
                format!("give only one: `longpole {name} -p PID` or `longpole {name} -- COMMAND`"),
            ));
        }
        (true, true) => {
            return Err(UserError::usage(
                format!("nothing to {name}"),
                format!(
                    "give a running process (`longpole {name} -p PID`) or a command (`longpole {name} -- COMMAND`)"
                ),
            ));
        }
        (false, true) if args.keep_root => {
            return Err(UserError::usage(
                "--keep-root needs a command to start, but -p PID was given",
                "leave out --keep-root",
            ));
        }
        (false, true) if args.cpu_list.is_some() => {
            return Err(UserError::usage(
                "--cpu-list needs a command to start, but -p PID was given",
                "leave out --cpu-list; `taskset -p` changes the CPUs of a running process",
            ));
        }
        (false, true) => TargetPlan::Attach { pids },
        (true, false) => {
            let command = std::mem::take(&mut args.command);
            TargetPlan::Launch { command, keep_root: args.keep_root, cpus: args.cpu_list.take() }
        }
    })
}

fn capture(name: &str, mut args: CaptureArguments) -> Result<CapturePlan, UserError> {
    let target = target(name, &mut args)?;
    if args.interpose == InterposeMode::Always && matches!(target, TargetPlan::Attach { .. }) {
        return Err(UserError::usage(
            "--interpose always needs a command to start, but -p PID was given",
            "leave out --interpose: a library can be put before libc only when a program starts",
        ));
    }
    // A validation needs no stacks, and its recording should disturb the command as little as possible.
    let rate_hz = args.frequency.unwrap_or(if name == "validate" { 0 } else { 499 });
    Ok(CapturePlan {
        children_to_their_end: args.children,
        children: match &target {
            TargetPlan::Launch { .. } => !args.no_children,
            TargetPlan::Attach { .. } => args.children,
        },
        target,
        interpose: args.interpose,
        // A user who names a lock function wants locks recorded.
        breakpoints: match args.functions.is_empty() {
            _ if args.exact || names_locks(&args.functions) => Breakpoints::Exact,
            true => Breakpoints::None,
            false => Breakpoints::Named,
        },
        selection: Selection {
            functions: args.functions,
            exclude: args.exclude,
            max_functions: args.max_functions.unwrap_or(MOST_FUNCTIONS),
        },
        spin: args.spin,
        from_samples: false,
        sampling: (rate_hz > 0).then_some(SamplingFact { rate_hz, call_graph: args.call_graph }),
        fitting_samples: args.frequency.is_none(),
        budget_ppm: args.overhead,
        every_request: false,
        thread_contexts: false,
        max_rate_hz: args.max_rate,
        depth: args.depth,
        ring_bytes: args.ring_size,
    })
}
