//! Tests of the complete pipeline on generated recordings, without kernel and terminal.

use super::rings::source::Late;
use super::*;
use crate::tui::CpuWish;
use engine::attribution::Grouping;
use engine::event::Recording;
use engine::predict::Model;
use engine::program::Program;
use engine::report::{Cpus, Detail, Finding, Report, report_by};
use engine::synth::{Execution, Generated, Numbers, generate};
use recording::{ClockAnchor, Disk, Meta, Overwrite, Writer};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn cpus() -> Vec<Cpus> {
    [1, 2, 4].into_iter().filter_map(Cpus::count).chain([Cpus::Infinite]).collect()
}

/// A pipeline of three threads with uneven stages, nested and recursive calls, sleeps and a device. Its lengths depend on
/// the seed.
fn pipeline(seed: u64) -> Program {
    let mut numbers = Numbers::new(seed);
    let mut length = |most: u64| 1_000 + numbers.below(most);
    let (mut first, mut second, mut third) = (vec![], vec![], vec![]);
    for round in 0..60 {
        first.push(format!(r#"["exec","make",{}],["signal","a"]"#, length(400_000)));
        let inner = format!(r#"["call","work"],["exec",{}],["ret"]"#, length(300_000));
        second.push(format!(
            r#"["wait","a"],["call","work"],["exec",{}],{inner},["ret"],["signal","b"]"#,
            length(90_000)
        ));
        let rest = if round % 7 == 3 { r#",["sleep",150000]"# } else { "" };
        third.push(format!(
            r#"["wait","b"],["exec","store",{}],["io",{},"disk"]{rest}"#,
            length(50_000),
            length(80_000)
        ));
    }
    let thread = |name: &str, ops: Vec<String>| format!(r#"{{"name":"{name}","ops":[{}]}}"#, ops.join(","));
    let threads = [thread("T1", first), thread("T2", second), thread("T3", third)].join(",");
    let text = format!(r#"{{"format":"longpole-program","version":1,"threads":[{threads}]}}"#);
    engine::program::json::read(&text).expect("program")
}

/// Generated recordings on one to three CPUs, with swapped neighbours in the rings, and wake-ups that end no sleep.
fn generated() -> Vec<Generated> {
    let execution = |seed| Execution {
        seed,
        cpus: 1 + (seed % 3) as u16,
        noise: true,
        fold_recursion: seed % 2 == 0,
        ..Execution::default()
    };
    (0..4).map(|seed| generate(&pipeline(seed), &execution(seed)).expect("recording")).collect()
}

fn setup(mode: Mode, generated: &Generated, pace: Pace) -> Setup {
    setup_on(mode, generated, pace)
}

fn setup_on<D: Disk>(mode: Mode, generated: &Generated, pace: Pace) -> Setup<D> {
    let mut facts = generated.facts.clone();
    let end = facts.end.take().unwrap_or_default();
    Setup {
        mode,
        source: Box::new(Replay::generated(generated, pace)),
        facts,
        pids: vec![],
        children: false,
        duration: None,
        destination: None,
        saving: None,
        window: None,
        screen: None,
        print: None,
        listen: None,
        alive: Box::new(|_| true),
        at_end: Box::new(move |_| (end.threads, None)),
        snapshots: None,
        choose: None,
        child: None,
    }
}

fn record_to(path: &Path, generated: &Generated, pace: Pace) -> Ended {
    let mut setup = setup(Mode::Record, generated, pace);
    let meta = Meta::of_this_machine(ClockAnchor::now(setup.facts.start_ns));
    let mut writer = Writer::create(path, Overwrite::Nothing, &meta).expect("file");
    writer.facts(&setup.facts).expect("facts");
    setup.destination = Some(writer.into());
    run(setup).expect("run")
}

fn offline(recording: &Recording) -> (Program, Report) {
    let program = engine::translation::from_timeline(&engine::timeline::build(recording));
    let model = Model { runs: 1, ..Model::default() };
    let report = report_by(&program, &cpus(), Detail::Functions, Grouping::Function, &model);
    (program, report)
}

fn asked() -> Asked {
    Asked { cpus: cpus(), recorded_cpus: None, wish: CpuWish::default(), per: None }
}

/// `top --once` on a window longer than the recording.
fn once(generated: &Generated, pace: Pace, span: Duration) -> Ended {
    let mut setup = setup(Mode::Once, generated, pace);
    let refresh = Duration::from_secs(1);
    let (max_events, asked) = (1_000_000, asked());
    setup.window = Some(WindowPlan { span, refresh, max_events, asked, tries_locks: false, file: None });
    run(setup).expect("run")
}

const HOUR: Duration = Duration::from_secs(3_600);

#[test]
fn a_recorded_file_has_the_same_contents_for_any_batch_size() {
    let dir = tempfile::tempdir().expect("dir");
    for (number, generated) in generated().iter().enumerate() {
        for batch in [1, 7, usize::MAX] {
            let path = dir.path().join(format!("{number}-{batch}.lp"));
            let ended = record_to(&path, generated, Pace::Batches(batch));
            assert_eq!(ended.failure, None);
            assert_eq!(ended.reason, Some(StopReason::SourceEnded));
            let (read, info) = recording::read(&path).expect("session");
            assert!(info.whole(), "{:?}", info.damage);
            assert_eq!(read, generated.recording(), "program {number}, batches of {batch}");
            assert_eq!(ended.observed.counts.events, read.events.len() as u64);
            assert_eq!(ended.file.map(|file| file.summary.events), Some(read.events.len() as u64));
        }
    }
}

/// A saved ring begins at the same instant as a window of `top` that has moved on to there.
#[test]
fn a_saved_ring_is_the_last_stretch_of_the_recording() {
    let dir = tempfile::tempdir().expect("dir");
    for (number, generated) in generated().iter().enumerate() {
        let mut setup = setup(Mode::Record, generated, Pace::Batches(50));
        let meta = Meta::of_this_machine(ClockAnchor::now(setup.facts.start_ns));
        let names = keep::ring_file::Names { file: dir.path().join(format!("{number}.lp")), first: None };
        let (span, most_bytes) = (Duration::from_millis(10), 1 << 20);
        let ring =
            keep::ring_file::RingFile::new(&setup.facts, (span, most_bytes), meta, names, Arc::default());
        setup.destination = Some(Destination::Ring(Box::new(ring.expect("a ring"))));
        let written = run(setup).expect("run").file.expect("written");
        let (read, info) = recording::read(&written.path.expect("a name")).expect("session");
        assert!(info.whole(), "{:?}", info.damage);
        let all = generated.recording();
        let end_ns = all.facts.end.as_ref().map_or(0, |end| end.end_ns);
        let mut window = engine::timeline::Window::of(all);
        window.advance(end_ns.saturating_sub(10_000_000));
        assert_eq!(
            (read.facts.start_ns, &read.facts.threads),
            (window.start_ns(), &window.facts_mut().threads)
        );
        assert!(read.events == window.events() && !read.events.is_empty());
    }
}

#[test]
fn live_file_and_batch_reports_are_the_same() {
    let dir = tempfile::tempdir().expect("dir");
    for (number, generated) in generated().iter().enumerate() {
        let (program, batch) = offline(&generated.recording());
        let limits = engine::limit::limits(&program, &cpus(), &Model::default());
        assert!(batch.results.iter().any(|result| result.time_ns > 0.0), "an empty program proves nothing");
        let path = dir.path().join(format!("{number}.lp"));
        record_to(&path, generated, Pace::Batches(13));
        let (from_file, _) = recording::read(&path).expect("session");
        assert_eq!(offline(&from_file).1, batch, "program {number} from its file");
        for pace in [1, 7, usize::MAX] {
            let live = once(generated, Pace::Batches(pace), HOUR).observed.report.expect("report");
            assert_eq!(live.report, batch, "program {number}, live in batches of {pace}");
            assert_eq!(live.limits, limits, "program {number}: what `report` says of its recording");
        }
    }
}

#[test]
fn the_first_full_window_does_not_depend_on_the_batches() {
    for generated in generated() {
        let events = generated.recording().events;
        let last_ns = events.last().map_or(0, |event| event.header().time_ns);
        let span = Duration::from_nanos((last_ns - generated.facts.start_ns) / 2);
        let reports: Vec<_> = [1, 7, usize::MAX]
            .into_iter()
            .map(|batch| once(&generated, Pace::Batches(batch), span).observed.report.expect("report"))
            .collect();
        assert_eq!(u128::from(reports[0].window_ns), span.as_nanos());
        assert!(reports.windows(2).all(|pair| pair[0].report == pair[1].report));
    }
}

#[test]
fn lost_records_are_in_the_file_and_in_the_report() {
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("lossy.lp");
    let mut number = 0;
    let generated = generated().remove(0).lossy(|_| {
        number += 1;
        number % 9 == 5
    });
    record_to(&path, &generated, Pace::Batches(3));
    let (read, _) = recording::read(&path).expect("session");
    assert_eq!(read, generated.recording());
    assert!(!read.notes.is_empty(), "holes in the numbering are gaps");
    let live = once(&generated, Pace::Batches(3), HOUR).observed.report.expect("report");
    assert_eq!(live.report, offline(&generated.recording()).1);
}

/// Records lost before a CPU's first record are noted, and a replay of the recording misses them, too.
#[test]
fn losses_before_a_cpu_s_first_record_reach_file_and_replay() {
    let dir = tempfile::tempdir().expect("dir");
    let mut lost = 0;
    let generated = generated().remove(1).lossy(|record| {
        let first = record.header().cpu == 1 && record.header().sequence < 5;
        lost += u64::from(first);
        first
    });
    assert_eq!(lost, 5, "CPU 1 has records");
    let path = dir.path().join("late.lp");
    record_to(&path, &generated, Pace::Batches(3));
    let (read, _) = recording::read(&path).expect("session");
    assert!(
        read.notes.iter().any(|note| note.time_ns == 0
            && matches!(note.kind, engine::event::NoteKind::Gap { cpu: Some(1), lost: 5, .. })),
        "{:?}",
        read.notes
    );
    assert_eq!(read, generated.recording());

    let again = dir.path().join("again.lp");
    let mut setup = setup(Mode::Record, &generated, SLOW);
    setup.source = Box::new(Replay::new(read.clone(), Pace::Batches(7)));
    let meta = Meta::of_this_machine(ClockAnchor::now(setup.facts.start_ns));
    let mut writer = Writer::create(&again, Overwrite::Nothing, &meta).expect("file");
    writer.facts(&setup.facts).expect("facts");
    setup.destination = Some(writer.into());
    run(setup).expect("run");
    assert_eq!(recording::read(&again).expect("session").0.notes, read.notes);
}

/// A pace so slow that a recording takes hours.
const SLOW: Pace = Pace::Times(1e-5);

#[test]
fn a_recording_that_ends_by_duration_is_a_whole_file() {
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("short.lp");
    let generated = generated().remove(0);
    let mut setup = setup(Mode::Record, &generated, SLOW);
    setup.duration = Some(Duration::from_millis(200));
    let meta = Meta::of_this_machine(ClockAnchor::now(0));
    setup.destination = Some(Writer::create(&path, Overwrite::Nothing, &meta).expect("file").into());
    let ended = run(setup).expect("run");
    assert_eq!(ended.reason, Some(StopReason::TimeUp));
    let (read, info) = recording::read(&path).expect("session");
    assert!(info.whole());
    assert!(read.events.len() < generated.recording().events.len());
    assert!(read.facts.end.is_some());
}

#[test]
fn a_target_that_is_gone_ends_the_recording() {
    let mut setup = setup(Mode::Record, &generated().remove(0), SLOW);
    setup.pids = vec![100];
    setup.alive = Box::new(|pid| pid != 100);
    assert_eq!(run(setup).expect("run").reason, Some(StopReason::TargetEnded));
}

/// A disk with limited room, shared with the test.
#[derive(Clone, Default)]
struct Small {
    bytes: Arc<Mutex<Vec<u8>>>,
    room: Arc<Mutex<Option<usize>>>,
}

impl Disk for Small {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let left = self.room.lock().expect("unharmed").map(|room| room.saturating_sub(at as usize));
        let fits = bytes.len().min(left.unwrap_or(usize::MAX));
        self.bytes.lock().expect("unharmed").write_at(at, &bytes[..fits])?;
        if fits < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn cut(&mut self, at: u64) -> io::Result<()> {
        self.bytes.lock().expect("unharmed").cut(at)
    }

    fn has_name(&self) -> io::Result<bool> {
        Ok(true)
    }
}

#[test]
fn a_full_disk_is_reported_and_the_file_keeps_what_was_written() {
    let generated = generated().remove(0);
    let events = generated.recording().events;
    let mut setup = setup_on(Mode::Record, &generated, Pace::Batches(1));
    let disk = Small::default();
    let mut writer = Writer::new(disk.clone(), &Meta::of_this_machine(ClockAnchor::now(0))).expect("begun");
    writer.facts(&setup.facts).expect("facts");
    for event in &events[..10] {
        writer.push(event).expect("pushed");
    }
    writer.flush().expect("flushed");
    // The disk has no room for all further records.
    *disk.room.lock().expect("unharmed") = Some(disk.bytes.lock().expect("unharmed").len() + 200);
    setup.destination = Some(writer.into());
    let ended = run(setup).expect("run");
    assert_eq!(ended.reason, Some(StopReason::Failed));
    let failure = ended.failure.expect("told");
    assert_eq!((failure.part, failure.text.as_str()), ("the session file", "no storage space"));
    assert_eq!(ended.file.map(|file| file.summary.events >= 10), Some(true), "what the file holds is known");
    let bytes = disk.bytes.lock().expect("unharmed").clone();
    let (read, info) = recording::read_from(io::Cursor::new(bytes)).expect("read");
    assert_eq!(info.damage.expect("no end").kind, recording::DamageKind::NoEnd);
    assert!(read.events.len() >= 10 && read.events[..10] == events[..10], "{} events", read.events.len());
    assert_eq!(read.facts.functions, generated.facts.functions);
}

/// A source that panics.
struct Broken;

impl EventSource for Broken {
    fn rings(&self) -> usize {
        1
    }
    fn drain(&mut self, _: &mut dyn FnMut(usize, &[u8])) -> Drained {
        std::panic::resume_unwind(Box::new("broken on purpose"))
    }
    fn take_notes(&mut self) -> Vec<engine::event::Note> {
        vec![]
    }
    fn loss(&mut self) -> engine::event::LossCounts {
        engine::event::LossCounts::default()
    }
    fn take_probed(&mut self) -> Probed {
        Probed::default()
    }
    fn end(&mut self) -> u64 {
        0
    }
    fn stop(self: Box<Self>, _: Duration) -> Late {
        Late::default()
    }
}

#[test]
fn a_panic_of_a_thread_ends_the_run_with_a_failure() {
    let mut setup = setup(Mode::Record, &generated().remove(0), SLOW);
    setup.source = Box::new(Broken);
    let ended = run(setup).expect("run");
    assert_eq!(ended.reason, Some(StopReason::Failed));
    assert_eq!(ended.failure.map(|failure| failure.text), Some("broken on purpose".to_owned()));
}

/// With --children, a command may end with code 3 while its children run on until -d ends the recording.
#[test]
fn a_command_s_exit_code_is_longpole_s_whatever_ended_the_recording() {
    use crate::exit::Outcome;
    use std::os::unix::process::ExitStatusExt;
    let mut ended = run(setup(Mode::Record, &generated().remove(0), Pace::Batches(7))).expect("run");
    for reason in [StopReason::TimeUp, StopReason::TargetEnded, StopReason::User] {
        ended.reason = Some(reason);
        for (raw, outcome) in [(3 << 8, Outcome::Code(3)), (9, Outcome::Signal(9)), (0, Outcome::Done)] {
            ended.child_status = Some(std::process::ExitStatus::from_raw(raw));
            assert_eq!(record::outcome(&ended), outcome, "{reason:?}");
        }
        ended.child_status = None;
        assert_eq!(record::outcome(&ended), Outcome::Done, "it runs on: {reason:?}");
    }
}

/// Reports at each check that two functions have probes, that one is refused everywhere, and that one is refused in a
/// single process.
struct Picky(Replay);

impl EventSource for Picky {
    fn rings(&self) -> usize {
        self.0.rings()
    }
    fn drain(&mut self, sink: &mut dyn FnMut(usize, &[u8])) -> Drained {
        self.0.drain(sink)
    }
    fn take_notes(&mut self) -> Vec<engine::event::Note> {
        self.0.take_notes()
    }
    fn loss(&mut self) -> engine::event::LossCounts {
        self.0.loss()
    }
    fn take_probed(&mut self) -> Probed {
        Probed { on: vec![1, 2, 1], refused: vec![2, 3], libc: Vec::new() }
    }
    fn end(&mut self) -> u64 {
        self.0.end()
    }
    fn stop(self: Box<Self>, _: Duration) -> Late {
        Late::default()
    }
}

/// Functions that the kernel refused do not count as probed, and count as refused once for all processes.
#[test]
fn the_summary_counts_probed_functions_and_refused_ones_once() {
    let generated = generated().remove(0);
    let mut setup = setup(Mode::Record, &generated, Pace::Batches(1));
    setup.source = Box::new(Picky(Replay::generated(&generated, Pace::Batches(1))));
    let mut ended = run(setup).expect("run");
    let name = |id: u32| engine::event::FunctionFact { id, name: format!("f{id}"), ..Default::default() };
    let functions: Vec<_> = (1..=4).map(name).collect();
    ended.observed.taken_off.insert(1);
    let summary = record::summary(String::new(), &ended, Path::new("x.lp"), &functions);
    assert_eq!((summary.probed, summary.refused), (2, 1));
    assert_eq!(summary.taken_off, ["f1"]);
    let mut text = Vec::new();
    let summary = RecordSummary { breakpoints: crate::plan::Breakpoints::Exact, ..summary };
    summary
        .write(&crate::present::style::Style { colour: false, unicode: true, width: 100 }, None, &mut text)
        .expect("text");
    let text = String::from_utf8(text).expect("UTF-8");
    assert!(text.contains("probes    1 function on, 1 off"), "{text}");
    assert!(text.contains("the kernel refused 1 function\n"), "{text}");
}

/// Refuses probes to all processes but 201, which has ended.
struct NoRoom;

impl Choose for NoRoom {
    fn choose(&mut self, change: ProcessChange) -> Option<Chosen> {
        let why = if change.pid == 201 { Unprobed::Ended } else { Unprobed::Refused("no room".to_owned()) };
        let (pid, missing_since_ns) = (change.pid, change.time_ns);
        Some(Chosen { pid, missing_since_ns, functions: Err(why), placing: Placing::Instead })
    }
}

/// Processes without probes must be in the session and in the report.
#[test]
fn processes_without_probes_are_in_summary_file_and_report() {
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("crowd.lp");
    let mut generated = generated().remove(0);
    // The forks are on a CPU of their own, so other records keep their numbers.
    let forks = (0..).zip([200, 201, 202]).map(|(sequence, child)| {
        let header = probe_abi::Header {
            time_ns: generated.facts.start_ns + 1,
            sequence,
            cpu: 9,
            kind: probe_abi::Kind::Fork as u8,
            context: 0,
            tid: 1000,
            pid: 1000,
        };
        probe_abi::Record::Fork(probe_abi::Fork {
            header,
            child_tid: child,
            child_pid: child,
            child_start_ns: header.time_ns,
            comm: *b"crowd\0\0\0\0\0\0\0\0\0\0\0",
        })
    });
    let forks = forks.collect();
    generated.rings.push(forks);
    // Records are released once they are older than the disorder allowed in a ring. After that the loop needs time to
    // ask for probes.
    if let Some(end) = &mut generated.facts.end {
        end.end_ns += 700_000_000;
    }
    let mut setup = setup(Mode::Record, &generated, Pace::Times(1.0));
    setup.pids = vec![1000];
    setup.children = true;
    setup.choose = Some(Box::new(NoRoom));
    let meta = Meta::of_this_machine(ClockAnchor::now(setup.facts.start_ns));
    let mut writer = Writer::create(&path, Overwrite::Nothing, &meta).expect("file");
    writer.facts(&setup.facts).expect("facts");
    setup.destination = Some(writer.into());
    let ended = run(setup).expect("run");
    assert_eq!(
        ended.observed.unprobed,
        UnprobedCounts { ended: 1, refused: 2, why: Some("no room".to_owned()) }
    );
    let (read, _) = recording::read(&path).expect("session");
    let (_, report) = offline(&read);
    let said: Vec<&Finding> =
        report.findings.iter().filter(|finding| matches!(finding, Finding::NotProbed { .. })).collect();
    assert_eq!(said.len(), 1, "{:?}", report.findings);
    assert_eq!(said[0], &Finding::NotProbed { processes: 3 });
}
