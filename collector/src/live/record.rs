//! `longpole record`

use super::cpu_runs::{add_cpu_runs, on_most_cpus};
use super::paragraph::paragraph;
use super::summary::{RecordSummary, shell_word};
use crate::exit::{Outcome, UserError, say};
use crate::live::analyse::limit_and_cost;
use crate::live::keep::{Output, Part, Written, broken_off_text, kept_text, record_output, session_meta};
use crate::live::main_loop::{Ended, LibcCounts, Mode, Setup, run};
use crate::live::probes::{Attached, How, alive_while, attach, is_alive};
use crate::live::rings::AtEnd;
use crate::plan::RecordPlan;
use crate::plan::keep::Keep;
use crate::present::style::{self, Paint};
use crate::present::words::finding::operations_tried;
use capture::target::launching::signals;
use capture::target::{CpuTimes, GatedChild, facts_of, threads_at_end};
use engine::event::{Facts, FunctionFact};
use recording::{ClockAnchor, Meta, Older, Overwrite, check_file, default_name};
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

/// Reads the threads, and the CPU time that other programs used since the start.
fn at_end() -> AtEnd {
    let before = CpuTimes::now();
    Box::new(move |pids| {
        let threads = pids.iter().filter_map(|&pid| threads_at_end(pid).ok()).flatten().collect();
        (threads, Some(before.used_by_others(pids)))
    })
}

/// Records until the target ends, the time is over or the user stops the recording. Writes a summary to stderr.
pub fn record(plan: &RecordPlan) -> Result<Outcome, UserError> {
    record_with(&on_most_cpus(plan)?, Silence::Speaking)
}

/// Records without messages. The command gets no input, and its output is dropped. Recording ends when the command
/// ends, even if a daemon that it started runs on.
pub fn record_silently(plan: &RecordPlan) -> Result<Outcome, UserError> {
    record_with(plan, Silence::Silent)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Silence {
    Speaking,
    Silent,
}

fn record_with(plan: &RecordPlan, silence: Silence) -> Result<Outcome, UserError> {
    let output = match silence {
        Silence::Speaking => None,
        Silence::Silent => Some(nowhere()?),
    };
    let overwrite = if plan.force { Overwrite::AnyFile } else { Overwrite::Nothing };
    // Checked before anything is started or probed.
    if let Some(path) = &plan.output {
        check_file(path, overwrite)?;
    }
    signals::say_if_ended_early();
    if matches!(plan.keep, Keep::Ring(_)) {
        signals::survive_early_saves();
    }
    let Attached { subject, name, pids, source, facts, functions, child, remarks, locks } =
        attach(&plan.capture, output)?;
    let clock = ClockAnchor::now(capture::target::monotonic_ns());
    let mut meta = meta(plan, &pids, clock);
    meta.options.insert("locks".to_owned(), locks.word().to_owned());
    let usual = default_name(&name, pids.first().copied().unwrap_or(0), clock.realtime_ns);
    let Output { destination, saving, path } = record_output::open(plan, meta, &facts, usual)?;
    if silence == Silence::Speaking {
        announce(plan, &subject, &remarks, child.is_some());
    }
    let mut functions_known = facts.functions.clone();
    // Events of a running program are recorded before its symbols are read, so that time counts for --duration.
    let before = match child {
        Some(_) => Duration::ZERO,
        None => Duration::from_nanos(capture::target::monotonic_ns().saturating_sub(facts.start_ns)),
    };
    // Recording ends with the command: a daemon that it starts would never end.
    let ends_all = silence == Silence::Silent || !plan.capture.children_to_their_end;
    let command = child.as_ref().map(GatedChild::pid).filter(|_| ends_all);
    let mut ended = run(Setup {
        mode: Mode::Record,
        source: Box::new(source),
        facts,
        pids,
        children: plan.capture.children,
        duration: plan.duration.map(|duration| duration.saturating_sub(before)),
        destination: Some(destination),
        saving,
        window: None,
        screen: None,
        print: None,
        listen: None,
        alive: alive_while(command),
        at_end: at_end(),
        snapshots: Some(Box::new(snapshot)),
        choose: functions.map(|functions| Box::new(functions) as _),
        child,
    })
    .map_err(|error| UserError::runtime(format!("cannot record: {error}"), "see `longpole doctor`"))?;

    ended.elapsed += before;
    let path = ended.file.as_ref().and_then(|written| written.path.clone()).unwrap_or(path);
    functions_known.extend(ended.observed.more_functions.iter().cloned());
    if let Some(outcome) = failed(&mut ended, (&plan.keep, &path), &subject)? {
        return Ok(outcome);
    }
    // Runs on other CPU counts make sense only for a command that succeeds.
    if ended.child_status.is_some_and(|status| status.success())
        && let Err(error) = add_cpu_runs(plan, &path)
    {
        say(style::for_stderr().paint(Paint::Warning, &format!("! {}", error.message)));
    }
    if silence == Silence::Speaking {
        let written = ended.file.clone().unwrap_or_default();
        let (limit, cost) = limit_and_cost(&path, written.summary.events);
        let usual = summary(subject, &ended, &path, &functions_known);
        let summary = RecordSummary {
            children: plan.capture.children,
            locks: locks_text(&locks, &ended.observed.libc),
            breakpoints: plan.capture.breakpoints,
            samples: plan.capture.sampling.zip(ended.observed.counts.samples),
            kept: kept_text(&plan.keep, &written, &ended.observed.saved),
            per: words_about_requests(plan),
            limit,
            overhead: cost.or(usual.overhead),
            ..usual
        };
        // If stderr is closed, the summary cannot be shown.
        let _ = summary.write(&style::for_stderr(), style::columns_of_stderr(), io::stderr().lock());
    }
    Ok(outcome(&ended))
}

/// Options that the next command needs to show requests.
fn words_about_requests(plan: &RecordPlan) -> String {
    plan.per
        .as_ref()
        .map_or(String::new(), |per| format!(" --per {}", shell_word(Path::new(&per.to_string()))))
}

/// Facts about the present state of these processes and their threads.
fn snapshot(pids: &[u32]) -> Facts {
    // The time is read first: a thread that ends during the reading then ends in the events after it.
    let start_ns = capture::target::monotonic_ns();
    Facts { start_ns, ..facts_of(pids) }
}

/// The outcome in place of a summary: the error of a command that did not start or of a thread that failed, or the
/// outcome of a recording that the user broke off. `None`: none of these happened.
fn failed(
    ended: &mut Ended,
    (keep, path): (&Keep, &Path),
    subject: &str,
) -> Result<Option<Outcome>, UserError> {
    if let Some(error) = ended.launch_error.take() {
        // The file has nothing of the command. A ring may have written no file yet: the name may be another one's.
        if ended.file.is_some() {
            let _ = std::fs::remove_file(path);
        }
        return Err(error.into());
    }
    if ended.aborted {
        if let Some(text) = broken_off_text(keep, path) {
            let style = style::for_stderr();
            say(style.paint(Paint::Warning, &style.text(&text)));
        }
        return Ok(Some(Outcome::Signal(libc::SIGINT)));
    }
    if let Some(failure) = &ended.failure {
        let runs_on = ended.child_status.is_none() && ended.alive.iter().any(|&pid| is_alive(pid));
        let runs_on = if runs_on { format!("; {subject} runs on without longpole") } else { String::new() };
        let older = match ended.file.as_ref().map(|written| &written.older) {
            Some(Older::Apart(older)) => format!("; the part before it is in {}", older.display()),
            _ => String::new(),
        };
        return Err(write_error(path, &format!("{} failed: {}{older}{runs_on}", failure.part, failure.text)));
    }
    Ok(None)
}

/// The file that drops a command's output.
fn nowhere() -> Result<File, UserError> {
    File::options().read(true).write(true).open("/dev/null").map_err(|error| {
        UserError::runtime(format!("cannot open /dev/null: {error}"), "see whether /dev is mounted")
    })
}

/// Prints the remarks before recording begins.
fn announce(plan: &RecordPlan, subject: &str, remarks: &[String], is_launched: bool) {
    let style = style::for_stderr();
    for line in remarks.iter().flat_map(|remark| paragraph(&style.text(remark), style::columns_of_stderr())) {
        say(style.paint(Paint::Dim, &line));
    }
    let until = match plan.duration {
        Some(duration) => format!(" for {}", humantime::format_duration(duration)),
        None if is_launched => " until it ends".to_owned(),
        None => ", ^C ends it".to_owned(),
    };
    say(style.text(&format!("recording {subject}{until}")));
}

/// The exit code is that of the launched command, however the recording ended: its children may have outlived it. Without
/// a command all went well.
pub fn outcome(ended: &Ended) -> Outcome {
    // A command without a status still runs: time was over, or the user left. That was asked for, so it is not a
    // failure, and there is no exit code to pass on. The summary says that the command runs on.
    ended.child_status.map_or(Outcome::Done, Outcome::from)
}

fn meta(plan: &RecordPlan, pids: &[u32], clock: ClockAnchor) -> Meta {
    let mut meta = session_meta(&plan.capture, pids, clock);
    match &plan.keep {
        Keep::All => {}
        Keep::Ring(ring) => {
            meta.options.insert("ring".to_owned(), humantime::format_duration(ring.span).to_string());
        }
        Keep::Newest { most_bytes } => {
            meta.options.insert("max-size".to_owned(), most_bytes.to_string());
        }
    }
    meta
}

pub(super) fn summary(
    subject: String,
    ended: &Ended,
    path: &Path,
    functions: &[FunctionFact],
) -> RecordSummary {
    let Written { summary: file, part, .. } = ended.file.clone().unwrap_or_default();
    let kept_for = match part {
        Part::All => ended.elapsed,
        Part::Last { length, .. } => length,
    };
    let taken_off = functions.iter().filter(|function| ended.observed.taken_off.contains(&function.id));
    RecordSummary {
        runs_on: ended.child_runs_on.then(|| subject.clone()),
        interrupted: (ended.child_was_interrupted && ended.child_status.is_some()).then(|| subject.clone()),
        subject,
        elapsed: ended.elapsed,
        kept_for,
        events: file.events,
        file_bytes: file.bytes,
        file: path.to_owned(),
        loss: ended.observed.counts.loss,
        left_out: file.left_out,
        overhead: ended.observed.counts.overhead,
        probed: ended.observed.probed.len(),
        taken_off: taken_off.map(|function| function.name.clone()).collect(),
        refused: ended.observed.refused.difference(&ended.observed.probed).count(),
        unprobed: ended.observed.unprobed.clone(),
        ..RecordSummary::default()
    }
}

/// Says how synchronization operations were recorded, in processes at the start and in later ones.
fn locks_text(how: &How, libc: &LibcCounts) -> String {
    let mut text = how.to_string();
    let LibcCounts { probed, without, why, off, unfit } = libc;
    let processes =
        |count: usize| if count == 1 { "1 process".to_owned() } else { format!("{count} processes") };
    match how {
        How::Probes { .. } | How::Tried(_) if probed.len() > 1 => {
            text.push_str(&format!(", in {}", processes(probed.len())))
        }
        How::Probes { .. } | How::Tried(_) => {}
        _ if !probed.is_empty() => {
            text.push_str(&format!("; by probes on the C library of {} more", processes(probed.len())));
        }
        _ => {}
    }
    if !off.is_empty() {
        let names: Vec<&str> = off.iter().map(|family| family.name()).collect();
        text.push_str(&format!("; lost their probes because of too many uses: {}", names.join(", ")));
    }
    for (family, tried) in unfit {
        text.push_str(&format!("; no probes on {}: {}", family.name(), operations_tried(tried)));
    }
    if *without > 0 {
        let why = why.as_deref().unwrap_or_default();
        text.push_str(&format!("; not of {} ({why})", processes(*without)));
    }
    text
}

fn write_error(path: &Path, why: &str) -> UserError {
    UserError::runtime(
        format!("{}: {why}", path.display()),
        "the part written before can be read: `longpole info FILE` says how much",
    )
}
