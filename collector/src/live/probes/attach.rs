//! Attaches to the target: chooses processes and functions, in an order that loses no event between two steps.
//!
//! 1. A command that is to be started is held at the gate: the process exists, but does not run the program.
//! 2. Symbols are read, which may take long. For running programs that get no probe at once, this comes after step 3.
//! 3. The capture starts. Records are complete from its `start_ns` on.
//! 4. Only then are threads read from /proc: threads born after `start_ns` are in the records.
//! 5. The command is released as soon as the ring reader runs.

use super::alive::is_alive;
use super::c_libraries::CLibraries;
use super::initial_functions::{self, Chosen, Subject, choose, named_cost};
use super::initial_libraries::{InitialLibraries, tries_locks};
use super::lock_recording::{How, LockRecording};
use super::probed_functions::{First, ProbedFunctions};
use super::target_remarks;
use crate::exit::UserError;
use crate::live::rings::LiveSource;
use crate::plan::{Breakpoints, CapturePlan, TargetPlan};
use capture::probe::{
    Capture, CaptureOptions, ProbeError, ProbeErrorKind, Since, check_capabilities, check_programs, now_ns,
    usual_ring_bytes,
};
use capture::target::launching::limits;
use capture::target::machine::{idle_wake, line_transfer};
use capture::target::{
    ChildStream, CpuList, GatedChild, Launch, LaunchOptions, Process, attach_facts, cpu_quota, descendants,
    monotonic_ns,
};
use capture::thread_contexts::in_program;
use capture::unwind::Sampler;
use engine::event::{Facts, SamplingFact};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;
use symbols::Parsers;

/// A function with more calls per second than this loses its probes, unless the user asks otherwise. A call with probes
/// takes 2 µs where hits are cheap, and 20 µs on the virtual machine where longpole was measured: 2 % and 20 % of a
/// CPU.
const MAX_RATE_HZ: u64 = 10_000;

/// A target that is being recorded. A launched command is still held at the gate.
pub struct Attached {
    /// The target's name, e.g. `quicksort (pid 4242)`; not yet safe for terminals.
    pub subject: String,
    /// Name and pid of the first process, for file names.
    pub name: String,
    /// Processes at the start; the first one gives the recording its name.
    pub pids: Vec<u32>,
    /// The kernel side.
    pub source: LiveSource,
    /// The target's state at the start of the window.
    pub facts: Facts,
    /// Chooses functions of processes that start later; `None` without function probes.
    pub functions: Option<ProbedFunctions>,
    /// The launched command.
    pub child: Option<GatedChild>,
    /// Which functions were chosen and which were not: a sentence for each program.
    pub remarks: Vec<String>,
    /// How synchronization operations are recorded, or why they are not.
    pub locks: How,
}

/// Attaches. A launched command's output goes to `output`; `None`: to longpole's own output.
pub fn attach(plan: &CapturePlan, output: Option<File>) -> Result<Attached, UserError> {
    let mut attached = attach_to(plan, output)?;
    attached.facts.spin.clone_from(&plan.spin);
    Ok(attached)
}

fn attach_to(plan: &CapturePlan, output: Option<File>) -> Result<Attached, UserError> {
    let deepest = probe_abi::MAX_OPEN_FRAMES;
    if plan.depth.is_some_and(|depth| depth as usize > deepest) {
        return Err(UserError::usage(
            format!("--depth is more than {deepest} calls"),
            format!("give --depth a number up to {deepest}, or leave it out"),
        ));
    }
    limits::raise_descriptors();
    // These checks come before a command is started, since it could not be recorded otherwise.
    check_programs().map_err(probe_error)?;
    // Checked before the target is touched: the error names the missing capability instead of the first unreadable file.
    check_capabilities().map_err(probe_error)?;
    match &plan.target {
        TargetPlan::Attach { pids } => attach_to_processes(plan, pids),
        TargetPlan::Launch { command, keep_root, cpus } => {
            let mut options =
                LaunchOptions { keep_root: *keep_root, cpus: cpus.clone(), ..LaunchOptions::default() };
            if let Some(output) = output {
                let copy = output.try_clone().map_err(|error| {
                    UserError::runtime(format!("cannot open the command's output: {error}"), "try again")
                })?;
                options.stdin = ChildStream::Null;
                options.stdout = ChildStream::File(output);
                options.stderr = ChildStream::File(copy);
            }
            let locks = LockRecording::choose(plan, command)?;
            locks.tell(&mut options);
            // Measured before the command exists: it measures the CPUs as they are without longpole's load.
            let (idle_wake, line_transfer) = (idle_wake::measure(), line_transfer::measure());
            let child = Launch::gated(command, options)?;
            let pid = child.pid();
            let mut attached = attach_to_command(plan, child, locks)?;
            attached.facts.idle_wake = idle_wake;
            attached.facts.line_transfer = line_transfer;
            attached.facts.cpu_quota = cpu_quota(pid);
            attached.facts.launched = Some(pid);
            Ok(attached)
        }
    }
}

fn attach_to_processes(plan: &CapturePlan, asked: &[u32]) -> Result<Attached, UserError> {
    let (mut subjects, mut traced) = (Vec::new(), Vec::new());
    let processes = asked.iter().map(|&pid| Process::open(pid)).collect::<Result<Vec<_>, _>>()?;
    for process in &processes {
        traced.extend(target_remarks::traced(process));
        traced.extend(target_remarks::replaced(process));
        subjects.push(Subject::running(process));
    }
    let roots = subjects.len();
    if plan.children {
        let known: BTreeSet<u32> = asked.iter().copied().collect();
        let below: BTreeSet<u32> = asked.iter().flat_map(|&pid| descendants(pid)).collect();
        for pid in below.difference(&known) {
            // A child that has ended in the meantime, or that may not be read, must not stop the recording of the other
            // processes.
            if let Ok(process) = Process::open(*pid) {
                subjects.push(Subject::running(&process));
            }
        }
    }
    let Started { mut capture, mut functions, mut facts, mut remarks, mut unprobed, libraries } =
        start(plan, &subjects, roots, None)?;
    remarks.extend(traced);
    let start_ns = capture.start_ns();
    let hurry = crate::threads::Hurry::now();
    for process in &processes {
        merge(&mut facts, attach_facts(process, plan.children));
    }
    drop(hurry);
    let used = facts.threads.iter().flat_map(|thread| &thread.cpus).map(|&cpu| cpu as usize);
    facts.idle_wake = CpuList::of(used).and_then(|used| idle_wake::measure_beside(&used));
    facts.line_transfer = line_transfer::known();
    facts.cpu_quota = asked.first().and_then(|&pid| cpu_quota(pid));
    remarks.extend(processes.iter().filter_map(target_remarks::ended));
    // Children born between the list and the start: their parents were not recorded yet.
    let known: BTreeSet<u32> = subjects.iter().map(|subject| subject.pid).collect();
    let late: Vec<u32> =
        facts.processes.iter().map(|process| process.pid).filter(|pid| !known.contains(pid)).collect();
    let attacher = capture.attacher();
    // A program executed between the choice of functions and the start has no record.
    let runs_another = |pid: &u32| functions.as_ref().is_some_and(|functions| functions.runs_another(*pid));
    let begun: Vec<u32> = known.iter().copied().filter(runs_another).collect();
    for &pid in late.iter().chain(&begun) {
        let since = Since { missing_ns: start_ns, looked_ns: now_ns() };
        let first = functions.as_mut().and_then(|functions| {
            let process = Process::open(pid).ok()?;
            functions.of_process(pid, process.program_name(), &process.open_path()).ok()
        });
        let First { probes, facts: more, module, .. } = first.unwrap_or_default();
        facts.functions.extend(more);
        facts.modules.extend(module);
        capture.record_process(pid);
        if let Err(error) = attacher.add_process(pid, since, &probes) {
            capture.leave_unprobed(pid, start_ns);
            unprobed.push(error.message);
        }
    }
    if let Some(functions) = &mut functions {
        probe_libraries(plan, functions, &mut capture, &late);
    }
    remarks.extend(unprobed_remark(&unprobed));
    facts.start_ns = start_ns;
    let mut pids: Vec<u32> = subjects.iter().map(|subject| subject.pid).collect();
    pids.extend(late);
    Ok(Attached {
        subject: subject(&subjects, roots),
        name: subjects.first().map(|subject| subject.name.clone()).unwrap_or_default(),
        source: LiveSource::new(capture, None)
            .sampled(plan.sampling.map(sampler))
            .publishing(plan.thread_contexts.then(|| pids.clone())),
        pids,
        facts,
        functions,
        child: None,
        remarks,
        locks: libraries.how(plan, None),
    })
}

/// Puts probes on the C libraries of processes that were not in the list when the capture started.
fn probe_libraries(plan: &CapturePlan, functions: &mut ProbedFunctions, capture: &mut Capture, pids: &[u32]) {
    let (attacher, start_ns) = (capture.attacher(), capture.start_ns());
    if plan.breakpoints != Breakpoints::Exact {
        return;
    }
    for &pid in pids {
        if tries_locks(plan) {
            functions.will_try_locks(pid, start_ns);
            capture.decide_libc_later(pid);
            continue;
        }
        let Some(libc) = functions.libc.probes_of(pid) else { continue };
        if let Err(error) = attacher.add_libc(&libc, start_ns, None) {
            log::warn!("{}", error.message);
        }
    }
}

fn attach_to_command(
    plan: &CapturePlan,
    mut child: GatedChild,
    locks: LockRecording,
) -> Result<Attached, UserError> {
    let pid = child.pid();
    let (interposed, how) = locks.start(&mut child)?;
    let path = PathBuf::from(child.command_name());
    let name = path.file_name().map(|name| symbols::safe(&name.to_string_lossy())).unwrap_or_default();
    let binary = child.command_binary().map(PathBuf::from);
    let subjects =
        [Subject { pid, name: name.clone(), binary, held: true, is_script: child.is_script(), inner: None }];
    let inside = interposed.as_ref().map(|interposed| interposed.library().to_owned());
    let Started { capture, functions, mut facts, remarks, libraries, .. } =
        start(plan, &subjects, 0, inside)?;
    let locks = match how {
        How::NotInside(reason) => libraries.how(plan, Some(reason)),
        how => how,
    };
    if let Some(place) = child.command_binary().filter(|_| plan.thread_contexts).and_then(in_program) {
        capture.expect_contexts(pid, place);
    }
    // What the process does at the gate (before its program starts) is not the command's work.
    facts.start_ns = monotonic_ns().max(capture.start_ns());
    merge(&mut facts, attach_facts(&Process::open(pid)?, false));
    for process in facts.processes.iter_mut().filter(|process| process.pid == pid) {
        process.comm.clone_from(&name);
        if let Some(binary) = child.command_binary() {
            process.executable = symbols::safe_path(binary);
        }
    }
    Ok(Attached {
        subject: subject(&subjects, 1),
        name,
        pids: vec![pid],
        source: LiveSource::new(capture, interposed)
            .launching(pid, child.command_binary().map(PathBuf::from))
            .publishing(plan.thread_contexts.then(|| vec![pid]))
            .sampled(plan.sampling.map(|sampling| sampler(sampling).launching(pid))),
        facts,
        functions,
        child: Some(child),
        remarks,
        locks,
    })
}

fn sampler(sampling: SamplingFact) -> Sampler {
    Sampler::new(sampling.call_graph).reading_with(Parsers::of_longpole())
}

struct Started {
    capture: Capture,
    functions: Option<ProbedFunctions>,
    facts: Facts,
    remarks: Vec<String>,
    /// Reasons why processes got no function probes, one for each.
    unprobed: Vec<String>,
    libraries: InitialLibraries,
}

/// Chooses functions and starts the capture. For the first `strict` subjects, an unreadable program or a refused probe
/// is an error, unless the process has ended in the meantime. For all other subjects it is a remark.
fn start(
    plan: &CapturePlan,
    subjects: &[Subject],
    strict: usize,
    inside: Option<PathBuf>,
) -> Result<Started, UserError> {
    let is_inside = inside.is_some();
    let may_probe = plan.breakpoints != Breakpoints::None;
    let mut functions = may_probe.then(|| functions_of(plan, inside));
    let (mut facts, mut remarks) = (Facts::default(), Vec::new());
    let tries_locks = tries_locks(plan);
    // Running programs get no probe at once, so that events and samples start before symbols are read.
    let none_at_once = match plan.breakpoints {
        Breakpoints::None | Breakpoints::OnRequest => true,
        Breakpoints::Named => false,
        Breakpoints::Exact => tries_locks && plan.selection.functions.is_empty(),
    };
    let is_early = none_at_once && subjects.iter().all(|subject| !subject.held);
    let mut chosen = Chosen::default();
    // Running programs serve users, and reading their symbols can wait, so it runs at low priority. A command at the
    // gate waits for the choice, so it does not.
    let patience =
        || subjects.iter().all(|subject| !subject.held).then(crate::threads::Hurry::later).flatten();
    if let Some(functions) = functions.as_mut().filter(|_| !is_early) {
        let _later = patience();
        chosen = choose(functions, subjects, strict, &mut facts, &mut remarks)?;
    }
    let (mut libc, mut libraries) = (Vec::new(), InitialLibraries::default());
    if tries_locks {
        libraries = InitialLibraries::of_running(subjects.iter().map(|subject| subject.pid));
    } else if let (Breakpoints::Exact, Some(functions)) = (plan.breakpoints, &mut functions) {
        let with_probes = subjects.iter().filter(|subject| !(subject.held && is_inside));
        libc = libraries.choose(&mut functions.libc, with_probes);
    }
    let mut capture = Capture::start(CaptureOptions {
        libc: libc.clone(),
        pids: subjects.iter().map(|subject| subject.pid).collect(),
        // A command at the gate cannot have ended: a refused probe is an error.
        optional_pids: if strict == 0 { 0 } else { subjects.len() },
        children: plan.children,
        running: is_early,
        functions: chosen.probes,
        most_functions: functions.as_ref().map_or(0, ProbedFunctions::number_limit),
        uprobes: may_probe,
        link_program: None,
        ring_bytes: plan.ring_bytes.map_or_else(usual_ring_bytes, |bytes| bytes as usize),
        max_rate_hz: plan.max_rate_hz.unwrap_or(MAX_RATE_HZ),
        sampling: plan.sampling,
        fitting_samples: plan.fitting_samples,
        max_depth: plan.depth.unwrap_or(0),
        every_request: plan.every_request,
        thread_contexts: plan.thread_contexts,
        budget_ppm: plan.budget_ppm,
    })
    .map_err(probe_error)?;
    let strict = subjects.get(..strict).unwrap_or_default();
    for (pid, error) in capture.unprobed() {
        if strict.iter().any(|subject| subject.pid == *pid) && is_alive(*pid) {
            return Err(probe_error(error.clone()));
        }
    }
    facts.hit_costs = capture.hit_costs();
    if let Some(functions) = &mut functions {
        functions.may_cost(plan.budget_ppm, facts.hit_costs);
        functions.pairs.refused(&facts.functions, |function| capture.has_refused(function))?;
    }
    if let (true, Some(functions)) = (tries_locks, &mut functions) {
        for subject in subjects {
            functions.will_try_locks(subject.pid, capture.start_ns());
            capture.decide_libc_later(subject.pid);
        }
    }
    if let Some(functions) = functions.as_mut().filter(|_| is_early) {
        let looked_ns = now_ns();
        let _later = patience();
        chosen = choose(functions, subjects, strict.len(), &mut facts, &mut remarks)?;
        initial_functions::probe_later(&mut capture, subjects, &chosen, looked_ns, &mut remarks);
    }
    facts.tick_ns = capture::target::kernel_tick_ns();
    facts.idle_tick_ns = facts.tick_ns.filter(|_| capture.idle_asks_by_chance());
    facts.sampling = plan.sampling;
    remarks.extend(named_cost(plan, facts.hit_costs, facts.functions.len()));
    for pid in chosen.unread {
        capture.leave_unprobed(pid, capture.start_ns());
    }
    let unprobed = capture.unprobed().iter().map(|(_, error)| error.message.clone()).collect();
    libraries.got_probes(&libc, &capture);
    Ok(Started { capture, functions, facts, remarks, unprobed, libraries })
}

/// Creates the choice of functions for this plan.
fn functions_of(plan: &CapturePlan, inside: Option<PathBuf>) -> ProbedFunctions {
    let libraries = CLibraries::new(Parsers::of_longpole(), inside);
    let libraries = if plan.breakpoints == Breakpoints::Exact { libraries } else { libraries.unprobed() };
    let functions = ProbedFunctions::new(&plan.selection, plan.depth, libraries, Parsers::of_longpole())
        .only_selected(plan.from_samples, plan.sampling.is_some())
        .few_at_once(plan.sampling.is_some())
        .trying_locks(tries_locks(plan));
    if plan.breakpoints == Breakpoints::OnRequest { functions.none_unasked() } else { functions }
}

/// One sentence about all processes without probes, since there may be hundreds.
fn unprobed_remark(reasons: &[String]) -> Option<String> {
    let first = reasons.first()?;
    let count = reasons.len();
    let processes = if count == 1 { "child process gets" } else { "child processes get" };
    Some(format!("{count} {processes} no function probes: {first}"))
}

fn merge(facts: &mut Facts, more: Facts) {
    let known: BTreeSet<u32> = facts.processes.iter().map(|process| process.pid).collect();
    facts.processes.extend(more.processes.into_iter().filter(|process| !known.contains(&process.pid)));
    facts.threads.extend(more.threads.into_iter().filter(|thread| !known.contains(&thread.pid)));
}

fn subject(subjects: &[Subject], roots: usize) -> String {
    let mut text = match subjects.first() {
        Some(Subject { name, pid, inner: Some(inner), .. }) => {
            format!("{name} (pid {pid}, {inner} in its PID namespace)")
        }
        Some(first) => format!("{} (pid {})", first.name, first.pid),
        None => String::new(),
    };
    match roots {
        0 | 1 => {}
        2 => text.push_str(" and 1 more process"),
        more => text.push_str(&format!(" and {} more processes", more - 1)),
    }
    text
}

/// A failure of the capture as an error for the user.
pub fn probe_error(error: ProbeError) -> UserError {
    let ProbeError { kind, message, hint } = error;
    match kind {
        ProbeErrorKind::ReplayOnly | ProbeErrorKind::Permission | ProbeErrorKind::Unsupported => {
            UserError::permission(message, hint)
        }
        ProbeErrorKind::Target | ProbeErrorKind::Failed => UserError::runtime(message, hint),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Code;

    #[test]
    fn missing_rights_and_features_are_the_permission_exit_code() {
        for (kind, code) in [
            (ProbeErrorKind::ReplayOnly, Code::Permission),
            (ProbeErrorKind::Permission, Code::Permission),
            (ProbeErrorKind::Unsupported, Code::Permission),
            (ProbeErrorKind::Target, Code::Runtime),
            (ProbeErrorKind::Failed, Code::Runtime),
        ] {
            let error = ProbeError { kind, message: "m".into(), hint: "h".into() };
            assert_eq!(probe_error(error).code, code, "{kind:?}");
        }
    }

    #[test]
    fn many_children_without_probes_are_one_sentence() {
        assert_eq!(unprobed_remark(&[]), None);
        let reasons = ["no room".to_owned(), "gone".to_owned()];
        assert_eq!(
            unprobed_remark(&reasons).as_deref(),
            Some("2 child processes get no function probes: no room")
        );
        let one = unprobed_remark(&reasons[1..]).expect("a sentence");
        assert!(one.starts_with("1 child process gets"), "{one}");
    }

    #[test]
    fn the_subject_names_the_first_process_and_counts_the_others() {
        let subjects: Vec<Subject> = (1..4)
            .map(|pid| Subject {
                pid,
                name: "sort".into(),
                binary: None,
                held: false,
                is_script: false,
                inner: None,
            })
            .collect();
        assert_eq!(subject(&subjects, 1), "sort (pid 1)");
        assert_eq!(subject(&subjects, 2), "sort (pid 1) and 1 more process");
        assert_eq!(subject(&subjects, 3), "sort (pid 1) and 2 more processes");
        let inner = Subject {
            pid: 70,
            name: "sort".into(),
            binary: None,
            held: false,
            is_script: false,
            inner: Some(3),
        };
        assert_eq!(subject(&[inner], 1), "sort (pid 70, 3 in its PID namespace)");
    }
}
