//! Arguments → plan: everything that can be wrong about a command line is found here.

use super::args::{self, Command};
use super::{study, value};
use crate::exit::UserError;
use crate::export::{Format, Table};
use crate::plan::{
    CapturePlan, DoctorPlan, ExportPlan, GatePlan, InfoPlan, InputPlan, ListenPlan, MOST_FUNCTIONS,
    NotesPlan, OutputPlan, Plan, PredictPlan, RecordPlan, ReportPlan, Selection, SymbolPlan, SymbolizePlan,
    TargetPlan, TopPlan, ValidatePlan, ViewPlan,
};
use crate::present::text::By;
use crate::validate::{depends_on_cpus, doubling};
use capture::interpose::InterposeMode;
use capture::target::{self, CpuList};
use engine::event::{CallGraph, SamplingFact};
use engine::predict::{Io, Model};
use std::path::{Path, PathBuf};

/// Checks a command line; every error is a usage error.
pub fn check(command: Command) -> Result<Plan, UserError> {
    Ok(match command {
        Command::Record(args) => Plan::Record(RecordPlan {
            duration: args.duration.map(|text| value::duration("--duration", &text)).transpose()?,
            output: record_output(args.output)?,
            force: args.force,
            capture: from_samples_if_attached(capture("record", args.capture)?),
        }),
        Command::Top(args) => Plan::Top(top(args)?),
        Command::Report(args::ReportArguments { html: Some(output), file, cpus, sources, .. }) => {
            Plan::View(ViewPlan {
                input: InputPlan::of(file),
                cpus: value::cpu_list(&cpus)?,
                output: Some(OutputPlan::of(output)),
                open: false,
                sources: false,
                force: false,
                measured: Vec::new(),
                symbols: symbols(sources)?,
            })
        }
        Command::Report(args) => Plan::Report(ReportPlan {
            scheduler: value::scheduler(&args.model)?,
            cpus: value::cpu_list(&args.cpus)?,
            top: args.top.map(|text| value::count("--top", &text)).transpose()?,
            input: InputPlan::of(args.file),
            by: rows(&args.by)?,
            json: args.json,
            symbols: symbols(args.sources)?,
            segments: args.segments,
            raw: args.raw,
            probed_only: args.probed_only,
            wide: args.wide,
            all: args.all,
        }),
        Command::Predict(args) => Plan::Predict(predict(args)?),
        Command::Slack(args) => Plan::Slack(study::slack(args)?),
        Command::Parallelism(args) => Plan::Parallelism(study::parallelism(args)?),
        Command::CompareMetrics(args) => Plan::CompareMetrics(study::compare_metrics(args)?),
        Command::Paths(args) => Plan::Paths(study::paths(args)?),
        Command::WhatIf(args) => Plan::WhatIf(study::what_if(args)?),
        Command::Diff(args) => Plan::Diff(study::diff(args)?),
        Command::Check(args) => Plan::Check(study::check(args)?),
        Command::Symbolize(args) => {
            Plan::Symbolize(SymbolizePlan { symbols: symbols(args.sources)?, file: args.file })
        }
        Command::Export(args) => Plan::Export(export(args)?),
        Command::View(args) => Plan::View(ViewPlan {
            input: InputPlan::of(args.file),
            cpus: value::cpu_list(&args.cpus)?,
            open: !args.no_open && args.output.as_deref() != Some(Path::new("-")),
            output: args.output.map(OutputPlan::of),
            sources: args.sources,
            force: args.force,
            measured: args.measured,
            symbols: symbols(args.symbols)?,
        }),
        Command::Info(args) => Plan::Info(InfoPlan { input: InputPlan::of(args.file), json: args.json }),
        Command::Notes(args) => Plan::Notes(NotesPlan { input: InputPlan::of(args.file) }),
        Command::Validate(args) => Plan::Validate(validate(args)?),
        Command::Doctor(args) => Plan::Doctor(DoctorPlan { json: args.json }),
        Command::Completions(args) => Plan::Completions(args.shell),
        Command::Man(args) => Plan::Man(args.folder),
        Command::Gate(args) => Plan::Gate(GatePlan { fd: args.fd, command: args.command }),
        Command::Symbols(args) => {
            Plan::Symbols(symbols::sandbox::Limits { memory: args.memory_bytes, cpu_s: args.cpu_seconds })
        }
    })
}

fn symbols(args: args::SymbolSources) -> Result<SymbolPlan, UserError> {
    if let Some(folder) = args.symbol_dir.iter().find(|folder| !folder.is_dir()) {
        return Err(UserError::usage(
            format!("--symbol-dir {} is no folder", folder.display()),
            "give a folder with debug files or binaries",
        ));
    }
    Ok(SymbolPlan { folders: args.symbol_dir, debuginfod: args.debuginfod, spin: args.spin })
}

fn top(args: args::TopArguments) -> Result<TopPlan, UserError> {
    let refresh = value::duration("--refresh", &args.refresh)?;
    let window = value::duration("--window", &args.window)?;
    if window < refresh {
        return Err(UserError::usage(
            "--window is shorter than --refresh",
            "give a window at least as long as the time between two screens, such as --window 10s",
        ));
    }
    if args.json && !(args.once || args.batch) {
        return Err(UserError::usage(
            "--json needs --once or --batch",
            "add --once: one window as JSON, or --batch: one after the other",
        ));
    }
    Ok(TopPlan {
        cpus: value::cpu_list(&args.cpus)?,
        refresh,
        window,
        duration: args.duration.map(|text| value::duration("--duration", &text)).transpose()?,
        once: args.once,
        batch: args.batch,
        json: args.json,
        listen: args
            .listen
            .map(|text| value::address("--listen", &text))
            .transpose()?
            .map(|address| ListenPlan { address, token: args.listen_token }),
        capture: from_samples(capture("top", args.capture)?),
    })
}

/// The same for a program that runs already and has users: attaching must not slow it. With `--overhead none`
/// all probes are set at once.
fn from_samples_if_attached(capture: CapturePlan) -> CapturePlan {
    match capture.target {
        TargetPlan::Attach { .. } if capture.budget_ppm.is_some() => {
            let from_samples = capture.uprobes && capture.selection.functions.is_empty();
            CapturePlan { from_samples, ..capture }
        }
        _ => capture,
    }
}

/// Without an option about functions, those of an unknown program are sampled first: probing all at once may
/// slow it.
fn from_samples(capture: CapturePlan) -> CapturePlan {
    let from_samples =
        capture.uprobes && capture.sampling.is_some() && capture.selection.functions.is_empty();
    CapturePlan { from_samples, ..capture }
}

fn validate(args: args::ValidateArguments) -> Result<ValidatePlan, UserError> {
    // What is measured is the command with its children, so these are recorded, too.
    let chosen = &args.capture;
    let wants_functions = args.calibrate
        || chosen.max_functions.is_some()
        || !(chosen.functions.is_empty() && chosen.exclude.is_empty());
    let mut capture = CapturePlan { children: true, ..capture("validate", args.capture)? };
    if !wants_functions {
        // Names do not make a prediction better, and what hot functions' probes cost until they are gone cannot be taken out
        // exactly: Raytrace of SPLASH was predicted wrongly by 51 % with them and 10 % without.
        capture.selection.max_functions = 0;
    }
    let TargetPlan::Launch { command, cpus: pool, .. } = &capture.target else {
        return Err(UserError::usage(
            "a running process cannot be validated: it cannot be run again",
            "give its command: `longpole validate -- COMMAND`",
        ));
    };
    let cpus = match &args.cpus {
        Some(text) => value::cpu_counts("--cpus", text)?,
        None => {
            let there = pool.clone().map_or_else(CpuList::allowed, Ok).map_or(1, |cpus| cpus.len());
            doubling(u32::try_from(there).unwrap_or(u32::MAX))
        }
    };
    let record_on = match args.record_on.as_str() {
        "each" => None,
        text => Some(value::count("--record-on", text)?),
    };
    let several = record_on.is_none() || depends_on_cpus(command);
    if several && (args.output.is_some() || args.calibrate) {
        let option = if args.calibrate { "--calibrate" } else { "-o" };
        return Err(UserError::usage(
            format!("{option} is for one recording, and here each number of CPUs has its own"),
            format!("leave out {option}"),
        ));
    }
    Ok(ValidatePlan {
        cpus,
        record_on,
        runs: value::count("--runs", &args.runs)?,
        recordings: value::count("--recordings", &args.recordings)?,
        calibrate: args.calibrate,
        max_error: args.max_error.map(|text| value::share("--max-error", &text)).transpose()?,
        output: record_output(args.output)?,
        force: args.force,
        json: args.json,
        capture,
    })
}

/// The processes or the command.
fn target(name: &str, args: &mut args::CaptureArguments) -> Result<TargetPlan, UserError> {
    let pids = value::pids(&args.pid, target::named)?;
    Ok(match (pids.is_empty(), args.command.is_empty()) {
        (false, false) => {
            return Err(UserError::usage(
                "both -p PID and a command to start",
                format!("give one of them: `longpole {name} -p PID` or `longpole {name} -- COMMAND`"),
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
                "--keep-root is about a command to start, but -p PID was given",
                "leave out --keep-root",
            ));
        }
        (false, true) if args.cpu_list.is_some() => {
            return Err(UserError::usage(
                "--cpu-list is about a command to start, but -p PID was given",
                "leave out --cpu-list: where a running process runs is its own affair (`taskset -p` changes it)",
            ));
        }
        (false, true) => TargetPlan::Attach { pids },
        (true, false) => {
            let cpus = args.cpu_list.take().map(|text| value::cpus_to_run_on("--cpu-list", &text));
            TargetPlan::Launch {
                command: std::mem::take(&mut args.command),
                keep_root: args.keep_root,
                cpus: cpus.transpose()?,
            }
        }
    })
}

fn capture(name: &str, mut args: args::CaptureArguments) -> Result<CapturePlan, UserError> {
    let target = target(name, &mut args)?;
    if args.no_uprobes && !args.functions.is_empty() {
        return Err(UserError::usage(
            "--no-uprobes and --functions contradict each other",
            "leave out one of them: without uprobes no function is recorded",
        ));
    }
    let interpose = interpose(&args.interpose)?;
    if interpose == InterposeMode::Always && matches!(target, TargetPlan::Attach { .. }) {
        return Err(UserError::usage(
            "--interpose always is about a command to start, but -p PID was given",
            "a library can be put before libc only when a program starts: leave out --interpose",
        ));
    }
    for glob in args.functions.iter().chain(&args.exclude).chain(&args.spin) {
        if glob.is_empty() {
            return Err(UserError::usage(
                "an empty GLOB matches no function",
                "give a pattern such as --functions 'sort*'",
            ));
        }
    }
    Ok(CapturePlan {
        children_to_their_end: args.children,
        children: match &target {
            TargetPlan::Launch { .. } => !args.no_children,
            TargetPlan::Attach { .. } => args.children,
        },
        target,
        interpose,
        uprobes: !args.no_uprobes,
        selection: Selection {
            functions: args.functions,
            exclude: args.exclude,
            max_functions: match &args.max_functions {
                Some(text) => value::count("--max-functions", text)?,
                None => MOST_FUNCTIONS,
            },
        },
        spin: args.spin,
        from_samples: false,
        // A prediction needs no stacks, and its recording should be disturbed as little as possible.
        sampling: sampling(
            args.frequency.as_deref().unwrap_or(if name == "validate" { "0" } else { "499" }),
            &args.call_graph,
        )?,
        fitting_samples: args.frequency.is_none(),
        budget_ppm: value::budget("--overhead", &args.overhead)?,
        max_rate_hz: args.max_rate.map(|text| value::count("--max-rate", &text)).transpose()?,
        depth: args.depth.map(|text| value::count("--depth", &text)).transpose()?,
        ring_bytes: args.ring_size.map(|text| value::ring_bytes("--ring-size", &text)).transpose()?,
    })
}

fn predict(args: args::PredictArguments) -> Result<PredictPlan, UserError> {
    if args.files.iter().filter(|file| file.as_os_str() == "-").count() > 1 {
        return Err(UserError::usage("standard input is asked for twice", "give - once"));
    }
    let time =
        |option: &str, text: Option<String>| text.map(|text| value::time_ns(option, &text)).transpose();
    Ok(PredictPlan {
        inputs: match args.files.is_empty() {
            true => vec![InputPlan::Newest],
            false => args.files.into_iter().map(|file| InputPlan::of(Some(file))).collect(),
        },
        cpus: value::cpu_list(&args.cpus)?,
        json: args.json,
        model: Model {
            scheduler: value::scheduler(&args.model)?,
            slice_ns: args.slice.map(|text| value::duration("--slice", &text)).transpose()?.map(value::ns),
            switch_cost_ns: time("--switch-cost", args.switch_cost)?,
            wake_latency_ns: time("--wake-latency", args.wake_latency)?,
            wake_cost_ns: time("--wake-cost", args.wake_cost)?,
            idle_tick_ns: time("--idle-tick", args.idle_tick)?,
            quota: args.quota.map(|text| value::percent("--quota", &text)).transpose()?,
            devices: args.devices.iter().map(|text| value::device(text)).collect::<Result<_, _>>()?,
            io: io(&args.io)?,
            seed: value::number("--seed", &args.seed)?,
            runs: runs(&args.runs)?,
        },
    })
}

fn sampling(frequency: &str, call_graph: &str) -> Result<Option<SamplingFact>, UserError> {
    /// What a kernel allows every user (`kernel.perf_event_max_sample_rate`) is mostly more; a stack takes
    /// microseconds.
    const MOST_HZ: u32 = 10_000;
    let rate_hz = match frequency {
        "0" => return Ok(None),
        text => value::count("-F", text)?,
    };
    if rate_hz > MOST_HZ {
        return Err(UserError::usage(
            format!("-F {rate_hz} is more than {MOST_HZ} samples per second"),
            format!("give a number up to {MOST_HZ}, such as -F 499"),
        ));
    }
    let call_graph = match call_graph {
        "auto" => CallGraph::Auto,
        "fp" => CallGraph::Fp,
        "dwarf" => CallGraph::Dwarf,
        other => {
            return Err(UserError::usage(
                format!("--call-graph cannot be '{other}'"),
                "it can be auto (the default), fp (frame pointers) or dwarf (unwind tables)",
            ));
        }
    };
    Ok(Some(SamplingFact { rate_hz, call_graph }))
}

/// More runs than this tell no more.
fn runs(text: &str) -> Result<u32, UserError> {
    const MOST: u32 = 1000;
    let runs: u32 = value::count("--runs", text)?;
    if runs > MOST {
        return Err(UserError::usage(
            format!("--runs {runs} is more than {MOST}"),
            format!("give a number up to {MOST}"),
        ));
    }
    Ok(runs)
}

fn io(text: &str) -> Result<Io, UserError> {
    match text {
        "recorded" => Ok(Io::AsRecorded),
        "serial" => Ok(Io::Serial),
        "unlimited" => Ok(Io::Unlimited),
        other => Err(UserError::usage(
            format!("--io cannot be '{other}'"),
            "it can be recorded (the default), serial or unlimited",
        )),
    }
}

fn interpose(text: &str) -> Result<InterposeMode, UserError> {
    match text {
        "auto" => Ok(InterposeMode::Auto),
        "always" => Ok(InterposeMode::Always),
        "never" => Ok(InterposeMode::Never),
        other => Err(UserError::usage(
            format!("--interpose cannot be '{other}'"),
            "it can be auto (the default), always or never",
        )),
    }
}

fn record_output(output: Option<PathBuf>) -> Result<Option<PathBuf>, UserError> {
    match output {
        Some(path) if path.as_os_str() == "-" => {
            Err(UserError::usage("a recording cannot go to standard output", "give a file: -o FILE"))
        }
        Some(path) if path.as_os_str().is_empty() => {
            Err(UserError::usage("-o needs a file name", "give a file: -o FILE"))
        }
        output => Ok(output),
    }
}

fn rows(by: &str) -> Result<By, UserError> {
    match by {
        "function" => Ok(By::Function),
        "lock" => Ok(By::Lock),
        "wait" => Ok(By::Wait),
        "line" => Ok(By::Line),
        "file" => Ok(By::File),
        "module" => Ok(By::Module),
        other => Err(UserError::usage(
            format!("no report by '{other}'"),
            "reports exist --by function, line, file, module, lock and wait",
        )),
    }
}

fn export(args: args::ExportArguments) -> Result<ExportPlan, UserError> {
    let format = format(&args.format)?;
    let cpus = args.cpus.as_deref().map(value::cpu_list).transpose()?;
    match (format, &cpus) {
        (None, Some(_)) => {
            let hint = "leave --cpus out, or give another format with -f";
            return Err(UserError::usage("--cpus is for critical paths: a program JSON has none", hint));
        }
        (Some(format), Some(cpus)) if format.is_of_one() && cpus.len() != 1 => {
            let hint = "give one, for example --cpus 8; without --cpus it shows CPU time";
            return Err(UserError::usage(format!("-f {} shows one CPU count", format.name()), hint));
        }
        (Some(format), Some(_)) if format.is_of_unlimited() => {
            let hint = "leave --cpus out: which paths are the longest is asked on unlimited CPUs";
            return Err(UserError::usage(format!("-f {} has no CPU counts", format.name()), hint));
        }
        _ => {}
    }
    let is_stdout = args.output.as_os_str() == "-";
    let table = table(format, args.table.as_deref(), is_stdout)?;
    Ok(ExportPlan {
        format,
        cpus,
        table,
        raw: args.raw,
        input: InputPlan::of(args.file),
        output: OutputPlan::of(args.output),
        force: args.force,
    })
}

fn table(
    format: Option<Format>,
    name: Option<&str>,
    is_stdout: bool,
) -> Result<Option<&'static Table>, UserError> {
    let has_tables = format.is_some_and(Format::has_tables);
    let names: Vec<&str> = Table::ALL.iter().map(|table| table.name).collect();
    let names = names.join(", ");
    match name {
        None if has_tables && is_stdout => Err(UserError::usage(
            "there are several tables, and standard output is one",
            format!("give a folder with -o, or one of these with --table: {names}"),
        )),
        None => Ok(None),
        Some(_) if !has_tables => Err(UserError::usage(
            "--table is for tables",
            "give -f csv, ndjson or parquet, or leave --table out",
        )),
        Some(name) => Table::of(name).map(Some).ok_or_else(|| {
            UserError::usage(format!("there is no table '{name}'"), format!("tables are: {names}"))
        }),
    }
}

/// `None` is the program JSON.
fn format(name: &str) -> Result<Option<Format>, UserError> {
    if name == "program" {
        return Ok(None);
    }
    Format::of(name).map(Some).ok_or_else(|| {
        let names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
        let hint = format!("formats are: program, {}", names.join(", "));
        UserError::usage(format!("no export format '{name}'"), hint)
    })
}
