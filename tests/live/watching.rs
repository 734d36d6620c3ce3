//! Tests of `longpole top --once` and `top --listen`: reports of a running program or command, without a terminal.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use longpole_tests::{Background, Longpole, Report, skip_unless_live};

const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn top_once_prints_json_or_text_without_a_terminal() {
    let program = skip_unless_live!("turns.c");
    let mut target = Background::must_start(Command::new(program).arg("1000000000"));
    assert_eq!(target.line(LIMIT).unwrap(), "started");
    let pid = target.pid().to_string();
    let once = |window: &str| Longpole::with(["top", "--once", "--window", window, "-p", &pid]);
    // On a busy machine, longpole may not have read the symbols when the first window ends.
    for attempt in 1.. {
        let report = once("3s").and("--json").and("--cpus").and("1,4,inf").ok().stdout;
        let report = Report::parse(&report);
        // There must be results for the requested CPU counts and for this machine's.
        assert!(report.0["results"].as_array().is_some_and(|all| all.len() >= 3), "{}", report.0);
        if report.at(1).function("locked", "tetid_ns") > Some(0.0) {
            break;
        }
        assert!(attempt < 10, "{}", report.0);
    }
    let text = once("1s").ok().stdout;
    assert!(text.contains("LIMIT") && text.contains("predicted"), "{text}");
    assert!(target.is_running().unwrap());
}

/// The call `longpole top --once --json -- COMMAND`. The command's output has a folder of its own.
fn watched(folder: &Path, options: &[&str]) -> Longpole {
    let mut call = Longpole::with(["top", "--once", "--json"]);
    call.command().env("TMPDIR", folder).args(options).arg("--");
    call
}

#[test]
fn the_output_of_a_command_under_top_goes_to_a_log() {
    let program = skip_unless_live!("turns.c");
    let folder = tempfile::tempdir().unwrap();
    let ended = watched(folder.path(), &[]).and(&program).and("20").ok();
    Report::parse(&ended.stdout);
    let (said, sentence) = (&ended.stderr, "the program's output goes to ");
    assert_eq!(said.matches(sentence).count(), 1, "said once: {said}");
    assert!(!said.contains("runs on"), "it has ended: {said}");
    let log = said.lines().find_map(|line| line.strip_prefix(sentence)).expect("said");
    assert_eq!(std::fs::read_to_string(log).unwrap(), "started\n");
}

#[test]
fn a_watched_command_that_runs_on_is_named_once() {
    let program = skip_unless_live!("turns.c");
    let folder = tempfile::tempdir().unwrap();
    let said = watched(folder.path(), &["--window", "1s"]).and(&program).and("20000").ok().stderr;
    let pid = said.split("(pid ").nth(1).and_then(|rest| rest.split(')').next()).expect("a pid");
    let was_alive = Path::new(&format!("/proc/{pid}")).exists();
    assert!(Command::new("kill").args(["-KILL", pid]).status().unwrap().success());
    assert!(was_alive, "{said}");
    assert_eq!(said.matches("runs on without longpole").count(), 1, "{said}");
    assert_eq!(said.matches("the program's output goes to ").count(), 1, "{said}");
}

#[test]
fn an_empty_log_of_a_command_under_top_is_removed() {
    skip_unless_live!();
    let folder = tempfile::tempdir().unwrap();
    for (command, code) in [("true", 0), ("/not/there", 127)] {
        watched(folder.path(), &[]).and(command).code(code);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{command}");
    }
}

/// Without a terminal, SIGTERM must end `top`, the program must continue, and the port must be free again.
#[test]
fn top_listen_serves_metrics_until_sigterm() {
    let program = skip_unless_live!("turns.c");
    let mut target = Background::must_start(Command::new(program).arg("1000000000"));
    assert_eq!(target.line(LIMIT).unwrap(), "started");
    let pid = target.pid().to_string();
    let mut call =
        Longpole::with(["top", "--listen", "0", "--refresh", "300ms", "--window", "2s", "-p", &pid]);
    let command = call.command().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut top = command.spawn().unwrap();
    let mut said = BufReader::new(top.stderr.take().unwrap()).lines().map_while(Result::ok);
    let page =
        said.find_map(|line| line.strip_prefix("page: http://").map(str::to_owned)).expect("an address");
    let (host, query) = page.split_once('/').unwrap();
    let get = |path: &str| {
        let mut stream = TcpStream::connect(host).unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(host.starts_with("127.0.0.1:") && get("/").starts_with("HTTP/1.1 403"), "{host}");
    assert!(get(&format!("/{query}")).contains("<script>"), "the page");
    let mut answers = (0..200).map(|_| {
        std::thread::sleep(Duration::from_millis(100));
        get("/metrics")
    });
    let has_functions = |metrics: &String| metrics.contains("\nlongpole_function_ratio{cpus=");
    let metrics = answers.find(has_functions).expect("a report in time");
    assert!(
        metrics.contains(&format!("(pid {pid})")) && metrics.contains("\nlongpole_cost_ratio 0."),
        "{metrics}"
    );
    assert!(Command::new("kill").arg(top.id().to_string()).status().unwrap().success());
    assert!(top.wait().unwrap().success());
    assert!(TcpStream::connect(host).is_err(), "nobody listens any more");
    assert!(target.is_running().unwrap());
}
