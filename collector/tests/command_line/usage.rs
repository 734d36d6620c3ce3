//! Command lines that make no sense: exit code 2.

use super::{FIGURE_4, Folder, longpole, run};
use std::process::Command;

#[test]
fn a_cpu_count_of_0_is_a_usage_error() {
    longpole(&["report", "x", "--cpus", "0"]).fails(2, "CPU count of 0", "1,2,4-8,inf");
    longpole(&["report", "x", "--cpus", "1,2,0"]).fails(2, "CPU count of 0", "1,2,4-8,inf");
    longpole(&["top", "-p", "1", "--cpus", "0-4"]).fails(2, "CPU count of 0", "1,2,4-8,inf");
}

#[test]
fn an_invalid_cpu_list_is_a_usage_error_with_a_hint() {
    for list in ["", "x", "4-2", "1-4294967295", "-1", "99999999999"] {
        let cpus = format!("--cpus={list}");
        let run = longpole(&["report", "x", &cpus]);
        assert_eq!(run.code, 2, "{list}: {}", run.stderr);
        assert!(run.stderr.lines().nth(1).is_some_and(|line| line.starts_with("hint: ")), "{}", run.stderr);
    }
}

#[test]
fn record_and_top_need_either_a_pid_or_a_command() {
    for command in ["record", "top"] {
        longpole(&[command, "-p", "1", "--", "true"]).fails(2, "both -p PID and a command", command);
        longpole(&[command]).fails(2, &format!("nothing to {command}"), "-p PID");
    }
}

#[test]
fn values_of_record_out_of_range_are_usage_errors() {
    for wrong in [
        ["-p", "0"],
        ["-d", "0"],
        ["-d", "never"],
        ["--max-functions", "0"],
        ["--max-rate", "0"],
        ["--depth", "0"],
        ["--depth", "-1"],
        ["--ring-size", "1"],
        ["-o", "-"],
        ["--functions", ""],
        ["--ring", "0s"],
        ["--ring", "long"],
        ["--max-size", "0"],
        ["--max-size", "4K"],
        ["--max-size", "much"],
    ] {
        let joined = format!("{}={}", wrong[0], wrong[1]);
        let arguments: Vec<&str> = if wrong[0].starts_with("--") { vec![&joined] } else { wrong.to_vec() };
        let run = longpole(&[&["record"], &arguments[..], &["--", "true"]].concat());
        assert_eq!(run.code, 2, "{wrong:?}: {}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 2, "{wrong:?}: {}", run.stderr);
    }
}

#[test]
fn ring_options_that_do_not_fit_together_are_usage_errors() {
    let ring = |more: &[&str]| longpole(&[&["record"], more, &["--", "true"]].concat());
    ring(&["--trigger", "parallelism<1.5 for 2s"]).fails(2, "--ring is missing", "--ring 60s --trigger");
    for wrong in ["threads<3", "parallelism<0", "lock_wait>20", "lock_wait>20% for 0s"] {
        let run = ring(&["--ring", "60s", "--trigger", wrong]);
        run.fails(2, &format!("--trigger '{wrong}'"), "--trigger 'parallelism<1.5 for 2s'");
    }
    ring(&["--ring", "60s", "--max-size", "2G"]).fails(2, "--max-size", "record");
    ring(&["--ring", "60s", "--cpus", "1,2"]).fails(2, "--cpus", "record");
    ring(&["--max-size", "2G", "--cpus", "1,2"]).fails(2, "--cpus", "record");
}

#[test]
fn an_unknown_command_or_option_is_a_usage_error_with_a_hint() {
    longpole(&["rport", "x"]).fails(2, "unrecognized subcommand 'rport'", "report");
    longpole(&["report", "x", "--cpu", "1"]).fails(2, "--cpu", "--cpus");
    longpole(&["diff", "x"]).fails(2, "diff compares A with B", "longpole diff A B");
    longpole(&["report", "x", "--by", "colour"]).fails(2, "--by cannot be 'colour'", "function, line");
    longpole(&["export", "x", "--format", "pdf"]).fails(2, "there is no export format 'pdf'", "program");
}

#[test]
fn an_option_without_the_option_it_needs_is_a_usage_error() {
    longpole(&["what-if", "x", "--top", "3"]).fails(2, "--rank", "longpole what-if");
    longpole(&["what-if", "x", "--top", "3", "--free-io"]).fails(2, "--free-io", "longpole what-if");
    longpole(&["top", "--json", "--", "true"]).fails(2, "--once|--batch", "longpole top");
    longpole(&["record", "--no-uprobes", "--functions", "f", "--", "true"]).fails(2, "--functions", "record");
    longpole(&["record", "--max-rate", "9", "--", "true"]).fails(2, "--exact|--functions", "record");
    longpole(&["report", "x", "--stacks"]).fails(2, "--stacks shows the stacks of waits", "--by wait");
}

#[test]
fn without_a_file_the_newest_recording_of_the_folder_is_read() {
    let folder = Folder::new();
    let inside = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longpole"));
        command.current_dir(folder.path("")).args(arguments);
        run(command, b"")
    };
    inside(&["report"]).fails(2, "no recording (*.lp)", "longpole record");
    for (name, seconds) in [("old.lp", 10), ("new.lp", 1000), ("older.lp", 1), ("newest.json", 2000)] {
        std::fs::write(folder.path(name), FIGURE_4).expect("written");
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        std::fs::File::options()
            .append(true)
            .open(folder.path(name))
            .expect("there")
            .set_modified(time)
            .expect("set");
    }
    for command in [&["report"][..], &["predict"], &["slack"], &["paths"], &["what-if", "--rank"], &["info"]]
    {
        let ended = inside(command);
        assert_eq!((ended.code, ended.stderr.as_str()), (0, "reading new.lp\n"), "{command:?}");
        assert!(!ended.stdout.is_empty(), "{command:?}");
    }
}

#[test]
fn a_process_name_that_no_process_has_is_an_error() {
    longpole(&["record", "-p", "no-process-has-this-name"]).fails(1, "no process is called", "ps -e");
    longpole(&["record", "--children", "--no-children", "--", "true"]).fails(
        2,
        "--no-children",
        "longpole record",
    );
}

#[test]
fn completions_and_manual_pages_know_every_command() {
    let folder = Folder::new();
    longpole(&["man", &folder.path("")]).works();
    let help = longpole(&["--help"]);
    let commands = help
        .works()
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty());
    let names: Vec<&str> = commands
        .filter(|line| !line.starts_with("    "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(names.len() > 12, "{names:?}");
    for shell in ["bash", "zsh", "fish"] {
        let script = longpole(&["completions", shell]);
        for name in &names {
            assert!(script.works().contains(name), "{shell}: {name}");
        }
    }
    for name in names.iter().filter(|name| **name != "help") {
        let page = std::fs::read_to_string(folder.path(&format!("longpole-{name}.1"))).expect("a page");
        assert!(page.contains(".SH OPTIONS"), "{name}");
    }
    longpole(&["man", "/nowhere/at/all"]).fails(1, "no manual pages", "longpole man DIR");
    longpole(&["completions", "cmd.com"]).fails(2, "cannot be 'cmd.com'", "bash");
}

#[test]
fn help_and_version_exit_with_0() {
    assert!(longpole(&["--help"]).works().contains("longpole <COMMAND>"));
    assert!(longpole(&["--version"]).works().starts_with("longpole "));
    let help = longpole(&["record", "--help"]);
    for option in ["--pid", "--children", "--exact", "--max-functions", "--max-rate", "--keep-root"] {
        assert!(help.works().contains(option), "{option}");
    }
    assert!(!longpole(&["--help"]).stdout.contains("__gate"), "a detail of ours");
}

#[test]
fn validate_and_record_refuse_cpu_counts_that_cannot_be_measured() {
    longpole(&["validate"]).fails(2, "nothing to validate", "-- COMMAND");
    longpole(&["validate", "-p", "1"]).fails(2, "cannot run it again", "validate -- COMMAND");
    longpole(&["validate", "--cpus", "1,4096", "--", "true"]).fails(
        2,
        "4096 CPUs cannot be measured",
        "predict",
    );
    longpole(&["validate", "--cpus", "1,inf", "--", "true"]).fails(2, "CPUs that exist", "inf");
    longpole(&["validate", "--max-error", "much", "--", "true"]).fails(2, "not a percentage", "5%");
    longpole(&["validate", "--runs", "0", "--", "true"]).fails(2, "not a count", "--runs");
    longpole(&["validate", "-o", "x", "--", "sort", "{cpus}"]).fails(2, "its own", "leave out -o");
    longpole(&["record", "--cpus", "1", "--", "true"]).fails(2, "two numbers of CPUs", "--cpus 1,2");
    longpole(&["record", "--cpus", "1,4096", "--", "true"]).fails(2, "cannot run on 4096 CPUs", "predict");
    longpole(&["record", "-p", "1", "--cpus", "1,2"]).fails(
        2,
        "cannot be used with",
        "usage: longpole record",
    );
    longpole(&["record", "-p", "1", "--cpu-list", "0"]).fails(2, "--cpu-list needs a command", "taskset");
    longpole(&["record", "--cpu-list", "zero", "--", "true"]).fails(2, "not a list of CPUs", "--cpu-list 0");
    longpole(&["record", "--cpu-list", "1023", "--", "true"]).fails(2, "CPU 1023", "give CPUs out of");
}
