//! A parser that takes its time: the thread that empties the rings waited for it, up to ten seconds for one binary.

use super::skip;
use collector::live::{Kernel, Mode, Setup, run};
use collector::probe::{Capture, CaptureOptions};
use collector::session::{ClockAnchor, Meta, Overwrite, Writer};
use collector::symbols::Parsers;
use collector::target::{Process, attach_facts, threads_of};
use collector::unwind::Sampler;
use engine::event::{CallGraph, NoteKind, Recording, SamplingFact};
use probe_abi::Record;
use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

const TEST: &str = "a_slow_parser_loses_nothing";
/// Small ones: at 8,000 records a second they are full within a quarter of a second.
const RING_BYTES: usize = 64 << 10;

struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A parser that sleeps for so many seconds before it does anything.
fn sleeping_parser(folder: &Path, seconds: u32) -> PathBuf {
    let path = folder.join(format!("parser{seconds}"));
    let longpole = env!("CARGO_BIN_EXE_longpole");
    std::fs::write(&path, format!("#!/bin/sh\n/bin/sleep {seconds}\nexec {longpole} \"$@\"\n"))
        .expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
    path
}

fn recorded(folder: &Path, program: &Path, parser_sleeps_s: u32) -> Result<Recording, String> {
    let target = Ends(Command::new(program).arg("60").spawn().expect("started"));
    let pid = target.0.id();
    let sampling = SamplingFact { rate_hz: 199, call_graph: CallGraph::Dwarf };
    let capture = Capture::start(CaptureOptions {
        pids: vec![pid],
        ring_bytes: RING_BYTES,
        sampling: Some(sampling),
        ..CaptureOptions::default()
    })
    .map_err(|error| error.to_string())?;
    let mut facts = attach_facts(&Process::open(pid).expect("it lives"), false);
    (facts.start_ns, facts.sampling) = (capture.start_ns(), Some(sampling));
    let session = folder.join(format!("session{parser_sleeps_s}.lp"));
    let meta = Meta::of_this_machine(ClockAnchor::now(facts.start_ns));
    let mut writer = Writer::create(&session, Overwrite::Nothing, &meta).expect("a file");
    writer.facts(&facts).expect("written");
    let parsers = Parsers::sandboxed(&sleeping_parser(folder, parser_sleeps_s));
    let sampler = Sampler::new(CallGraph::Dwarf).reading_with(parsers);
    run(Setup {
        mode: Mode::Record,
        source: Box::new(Kernel::new(capture, None).sampled(Some(sampler))),
        facts,
        pids: vec![pid],
        children: false,
        duration: Some(Duration::from_secs(3)),
        writer: Some(writer),
        window: None,
        screen: None,
        alive: Box::new(|_| true),
        end_threads: Box::new(|pids| pids.iter().filter_map(|&pid| threads_of(pid).ok()).flatten().collect()),
        choose: None,
        child: None,
    })
    .expect("recorded");
    let (recording, info) = collector::session::read(&session).expect("a session");
    assert!(info.whole(), "{:?}", info.damage);
    Ok(recording)
}

/// Records that the rings had no room for, samples, and of these those with a stack of more than three frames.
fn counts(recording: &Recording) -> (u64, usize, usize) {
    let mut stacks: HashMap<u32, usize> = HashMap::new();
    for note in &recording.notes {
        if let NoteKind::Stack { id, frames, .. } = &note.kind {
            assert!(stacks.insert(*id, frames.len()).is_none(), "number {id} twice");
        }
    }
    let samples: Vec<u32> = recording
        .events
        .iter()
        .filter_map(|record| match record {
            Record::Sample(sample) => Some(sample.stack),
            _ => None,
        })
        .collect();
    let deep = samples.iter().filter(|stack| stacks.get(stack).is_some_and(|&frames| frames > 3)).count();
    let end = recording.facts.end.as_ref().expect("an end");
    let said = end.samples.expect("counts of samples");
    assert_eq!((said.unread, said.no_room), (0, 0), "{said:?}");
    (end.loss.dropped + said.lost, samples.len(), deep)
}

#[test]
fn a_slow_parser_loses_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sampling_live/slow_parser.c");
    let program = folder.path().join("slow_parser");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-fomit-frame-pointer", "-pthread", "-o"]).arg(&program).arg(source);
    if !gcc.status().is_ok_and(|status| status.success()) {
        return skip(TEST, "no gcc");
    }
    let of_parser =
        |sleeps_s| recorded(folder.path(), &program, sleeps_s).map(|recording| counts(&recording));
    let (quick, slow) = match (of_parser(0), of_parser(5)) {
        (Ok(quick), Ok(slow)) => (quick, slow),
        (Err(why), _) | (_, Err(why)) => return skip(TEST, &why),
    };
    println!("lost, samples, deep: quick {quick:?}, slow {slow:?}");
    // Waiting for the parser, it lost all but the first quarter of a second.
    assert!(slow.0 <= quick.0 + 200, "records and samples lost: {} and {}", quick.0, slow.0);
    for (_, samples, deep) in [quick, slow] {
        assert!(samples > 200, "{samples} samples");
        assert!(deep * 10 >= samples * 9, "{deep} of {samples} stacks are whole");
    }
}
