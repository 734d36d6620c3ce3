//! All screens of the kept recordings, at 80 and 120 columns, and of recordings with little to show. `LONGPOLE_BLESS=1`
//! writes the screens again.

use longpole_tests::{check_golden, data_folder};
use std::path::PathBuf;
use std::process::Command;

use crate::command_line::run_in;

/// One line for each screen; FILE is the recording.
const SCREENS: [&str; 12] = [
    "report FILE",
    "report --by lock FILE",
    "report --by wait FILE",
    "report --by line FILE",
    "report --by thread FILE",
    "predict --cpus 1,2,4,16 FILE",
    "what-if --rank --top 5 --cpus 2,16 FILE",
    "slack FILE",
    "paths FILE",
    "compare-metrics FILE",
    "info FILE",
    "notes FILE",
];

fn recording(name: &str) -> PathBuf {
    let folder = if name.starts_with("bad-") { "" } else { "recordings" };
    data_folder().join(folder).join(name)
}

/// The output of a command about a recording, run in the recording's folder; checks that it fits the screen.
fn screen(words: &str, name: &str, columns: usize) -> String {
    let file = recording(name);
    let mut command = Command::new(env!("CARGO_BIN_EXE_longpole"));
    let own = file.file_name().expect("a file").to_str().expect("UTF-8");
    command.args(words.split(' ').map(|word| if word == "FILE" { own } else { word }));
    command.current_dir(file.parent().expect("a folder"));
    let shown = run_in(command, b"", columns);
    assert_eq!(shown.code, 0, "{words}, {name}: {}", shown.stderr);
    let text = shown.stdout;
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{words}, {name}: {text:?}");
    for line in text.lines() {
        assert!(line.chars().count() <= columns, "{words}, {name}, {columns} columns: {line:?}");
    }
    // `notes` shows all notes in full, and on a narrow screen numbers are below their names.
    let most = if words.starts_with("notes") || columns < 80 { 80 } else { 40 };
    assert!(text.lines().count() <= most, "{words}, {name}: more than {most} lines\n{text}");
    for word in ["TETID", "censored", "unmatched", "spurious", "decided anew", "may lower", "999999"] {
        assert!(!text.contains(word), "{words}, {name}: nobody understands {word:?}\n{text}");
    }
    text
}

fn snapshots(name: &str) {
    for columns in [80, 120] {
        let mut all = String::new();
        for words in SCREENS {
            let text = screen(words, &format!("{name}.lp"), columns);
            all.push_str(&format!("$ longpole {}\n{text}\n", words.replace("FILE", &format!("{name}.lp"))));
        }
        check_golden(format!("screens/{name}-{columns}.txt"), &all);
    }
}

#[test]
fn screens_of_the_recording_attached_are_their_snapshots() {
    snapshots("attached");
}

#[test]
fn screens_of_the_recording_forkjoin_are_their_snapshots() {
    snapshots("forkjoin");
}

#[test]
fn screens_of_the_recording_phases_are_their_snapshots() {
    snapshots("phases");
}

#[test]
fn screens_of_the_recording_pipeline_are_their_snapshots() {
    snapshots("pipeline");
}

#[test]
fn screens_of_the_recording_quicksort_are_their_snapshots() {
    snapshots("quicksort");
}

#[test]
fn screens_of_the_recording_split_are_their_snapshots() {
    snapshots("split");
}

#[test]
fn screens_of_the_recording_store_are_their_snapshots() {
    snapshots("store");
}

#[test]
fn screens_of_the_recording_timers_are_their_snapshots() {
    snapshots("timers");
}

/// Tables of four columns are too wide for a screen of 40 columns.
#[test]
fn every_table_in_40_columns_keeps_all_its_columns() {
    for name in ["attached", "forkjoin", "phases", "pipeline", "quicksort", "split", "store", "timers"] {
        for words in [
            "report FILE",
            "report --by thread FILE",
            "what-if --rank --top 5 FILE",
            "slack FILE",
            "paths FILE",
            "parallelism FILE",
            "predict FILE",
        ] {
            let text = screen(words, &format!("{name}.lp"), 40);
            let wide = screen(words, &format!("{name}.lp"), 80);
            // No column of a table is cut off.
            for title in ["all off", "for sure", "order kept", "queue", "   used"] {
                assert_eq!(wide.contains(title), text.contains(title), "{words}, {name}: {title}\n{text}");
            }
        }
    }
}

/// `report` and `parallelism` show the same length of the run.
#[test]
fn report_and_parallelism_show_the_same_length_of_the_run() {
    for name in ["attached", "forkjoin", "phases", "pipeline", "quicksort", "split", "store"] {
        let took = |words: &str, before: &str| {
            let text = screen(words, &format!("{name}.lp"), 80);
            let all: Vec<&str> = text.split_whitespace().collect();
            let at = all.iter().position(|word| *word == before).expect("how long");
            all[at - 2..at].join(" ")
        };
        assert_eq!(took("report FILE", "on"), took("parallelism FILE", "measured"), "{name}");
    }
}

/// Checks all screens of a recording, wide and narrow. Its report must be short and contain these texts.
fn little(name: &str, said: &[&str]) {
    let name = format!("bad-recordings/{name}.lp");
    for words in SCREENS {
        screen(words, &name, 80);
    }
    let report = screen("report FILE", &name, 80);
    assert!(report.lines().count() <= 30, "{report}");
    let words = report.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in said {
        assert!(words.contains(said), "{said:?} is not on it: {report}");
    }
    screen("report FILE", &name, 40);
    screen("predict --cpus 1,2,4,16 FILE", &name, 40);
}

#[test]
fn a_recording_of_ten_milliseconds_has_too_few_samples() {
    little("short", &["SURE fair", "too few samples to be divided"]);
}

#[test]
fn a_program_that_sleeps_is_idle() {
    little("sleeping", &["LIMIT idle: "]);
}

#[test]
fn a_recording_without_samples_has_a_limit_and_is_not_sure() {
    little("no-samples", &["LIMIT too few threads: the 2 are busy", "SURE poor"]);
}

/// With nine tenths of the records lost, the limit is not known.
#[test]
fn a_recording_that_lost_most_records_has_no_known_limit() {
    little("lost", &["LIMIT not known: the recording lacks", "SURE not known", "were lost"]);
}

#[test]
fn a_program_of_one_thread_is_limited_by_a_serial_stretch() {
    little("one-thread", &["LIMIT one serial stretch: "]);
}
