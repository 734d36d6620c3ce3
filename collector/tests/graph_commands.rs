//! Commands about a program's graph: options that make no sense, and programs with little to show.

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
fn options_of_graph_commands_that_make_no_sense_are_refused() {
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
    fails(&["what-if"], 2, "no change is given");
    fails(&["what-if", "--rank", "--free-io"], 2, "");
    fails(&["what-if", "--split-lock", "X=0"], 2, "--split-lock");
    fails(&["what-if", "--split-lock", "X=2"], 2, "X");
    fails(&["what-if", "--free-io", "--model", "cfs"], 2, "cfs");
    fails(&["what-if", "--free-io", "--cpus", "0"], 2, "--cpus");
    fails(&["diff"], 2, "");
    fails(&["check"], 2, "--rules");
    fails(&["check", "--rules", "/no/such/rules.toml"], 1, "/no/such/rules.toml");
    // An unknown function gives suggestions.
    let (_folder, call) = report_of(&program(r#"["exec","parse_line",5],["exec","hash",7]"#));
    call.ok();
    let (folder, _) = report_of(&program(r#"["exec","parse_line",5],["exec","hash",7]"#));
    let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    for arguments in [["what-if", "--scale", "pars_line=0.5"], ["what-if", "--headroom", "pars_line"]] {
        let ended = Longpole::with(arguments).and(&file).fails(2, "pars_line");
        assert!(ended.stderr.contains("parse_line") && !ended.stderr.contains("hash"), "{}", ended.stderr);
    }
    // --next reads answers from standard input, so the program cannot come from there.
    Longpole::with(["paths", "--next", "-"]).fails(2, "--next");
    // A threshold on a function that neither program has would always be kept.
    let ended =
        Longpole::with(["diff", "--fail-on", "pars_line=5%"]).and(&file).and(&file).fails(2, "pars_line");
    assert!(ended.stderr.contains("did you mean parse_line?"), "{}", ended.stderr);
}

/// More paths asked for than there are, no thread, threads that do nothing: exit code 0 and a sentence.
#[test]
fn asking_for_more_paths_than_there_are_is_no_error() {
    let (folder, _) = report_of(&program(r#"["exec","f",5]"#));
    let file = |folder: &tempfile::TempDir| {
        std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path()
    };
    let one = Longpole::with(["paths", "-k", "1000"]).and(file(&folder)).ok().stdout;
    assert!(one.contains("There is only one path") && one.contains("There is no other path."), "{one}");
    // A path number that does not exist is an error, as an unknown function is.
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
