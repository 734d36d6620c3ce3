//! Sessions: a session and its export have the same report, and a cut or damaged one is read as far as possible.

use super::{FIGURE_4, Folder, longpole};
use engine::event::Recording;
use engine::program::{Program, json};
use engine::synth::{Execution, Lengths, generate, random_program};
use recording::{ClockAnchor, Meta, Overwrite, Writer};
use serde_json::Value;
use std::path::Path;

fn meta() -> Meta {
    let clock = ClockAnchor { monotonic_ns: 1, realtime_ns: 1_700_000_000_000_000_000 };
    Meta { command: vec!["generated".into()], pids: vec![1000], ..Meta::of_this_machine(clock) }
}

/// Writes a recording as `longpole record` does.
pub(crate) fn write(path: &str, recording: &Recording) {
    write_as(path, recording, &meta());
}

fn write_as(path: &str, recording: &Recording, meta: &Meta) {
    let mut writer = Writer::create(Path::new(path), Overwrite::AnyFile, meta).expect("created");
    writer.facts(&recording.facts).expect("facts");
    for (i, event) in recording.events.iter().enumerate() {
        writer.push(event).expect("pushed");
        if i % 20 == 19 {
            writer.flush().expect("flushed");
        }
    }
    for note in &recording.notes {
        writer.note(note).expect("noted");
    }
    writer.finish(recording.facts.end.clone().expect("an end")).expect("finished");
}

fn record(folder: &Folder, program: &Program, execution: &Execution) -> Option<String> {
    let path = folder.path("recorded.lp");
    write(&path, &generate(program, execution).ok()?.recording());
    Some(path)
}

fn figure_4(folder: &Folder) -> String {
    let program = json::read(FIGURE_4).expect("a program");
    record(folder, &program, &Execution::default()).expect("the generator knows signals")
}

#[test]
fn a_session_and_its_export_have_the_same_report() {
    let folder = Folder::new();
    let mut compared = 0;
    for seed in 0..1_000 {
        let program = random_program(seed, Lengths::Spread);
        let execution =
            Execution { cpus: 1 + (seed % 4) as u16, seed, noise: seed % 2 == 1, ..Execution::default() };
        let Some(session) = record(&folder, &program, &execution) else { continue };
        let exported = folder.path("exported.json");
        longpole(&["export", &session, "--format", "program", "--force", "-o", &exported]).works();
        for options in [&["--json", "--segments"][..], &["--segments"], &["--wide"]] {
            let report = |path: &str| longpole(&[&["report", path], options].concat()).works().to_owned();
            assert_eq!(report(&session), report(&exported), "seed {seed}");
        }
        compared += 1;
        if compared == 12 {
            return;
        }
    }
    panic!("only {compared} of the random programs could be recorded");
}

/// The screen's first lines are about the recorded machine's CPU count, not about the largest one.
#[test]
fn the_first_limit_is_for_the_recorded_machine_s_cpu_count() {
    let folder = Folder::new();
    let program = json::read(FIGURE_4).expect("a program");
    let recording = generate(&program, &Execution::default()).expect("known").recording();
    let session = folder.path("machine.lp");
    let first = |cpus: u32| {
        write_as(&session, &recording, &Meta { cpu_count: cpus, ..meta() });
        let text = longpole(&["report", &session, "--json", "--cpus", "1,2,16"]).works().to_owned();
        let report: Value = serde_json::from_str(&text).expect("JSON");
        report["limit"]["at"][0]["cpus"].as_u64()
    };
    // If the machine is not known, the first lines are about the largest CPU count.
    assert_eq!([first(2), first(3), first(0)], [Some(2), Some(3), Some(16)]);
}

#[test]
fn trust_counts_the_events_of_a_whole_session() {
    let folder = Folder::new();
    let session = figure_4(&folder);
    let report: Value =
        serde_json::from_str(longpole(&["report", &session, "--json"]).works()).expect("JSON");
    assert!(report["trust"]["events"].as_u64().is_some_and(|events| events > 10), "{report}");
    assert_eq!(report["trust"]["lost"], 0);
    let findings = report["findings"].as_array().expect("findings");
    assert!(findings.iter().all(|finding| !finding["kind"].to_string().contains("session")), "{report}");
}

#[test]
fn a_session_cut_anywhere_is_read_up_to_its_last_whole_chunk() {
    let folder = Folder::new();
    let session = figure_4(&folder);
    let whole = std::fs::read(&session).expect("read");
    let mut most = 0;
    // The step is a prime, so that cuts fall on all kinds of places in a chunk.
    for length in (1..whole.len()).step_by(37) {
        let cut = folder.file("cut.lp", &whole[..length]);
        let run = longpole(&["report", &cut, "--json"]);
        if length < 20 {
            run.fails(1, "cut", "record again");
            continue;
        }
        let report: Value = serde_json::from_str(run.works()).expect("JSON");
        let findings = report["findings"].as_array().expect("findings");
        let finding = findings.iter().find(|finding| finding["kind"] == "cut_session");
        let text =
            finding.unwrap_or_else(|| panic!("cut to {length}: {report}"))["text"].as_str().expect("text");
        assert!(text.contains("byte"), "{text}");
        let events = report["trust"]["events"].as_u64().expect("events");
        assert!(events >= most, "cut to {length}: fewer events than before");
        most = events;
        longpole(&["report", &cut]).works();
        longpole(&["info", &cut]).works();
    }
    assert!(most > 10);
}

/// The number of lost records is written at the end: if the recorder was killed, it is not 0 but unknown.
#[test]
fn lost_records_of_a_session_without_its_end_are_not_known() {
    let folder = Folder::new();
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/recordings/timers.lp");
    let whole = std::fs::read(recording).expect("read");
    // The cut removes the end, and no events.
    let cut = folder.file("cut.lp", &whole[..whole.len() - 600]);
    let report: Value = serde_json::from_str(longpole(&["report", &cut, "--json"]).works()).expect("JSON");
    assert!(report["trust"]["events"].as_u64().is_some_and(|events| events > 10), "{report}");
    assert_eq!(report["trust"]["lost"], Value::Null);
    assert!(longpole(&["report", &cut, "--wide"]).works().contains("lost not known"));
    let exported = folder.path("exported.json");
    longpole(&["export", &cut, "--format", "program", "-o", &exported]).works();
    let rules = folder.file("rules.toml", b"[[rule]]\nmeasure = \"lost\"\nmax = 1000000\n");
    for file in [&cut, &exported] {
        let checked = longpole(&["check", file, "--rules", &rules, "--json"]);
        assert_eq!(checked.code, 3, "{}", checked.stderr);
        let said = &checked.stdout;
        assert!(said.contains("lost records are not known: the recording lacks its end"), "{said}");
    }
}

#[test]
fn a_damaged_session_says_how_many_bytes_are_unread() {
    let folder = Folder::new();
    let session = figure_4(&folder);
    let mut bytes = std::fs::read(&session).expect("read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let damaged = folder.file("damaged.lp", &bytes);
    let report: Value =
        serde_json::from_str(longpole(&["report", &damaged, "--json"]).works()).expect("JSON");
    assert_eq!(report["findings"][0]["kind"], "damaged_session", "{report}");
    let info: Value = serde_json::from_str(longpole(&["info", &damaged, "--json"]).works()).expect("JSON");
    assert_eq!(info["session"]["whole"], false);
    let damage = &info["session"]["damage"];
    let at = damage["at_byte"].as_u64().expect("a place");
    assert_eq!(at + damage["unread_bytes"].as_u64().expect("a size"), bytes.len() as u64);
    assert!(at <= middle as u64);
    assert!(damage["unread_chunks"].as_u64().is_some_and(|chunks| chunks > 0), "{damage}");
    // The export of the readable part has the note, too.
    let exported = folder.path("exported.json");
    longpole(&["export", &damaged, "--format", "program", "-o", &exported]).works();
    let report = |path: &str| longpole(&["report", path, "--json"]).works().to_owned();
    assert_eq!(report(&damaged), report(&exported));
}

#[test]
fn a_session_of_a_newer_format_is_refused_with_its_version() {
    let folder = Folder::new();
    let session = figure_4(&folder);
    let mut bytes = std::fs::read(&session).expect("read");
    bytes[8] = 2;
    let crc = crc32fast::hash(&bytes[..16]);
    bytes[16..20].copy_from_slice(&crc.to_le_bytes());
    let newer = folder.file("newer.lp", &bytes);
    longpole(&["report", &newer]).fails(1, "format version 2", "newer");
}

#[test]
fn a_session_with_a_flipped_bit_is_analysed_or_refused() {
    let folder = Folder::new();
    let session = figure_4(&folder);
    let whole = std::fs::read(&session).expect("read");
    for at in (0..whole.len()).step_by(53) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        let run = longpole(&["report", &folder.file("flipped.lp", bytes), "--json"]);
        assert!(matches!(run.code, 0 | 1), "byte {at}: {}", run.stderr);
    }
}

#[test]
fn info_of_a_session_has_its_metadata_and_losses() {
    let folder = Folder::new();
    let session = figure_4(&folder);
    let info: Value = serde_json::from_str(longpole(&["info", &session, "--json"]).works()).expect("JSON");
    assert_eq!(info["schema"], "longpole-info/1");
    assert_eq!((&info["kind"], &info["session"]["whole"]), (&"session".into(), &true.into()));
    assert_eq!(info["session"]["meta"]["command"][0], "generated");
    assert_eq!(info["session"]["loss"]["dropped"], 0);
    let run = longpole(&["info", &session]);
    let text = run.works();
    for words in
        ["session, format 1.0", "command         generated", "2023-11-14T22:13:20Z", "lost            0\n"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn export_does_not_replace_a_recording_unasked() {
    let folder = Folder::new();
    let session = figure_4(&folder);
    let before = std::fs::read(&session).expect("read");
    longpole(&["export", &session, "--format", "program", "-o", &session]).fails(
        1,
        "the file exists",
        "--force",
    );
    assert_eq!(std::fs::read(&session).expect("read"), before);
}

#[test]
fn a_session_through_a_pipe_has_the_same_report() {
    let folder = Folder::new();
    let session = figure_4(&folder);
    let bytes = std::fs::read(&session).expect("read");
    let piped = super::longpole_with(&["report", "-", "--json"], &bytes);
    assert_eq!(piped.works(), longpole(&["report", &session, "--json"]).works());
}

#[test]
fn a_file_written_under_sudo_belongs_to_the_sudo_user() {
    use std::os::unix::fs::MetadataExt;
    use std::process::Command;
    let folder = Folder::new();
    let program = folder.file("figure.json", FIGURE_4);
    let exported = folder.path("exported.json");
    if std::fs::metadata(&program).expect("there").uid() != 0 {
        println!("SKIP a_file_written_under_sudo_belongs_to_the_sudo_user: only root can give files away");
        return;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_longpole"));
    command.args(["export", &program, "--format", "program", "-o", &exported]);
    command.env("SUDO_UID", "1234").env("SUDO_GID", "2345");
    super::run(command, b"").works();
    let metadata = std::fs::metadata(&exported).expect("written");
    assert_eq!((metadata.uid(), metadata.gid(), metadata.mode() & 0o777), (1234, 2345, 0o600));
}
