//! A parser may take up to ten seconds for one binary. The ring reader must not wait for it.

use capture::probe::{Capture, CaptureOptions};
use capture::target::{Process, attach_facts, threads_of};
use capture::unwind::Sampler;
use collector::live::{Destination, LiveSource, Mode, Setup, run};
use engine::event::{CallGraph, NoteKind, Recording, SamplingFact};
use longpole_tests::{Background, binary, skip_unless_built, skip_unless_live, workload};
use probe_abi::Record;
use recording::{ClockAnchor, Meta, Overwrite, Writer};
use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use symbols::Parsers;

/// Size of the rings, in bytes. At 8,000 records per second, they are full within a quarter of a second.
const RING_BYTES: usize = 64 << 10;

/// A parser that sleeps for this many seconds before it does anything.
fn sleeping_parser(folder: &Path, seconds: u32) -> PathBuf {
    let path = folder.join(format!("parser{seconds}"));
    let longpole = binary().display();
    std::fs::write(&path, format!("#!/bin/sh\n/bin/sleep {seconds}\nexec {longpole} \"$@\"\n"))
        .expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
    path
}

fn recorded(folder: &Path, program: &Path, parser_sleeps_s: u32) -> Recording {
    let target = Background::must_start(Command::new(program).arg("60"));
    let pid = target.pid();
    let sampling = SamplingFact { rate_hz: 199, call_graph: CallGraph::Dwarf };
    let capture = Capture::start(CaptureOptions {
        pids: vec![pid],
        ring_bytes: RING_BYTES,
        sampling: Some(sampling),
        ..CaptureOptions::default()
    })
    .expect("a capture");
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
        source: Box::new(LiveSource::new(capture, None).sampled(Some(sampler))),
        facts,
        pids: vec![pid],
        children: false,
        duration: Some(Duration::from_millis(1500)),
        destination: Some(Destination::from(writer)),
        saving: None,
        window: None,
        screen: None,
        print: None,
        listen: None,
        alive: Box::new(|_| true),
        at_end: Box::new(|pids| {
            (pids.iter().filter_map(|&pid| threads_of(pid).ok()).flatten().collect(), None)
        }),
        snapshots: None,
        choose: None,
        child: None,
    })
    .expect("recorded");
    let (recording, info) = recording::read(&session).expect("a session");
    assert!(info.whole(), "{:?}", info.damage);
    recording
}

/// The numbers of records that had no room in the rings, of samples, and of samples with a stack of more than three
/// frames.
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
fn a_slow_parser_loses_no_records_and_no_stacks() {
    skip_unless_live!();
    let folder = tempfile::tempdir().expect("a folder");
    let flags = ["-O2", "-fomit-frame-pointer", "-pthread"];
    let text = include_str!("slow_parser.c");
    let program = skip_unless_built!(workload::compile_text("slow_parser", "gcc", &flags, text));
    let [quick, slow] = [0, 3].map(|sleeps_s| counts(&recorded(folder.path(), &program, sleeps_s)));
    println!("lost, samples, deep: quick {quick:?}, slow {slow:?}");
    // If the ring reader waited for the parser, all records after the first quarter of a second would be lost.
    assert!(slow.0 <= quick.0 + 200, "records and samples lost: {} and {}", quick.0, slow.0);
    for (_, samples, deep) in [quick, slow] {
        assert!(samples > 200, "{samples} samples");
        assert!(deep * 10 >= samples * 9, "{deep} of {samples} stacks are whole");
    }
}
