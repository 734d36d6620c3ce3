//! Shows what a session or a program contains, as text and as JSON (schema `longpole-info/1`).

use crate::cell::{duration, grouped};
use crate::present::style::{Paint, Style};
use crate::present::table;
use crate::present::words::finding::missing;
use crate::present::words::traffic;
use engine::event::{
    FunctionId, HitCosts, KernelLockWaits, KernelLocks, LeftOut, LossCounts, ModuleFact, NoteKind, Overhead,
    Recording, Requests, SampleCounts, SamplingFact,
};
use engine::program::{Program, endpoints};
use recording::{Meta, SessionInfo};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

/// Facts about a file. Fields may be added.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Facts {
    schema: &'static str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<SessionFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<ProgramFacts>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct SessionFacts {
    format: String,
    whole: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    damage: Option<DamageFacts>,
    meta: Option<Meta>,
    file_bytes: u64,
    chunks: u64,
    events: u64,
    unknown_chunks: u64,
    unknown_records: u64,
    /// Whether the events were not read: then only the index says that they are complete.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    events_unread: bool,
    duration_ns: u64,
    processes: usize,
    /// For processes outside the first PID namespace, by pid: their pids in the namespaces below, the innermost one
    /// last.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    inner_pids: BTreeMap<u32, Vec<u32>>,
    threads: usize,
    functions: usize,
    probes_off: usize,
    /// Binaries with probed functions, and which symbols each binary lacked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    modules: Vec<ModuleFact>,
    gaps: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    loss: Option<LossCounts>,
    /// Facts that the file had no room for.
    #[serde(skip_serializing_if = "LeftOut::is_nothing")]
    left_out: LeftOut,
    #[serde(skip_serializing_if = "Option::is_none")]
    overhead: Option<Overhead>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hit_costs: Option<HitCosts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sampling: Option<SamplingFact>,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<SampleCounts>,
    /// Waits for locks of the kernel; absent where they were not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel_locks: Option<KernelLocks>,
    /// Requests over sockets; absent where they were not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<Requests>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct DamageFacts {
    at_byte: u64,
    unread_bytes: u64,
    unread_chunks: u64,
    unread_events: u64,
    text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct ProgramFacts {
    threads: usize,
    operations: usize,
    functions: usize,
    objects: usize,
}

const SCHEMA: &str = "longpole-info/1";

/// Largest number of binaries shown.
const MODULES: usize = 4;

impl Facts {
    /// Facts about a session.
    pub fn of_session(recording: &Recording, info: &SessionInfo) -> Facts {
        let times = || recording.events.iter().map(|event| event.header().time_ns);
        // Start and end of the window, or times of the first and last event if these are not known.
        let start = Some(recording.facts.start_ns).filter(|start| *start != 0).or_else(|| times().min());
        let end = recording.facts.end.as_ref().map(|end| end.end_ns).or_else(|| times().max());
        let duration_ns = start.zip(end).map_or(0, |(start, end)| end.saturating_sub(start));
        // A function that several processes run may have lost its probes several times.
        let off = recording.notes.iter().filter_map(|note| match &note.kind {
            NoteKind::ProbesOff { functions, .. } => Some(functions),
            NoteKind::Gap { .. }
            | NoteKind::EndedUnprobed { .. }
            | NoteKind::ProbesOn { .. }
            | NoteKind::Stack { .. }
            | NoteKind::Changed { .. }
            | NoteKind::InKernel { .. } => None,
        });
        let off: BTreeSet<FunctionId> = off.flatten().copied().collect();
        let is_gap = |kind: &NoteKind| matches!(kind, NoteKind::Gap { .. } | NoteKind::EndedUnprobed { .. });
        let gaps = recording.notes.iter().filter(|note| is_gap(&note.kind));
        let session = SessionFacts {
            format: format!("{}.{}", info.version.0, info.version.1),
            whole: info.whole(),
            damage: info.damage.as_ref().map(|damage| DamageFacts {
                at_byte: damage.at_byte,
                unread_bytes: damage.unread_bytes,
                unread_chunks: damage.unread_chunks,
                unread_events: damage.unread_events,
                text: damage.to_string(),
            }),
            meta: info.meta.clone(),
            file_bytes: info.file_bytes,
            chunks: info.chunks,
            events: info.events,
            unknown_chunks: info.unknown_chunks,
            unknown_records: info.unknown_records,
            events_unread: false,
            duration_ns,
            processes: recording.facts.processes.len(),
            inner_pids: recording
                .facts
                .processes
                .iter()
                .filter(|process| !process.inner_pids.is_empty())
                .map(|process| (process.pid, process.inner_pids.clone()))
                .collect(),
            threads: recording.facts.threads.len(),
            functions: recording.facts.functions.len(),
            probes_off: off.len(),
            modules: recording.facts.modules.clone(),
            gaps: gaps.count(),
            loss: recording.facts.end.as_ref().map(|end| end.loss),
            left_out: recording.facts.end.as_ref().map(|end| end.left_out).unwrap_or_default(),
            overhead: recording.facts.end.as_ref().and_then(|end| end.overhead),
            hit_costs: recording.facts.hit_costs,
            sampling: recording.facts.sampling,
            samples: recording.facts.end.as_ref().and_then(|end| end.samples),
            kernel_locks: recording.facts.end.as_ref().and_then(|end| end.kernel_locks.clone()),
            requests: recording.facts.end.as_ref().and_then(|end| end.requests.clone()),
        };
        Facts { schema: SCHEMA, kind: "session", session: Some(session), program: None }
    }

    /// The same facts, with a mark that says whether the events were not read.
    pub fn unread(mut self, events_unread: bool) -> Facts {
        if let Some(session) = &mut self.session {
            session.events_unread = events_unread;
        }
        self
    }

    /// Events recorded.
    pub fn events(&self) -> u64 {
        self.session.as_ref().map_or(0, |session| session.events)
    }

    /// Facts about a program.
    pub fn of_program(program: &Program) -> Facts {
        let facts = ProgramFacts {
            threads: program.threads.len(),
            operations: program.threads.iter().map(|thread| thread.operations.len()).sum(),
            functions: program.functions.len(),
            objects: program.objects.len(),
        };
        Facts { schema: SCHEMA, kind: "program", session: None, program: Some(facts) }
    }
}

/// Writes the facts as one line of JSON.
pub fn json(facts: &Facts, mut out: impl Write) -> io::Result<()> {
    engine::program::json::write_value(facts, &mut out)?;
    out.write_all(b"\n")
}

/// Facts that are not in the file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beside<'a> {
    /// What limits the program, if known.
    pub limit: Option<&'a str>,
    /// The file as the user gave it; empty for the newest one.
    pub file: &'a str,
}

/// A few lines of text.
pub fn text(facts: &Facts, beside: Beside<'_>, style: &Style, mut out: impl Write) -> io::Result<()> {
    let out = &mut out;
    if let Some(session) = &facts.session {
        session_text(session, style, out)?;
    }
    if let Some(program) = &facts.program {
        line(out, style, "kind", "program JSON")?;
        line(out, style, "threads", &grouped(program.threads as u64))?;
        line(out, style, "operations", &grouped(program.operations as u64))?;
        line(out, style, "functions", &grouped(program.functions as u64))?;
        line(out, style, "objects", &grouped(program.objects as u64))?;
    }
    if let Some(limit) = beside.limit {
        line(out, style, "LIMIT", limit)?;
        line(out, style, "next", format!("longpole report {}", beside.file).trim_end())?;
    }
    Ok(())
}

fn session_text(session: &SessionFacts, style: &Style, out: &mut impl Write) -> io::Result<()> {
    line(out, style, "kind", &format!("session, format {}", session.format))?;
    if let Some(damage) = &session.damage {
        table::wrap(out, style, Paint::Warning, "", &style.text(&format!("! {}.", damage.text)), "  ")?;
    }
    if let Some(meta) = &session.meta {
        line(out, style, "command", &meta.command.join(" "))?;
        let pid = |pid: &u32| match session.inner_pids.get(pid) {
            Some(inner) => {
                let inner: Vec<String> = inner.iter().map(u32::to_string).collect();
                format!("{pid} ({} in its PID namespace)", inner.join(" / "))
            }
            None => pid.to_string(),
        };
        let pids: Vec<String> = meta.pids.iter().map(pid).collect();
        line(out, style, "processes", &pids.join(", "))?;
        let time = UNIX_EPOCH.checked_add(Duration::from_nanos(meta.clock.realtime_ns));
        let time = time.map(|time| humantime::format_rfc3339_seconds(time).to_string());
        line(out, style, "recorded", &time.unwrap_or_default())?;
        let machine = format!(
            "{}, Linux {}, {}, {} CPUs",
            meta.host, meta.kernel_release, meta.machine, meta.cpu_count
        );
        line(out, style, "on", &machine)?;
        line(out, style, "by", &format!("longpole {}", meta.longpole_version))?;
    }
    // A launched command ran for less time: it was held at the gate until all was ready.
    line(out, style, "duration", &format!("{} of recording", duration(session.duration_ns as f64)))?;
    let unread = if session.events_unread { ", by the file's index" } else { "" };
    let events = format!("{} in {} bytes{unread}", grouped(session.events), grouped(session.file_bytes));
    line(out, style, "events", &events)?;
    line(out, style, "threads", &format!("{} at the start", grouped(session.threads as u64)))?;
    let functions = format!(
        "{} probed, {} lost their probes",
        grouped(session.functions as u64),
        grouped(session.probes_off as u64)
    );
    line(out, style, "functions", &functions)?;
    if let Some(sampling) = &session.sampling {
        line(out, style, "samples", &crate::present::samples(sampling, session.samples.as_ref()))?;
    }
    if let Some(cost) = &session.overhead {
        line(out, style, "cost", &crate::present::cost(cost))?;
    }
    for module in session.modules.iter().take(MODULES) {
        let missing = module.missing.as_deref().unwrap_or("all symbols and lines there");
        line(out, style, "symbols", &format!("{}: {missing}", module.name))?;
    }
    if let Some(more) = session.modules.len().checked_sub(MODULES).filter(|more| *more > 0) {
        line(out, style, "", &format!("({more} more: --json has all)"))?;
    }
    if !session.left_out.is_nothing() {
        line(out, style, "left out", &format!("{}: no room in the file", missing(&session.left_out)))?;
    }
    if session.loss.is_some() {
        line(out, style, "kernel locks", &kernel_locks(session.kernel_locks.as_ref()))?;
        for (number, text) in requests(session).iter().enumerate() {
            line(out, style, if number == 0 { "requests" } else { "" }, text)?;
        }
    }
    let lost = session.loss.as_ref().map_or("not known: the recording has no end".to_owned(), lost);
    line(out, style, "lost", &lost)
}

/// Largest number of endpoints that get a line.
const ENDPOINTS: usize = 8;

/// Requests that were served and asked, a line for each endpoint; empty if they were not counted.
fn requests(session: &SessionFacts) -> Vec<String> {
    let Some(requests) = &session.requests else { return Vec::new() };
    let ends = endpoints(Some(requests));
    let mut lines: Vec<String> = ends
        .iter()
        .take(ENDPOINTS)
        .map(|end| format!("{}{}", if end.served { "answered: " } else { "sent: " }, traffic::sentence(end)))
        .collect();
    let more = ends.len().saturating_sub(ENDPOINTS);
    if more > 0 {
        lines.push(format!("({more} more: --json has all)"));
    }
    if requests.dropped_connections > 0 {
        let dropped = grouped(requests.dropped_connections);
        lines.push(format!(
            "{dropped} connections dropped by the kernel: a listening socket's queue was full"
        ));
    }
    if requests.lost > 0 {
        lines.push(format!("{} not counted", grouped(requests.lost)));
    }
    lines
}

/// Says how long threads waited for locks of the kernel, asleep and spinning.
fn kernel_locks(locks: Option<&KernelLocks>) -> String {
    let Some(locks) = locks else { return "waits not recorded here".to_owned() };
    let sum = |of: fn(&KernelLockWaits) -> u64| locks.waits.iter().map(of).fold(0, u64::saturating_add);
    let (slept_ns, all_ns) = (sum(KernelLockWaits::slept_ns), sum(|waits| waits.total_ns));
    let lost = match locks.lost {
        0 => String::new(),
        lost => format!("; {} more not counted", grouped(lost)),
    };
    match sum(|waits| waits.count) {
        0 => format!("no thread waited for one{lost}"),
        count => format!(
            "{} waits, {} asleep, {} spinning{lost}",
            grouped(count),
            duration(slept_ns as f64),
            duration(all_ns.saturating_sub(slept_ns) as f64)
        ),
    }
}

/// Lost records, by kind.
fn lost(loss: &LossCounts) -> String {
    let mut left_out = match loss.operations_left_out {
        0 => String::new(),
        count => format!("; {} mutex operations left out to keep to --overhead", grouped(count)),
    };
    if loss.operations_counted > 0 {
        let count = grouped(loss.operations_counted);
        left_out.push_str(&format!("; {count} mutex operations without a waiter only counted"));
    }
    if loss.operations_forbidden > 0 {
        let count = grouped(loss.operations_forbidden);
        left_out.push_str(&format!("; {count} lock operations only counted (seccomp, PR_SET_TSC)"));
    }
    let parts = [
        ("dropped", loss.dropped),
        ("lock operations", loss.operations),
        ("missed", loss.missed),
        ("late", loss.late),
        ("undecodable", loss.undecodable),
    ];
    let parts = parts.iter().filter(|(_, count)| *count > 0);
    let parts: Vec<String> = parts.map(|(name, count)| format!("{name} {}", grouped(*count))).collect();
    let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    format!("{}{parts}{left_out}", grouped(loss.lost()))
}

fn line(out: &mut impl Write, style: &Style, label: &str, text: &str) -> io::Result<()> {
    let label = format!("{label:<15} ");
    table::wrap(out, style, Paint::Plain, &label, &style.text(text), &" ".repeat(16))
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::event::{Note, WindowEnd};

    #[test]
    fn info_says_in_text_and_json_what_the_file_had_no_room_for() {
        let said = |left_out| {
            let end = WindowEnd { left_out, ..WindowEnd::default() };
            let facts = engine::event::Facts { end: Some(end), ..Default::default() };
            let facts =
                Facts::of_session(&Recording { facts, ..Recording::default() }, &SessionInfo::default());
            let (mut people, mut machines) = (Vec::new(), Vec::new());
            let style = Style { colour: false, unicode: true, width: 100 };
            text(&facts, Beside::default(), &style, &mut people)
                .and_then(|()| json(&facts, &mut machines))
                .expect("memory");
            (String::from_utf8_lossy(&people).into_owned(), String::from_utf8_lossy(&machines).into_owned())
        };
        let (people, machines) = said(LeftOut { notes: 3, ..LeftOut::default() });
        let line = "left out        3 notes about gaps and probes: no room in the file\n";
        assert!(people.contains(line), "{people}");
        let json = r#""left_out":{"facts":0,"notes":3,"stacks":0,"end":0}"#;
        assert!(machines.contains(json), "{machines}");
        let (people, machines) = said(LeftOut::default());
        assert!(!people.contains("left out") && !machines.contains("\"left_out\""));
    }

    #[test]
    fn info_counts_kernel_lock_waits_or_says_that_none_were_recorded() {
        let waits =
            KernelLockWaits { flags: 32, count: 1_200, total_ns: 9_000, ..KernelLockWaits::default() };
        let waits = vec![KernelLockWaits { spun_ns: 2_000, ..waits }];
        let said = |waits, lost| kernel_locks(Some(&KernelLocks { waits, lost }));
        assert_eq!(said(waits, 3), "1,200 waits, 7.00 µs asleep, 2.00 µs spinning; 3 more not counted");
        assert_eq!(said(Vec::new(), 0), "no thread waited for one");
        assert_eq!(kernel_locks(None), "waits not recorded here");
    }

    #[test]
    fn a_function_that_lost_its_probes_twice_is_counted_once() {
        let off = |time_ns, functions: &[FunctionId]| {
            let rates = vec![1; functions.len()];
            Note { time_ns, kind: NoteKind::ProbesOff { functions: functions.to_vec(), rates } }
        };
        let recording = Recording { notes: vec![off(1, &[3, 4]), off(2, &[4, 5])], ..Recording::default() };
        let facts = Facts::of_session(&recording, &SessionInfo::default());
        assert_eq!(facts.session.map(|session| session.probes_off), Some(3));
    }
}
