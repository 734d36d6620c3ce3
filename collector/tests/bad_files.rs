//! An error in a file or a command line is reported in one line, with a hint, and the exit code shows whose
//! fault it is. Issue 2, "Bad input".

use longpole_tests::{Longpole, data_folder};

fn report_of(text: &str) -> (tempfile::TempDir, Longpole) {
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("no temporary folder: {error}"));
    let file = folder.path().join("input");
    std::fs::write(&file, text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    (folder, Longpole::with(["report"]).and(file))
}

fn program(operations: &str) -> String {
    format!(r#"{{"format":"longpole-program","version":1,"threads":[{{"name":"T1","ops":[{operations}]}}]}}"#)
}

#[test]
fn files_that_are_none() {
    Longpole::with(["report", "/no/such/file.lp"]).fails(1, "/no/such/file.lp");
    Longpole::with(["report"]).and(data_folder()).fails(1, "data");
    for (text, message) in [("", "empty"), ("\n  \n", ""), ("ELF, perhaps\n", ""), ("PERFILE2", "")] {
        let (_folder, call) = report_of(text);
        call.fails(1, message);
    }
}

#[test]
fn programs_that_are_wrong() {
    for (operations, message) in [
        (r#"["ret"]"#, "ret"),
        (r#"["exec","a",-5]"#, ""),
        (r#"["exec","a",1e300]"#, ""),
        (r#"["fly","a"]"#, "fly"),
        (r#"["join","T9"]"#, "T9"),
        (r#"["barrier","b",0]"#, "b"),
    ] {
        let (_folder, call) = report_of(&program(operations));
        call.fails(1, message);
    }
    for text in
        ["{", "{}", r#"{"format":"longpole-program","version":99,"threads":[]}"#, r#"{"format":"other"}"#]
    {
        let (_folder, call) = report_of(text);
        call.fails(1, "");
    }
}

#[test]
fn nesting_without_end_is_refused() {
    let (_folder, call) = report_of(&program(&"[".repeat(100_000)));
    call.fails(1, "");
}

#[test]
fn command_lines_that_make_no_sense() {
    let file = data_folder().join("figure-1/program.json");
    for cpus in ["0", "1,0", "", "x", "4-2", "-1", "99999999999"] {
        Longpole::with(["report", "--cpus", cpus]).and(&file).fails(2, "");
    }
    Longpole::with(["report"]).code(2);
    Longpole::with(["reprot", "x"]).fails(2, "reprot");
    Longpole::with(["record"]).fails(2, "");
    Longpole::with(["record", "-p", "1", "--", "true"]).fails(2, "");
    Longpole::with(["record", "-p", "0"]).fails(2, "");
    Longpole::with(["export", "--format", "nothing"]).and(&file).fails(2, "nothing");
}

#[test]
fn names_from_outside_cannot_drive_the_terminal() {
    let (_folder, call) = report_of(&program(r#"["exec","evil\u001b[2J\u0007name\nnext",5000]"#));
    let text = call.ok().stdout;
    assert!(text.contains("evil"), "{text}");
    assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{text:?}");
    assert!(!text.contains("name\nnext"), "{text:?}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let file = data_folder().join("quicksort/program.json");
    let script = format!(
        "'{}' report --json --segments '{}' | head -c 1 >/dev/null; echo ${{PIPESTATUS[0]}}",
        longpole_tests::binary().display(),
        file.display()
    );
    let mut bash = std::process::Command::new("bash");
    let ended = longpole_tests::run(bash.args(["-c", &script]), std::time::Duration::from_secs(60)).unwrap();
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    assert!(["0", "141"].contains(&ended.stdout.trim()), "{} {}", ended.stdout, ended.stderr);
}

#[test]
fn doctor_answers_everywhere() {
    let ended = Longpole::with(["doctor", "--json"]).run();
    assert!(matches!(ended.code, Some(0 | 77)), "{:?} {}", ended.code, ended.stderr);
    let answer: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let text = answer.to_string().to_lowercase();
    for word in
        ["btf", "cap", "uprobe", "tracepoint", "perf_event_paranoid", "lockdown", "container", "kernel"]
    {
        assert!(text.contains(word), "doctor says nothing about {word}: {text}");
    }
    if longpole_tests::cannot_record().is_none() {
        assert_eq!(ended.code, Some(0), "the live tests can run, but doctor says: {text}");
    }
}

/// Issue 6, "Bad input".
#[test]
fn what_stands_on_the_graph_has_a_word_for_everything() {
    let file = data_folder().join("figure-4/program.json");
    let fails = |arguments: &[&str], code: i32, message: &str| {
        Longpole::with(arguments.iter().copied()).and(&file).fails(code, message).stderr
    };
    for (option, count) in [("-k", "0"), ("-k", "-1"), ("-k", "many"), ("-k", "1000001"), ("--show", "0")] {
        let equals = format!("{option}={count}");
        fails(&["paths", &equals], 2, option);
    }
    fails(&["paths", "--within", "101%"], 2, "--within");
    fails(&["paths", "--within=-1%"], 2, "--within");
    for scale in ["f=-0.5", "f=nan", "f=inf", "f=1e300", "f=", "f", "=1"] {
        fails(&["what-if", "--scale", scale], 2, "--scale");
    }
    fails(&["what-if", "--split-lock", "m=1000000"], 2, "more than 10000 parts");
    fails(&["what-if"], 2, "nothing is to be changed");
    fails(&["what-if", "--rank", "--free-io"], 2, "");
    fails(&["what-if", "--split-lock", "X=0"], 2, "--split-lock");
    fails(&["what-if", "--split-lock", "X=2"], 2, "X");
    fails(&["what-if", "--free-io", "--model", "cfs"], 2, "cfs");
    fails(&["what-if", "--free-io", "--cpus", "0"], 2, "--cpus");
    fails(&["diff"], 2, "");
    fails(&["check"], 2, "--rules");
    fails(&["check", "--rules", "/no/such/rules.toml"], 1, "/no/such/rules.toml");
    // An unknown function: suggestions.
    let (_folder, call) = report_of(&program(r#"["exec","parse_line",5],["exec","hash",7]"#));
    call.ok();
    let (folder, _) = report_of(&program(r#"["exec","parse_line",5],["exec","hash",7]"#));
    let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    for arguments in [["what-if", "--scale", "pars_line=0.5"], ["what-if", "--headroom", "pars_line"]] {
        let ended = Longpole::with(arguments).and(&file).fails(2, "pars_line");
        assert!(ended.stderr.contains("parse_line") && !ended.stderr.contains("hash"), "{}", ended.stderr);
    }
    // One path after the other needs standard input for itself.
    Longpole::with(["paths", "--next", "-"]).fails(2, "--next");
    // A threshold on a function that neither has would be kept for ever.
    let ended =
        Longpole::with(["diff", "--fail-on", "pars_line=5%"]).and(&file).and(&file).fails(2, "pars_line");
    assert!(ended.stderr.contains("did you mean parse_line?"), "{}", ended.stderr);
}

/// More paths than there are, no thread, threads that do nothing: exit 0 and a sentence.
#[test]
fn few_paths_and_none_are_no_errors() {
    let (folder, _) = report_of(&program(r#"["exec","f",5]"#));
    let file = |folder: &tempfile::TempDir| {
        std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path()
    };
    let one = Longpole::with(["paths", "-k", "1000"]).and(file(&folder)).ok().stdout;
    assert!(one.contains("There is only one path") && one.contains("There is no other path."), "{one}");
    // A path that is asked for by number and is not there is as wrong as an unknown function.
    let shown = Longpole::with(["paths", "--show", "7"]).and(file(&folder)).fails(2, "there is no path 7");
    assert!(shown.stderr.contains("give --show 1"), "{}", shown.stderr);
    let shown =
        Longpole::with(["paths", "--json", "--show=7"]).and(file(&folder)).fails(2, "there is no path 7");
    assert_eq!(shown.stdout, "");
    let (idle, _) = report_of(&program(""));
    let (empty, _) = report_of(r#"{"format":"longpole-program","version":1,"threads":[]}"#);
    for folder in [idle, empty] {
        for command in [&["slack"][..], &["paths"], &["what-if", "--rank"], &["what-if", "--free-io"]] {
            let text = Longpole::with(command.iter().copied()).and(file(&folder)).ok().stdout;
            assert!(!text.trim().is_empty() && !text.contains("NaN"), "{command:?}: {text}");
            let json = Longpole::with(command.iter().copied()).and("--json").and(file(&folder)).ok().stdout;
            assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok(), "{command:?}: {json}");
        }
        let text = Longpole::with(["diff"]).and(file(&folder)).and(file(&folder)).ok().stdout;
        assert!(text.starts_with("There is nothing to compare"), "{text}");
        Longpole::with(["paths", "--show", "2"]).and(file(&folder)).fails(2, "there is no path 2");
    }
}
