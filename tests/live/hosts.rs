//! Two programs are recorded separately, as if on two hosts, and the recordings are joined.

use longpole_tests::{Longpole, Recorded, skip_unless_live};
use serde_json::Value;
use std::net::TcpListener;

const REQUESTS: u64 = 400;

/// A free port.
fn port() -> String {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    free.local_addr().expect("an address").port().to_string()
}

#[test]
fn recordings_of_both_ends_of_a_connection_are_joined_to_one_program() {
    let program = skip_unless_live!("hosts.c");
    let port = port();
    let (db, web) = std::thread::scope(|scope| {
        let db = scope.spawn(|| Recorded::good(&["--per", "socket"], &program, &["db", &port]));
        let web = Recorded::good(&["--per", "socket"], &program, &["web", &port, &REQUESTS.to_string()]);
        (db.join().expect("the other recording"), web)
    });
    let folder = tempfile::tempdir().expect("a folder");
    let both = folder.path().join("both.lp");
    let said = Longpole::with(["join", "-o"]).and(&both).and(&web.file).and(&db.file).ok();
    println!("{}", said.stdout);
    assert!(said.stdout.contains("of 2 hosts"), "{}", said.stdout);
    let report = Longpole::with(["report", "--json"]).and(&both).ok();
    let report: Value = serde_json::from_str(&report.stdout).expect("JSON");
    let mut findings = report["findings"].as_array().expect("findings").iter();
    let hosts = findings.find(|finding| finding["kind"] == "hosts").expect("a finding about hosts");
    let messages = hosts["messages"].as_u64().expect("a number");
    // If a message arrives when a thread is just about to sleep, the thread does not wait for the message.
    assert!(messages > 2 * REQUESTS * 9 / 10 && messages <= 2 * REQUESTS, "{messages} messages ended waits");
    // Both programs ran on one machine with one clock. Messages take about 20 us here, and more if the machine is
    // loaded.
    let error_ns = hosts["clock_error_ns"].as_u64().expect("a number");
    assert!(error_ns < 2_000_000, "{hosts}");
    let functions = report["results"][0]["functions"].as_array().expect("functions");
    let share = |name: &str| {
        let of = functions.iter().find(|row| row["function"] == name).expect("the function");
        of["tet_ns"].as_f64().expect("a number")
    };
    let part = share("look_up") / (share("look_up") + share("render"));
    assert!((0.7..0.8).contains(&part), "look_up has {part:.2} of the path through both programs, not 0.75");
}

#[test]
fn recordings_without_common_requests_are_refused_with_a_hint() {
    let program = skip_unless_live!("toy.c");
    let other = Recorded::good(&[], &program, &[]);
    let refused = Longpole::with(["join"]).and(&other.file).and(&other.file).code(1);
    assert!(refused.stderr.contains("no single requests"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--per socket"), "{}", refused.stderr);
}
