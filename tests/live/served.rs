//! Requests over sockets. The server and its clients are separate processes, and their requests must be counted
//! exactly.

use longpole_tests::{Longpole, Recorded, skip_unless_live};
use serde_json::Value;

const CLIENTS: u64 = 3;
const REQUESTS: u64 = 200;
/// How long each answer takes, in microseconds.
const EACH_US: u64 = 2000;

/// Sums of served requests, or of sent ones: number, nanoseconds unread, nanoseconds of work, and the longest.
fn sums(session: &Value, served: bool) -> [u64; 4] {
    let sums = session["requests"]["sums"].as_array().expect("sums");
    let of = |name: &str| -> u64 {
        let own = sums.iter().filter(|sum| sum["served"] == served);
        own.map(|sum| sum[name].as_u64().expect("a number")).sum()
    };
    ["count", "queued_ns", "answered_ns", "longest_ns"].map(of)
}

fn check(family: &str) {
    let program = skip_unless_live!("ask.c");
    let folder = tempfile::tempdir().expect("a folder");
    let name = folder.path().join("socket");
    let [clients, requests, each] = [CLIENTS, REQUESTS, EACH_US].map(|number| number.to_string());
    let arguments = [family, &clients, &requests, &each, name.to_str().expect("a name")];
    let recorded = Recorded::good(&[], &program, &arguments);
    let info = Longpole::with(["info", "--json"]).and(&recorded.file).ok();
    let info: Value = serde_json::from_str(&info.stdout).expect("JSON");
    let session = &info["session"];
    let all = CLIENTS * REQUESTS;
    let [served, queued_ns, answered_ns, longest_ns] = sums(session, true);
    let [asked, unread_ns, waited_ns, _] = sums(session, false);
    assert_eq!((served, asked, unread_ns), (all, all, 0), "{}", session["requests"]);
    // One thread answers requests one after the other. Meanwhile the requests of other clients are in their sockets.
    let slept_ns = all * EACH_US * 1000;
    assert!(answered_ns >= slept_ns && queued_ns >= slept_ns, "{answered_ns} and {queued_ns} of {slept_ns}");
    assert!(longest_ns >= 2 * EACH_US * 1000 && waited_ns >= answered_ns, "{longest_ns}, {waited_ns}");
    let report = Longpole::with(["report", "--json"]).and(&recorded.file).ok();
    let report: Value = serde_json::from_str(&report.stdout).expect("JSON");
    let end = &report["limit"]["requests"][0];
    let number = |name: &str| end[name].as_f64().expect("a number");
    assert!(number("open") > 1.5 && number("open") <= CLIENTS as f64 && number("load") > 0.8, "{end}");
    // The server sleeps but is not idle, because clients always wait for its only thread.
    assert_eq!(report["limit"]["at"][0]["kind"], "answering_threads", "{}", report["limit"]["at"]);
    assert_eq!(end["threads"], 1, "{end}");
    let single = Longpole::with(["report", "--per", "socket", "--json"]).and(&recorded.file).ok();
    let single: Value = serde_json::from_str(&single.stdout).expect("JSON");
    assert_eq!(single["requests"], all, "{single}");
    assert_eq!(single["latency_ns"]["p50"], end["median_ns"], "both are exact");
    let queue = single["causes"].as_array().expect("causes").iter().find(|cause| cause["kind"] == "queue");
    assert!(queue.is_some(), "requests wait for other clients' requests: {single}");
    let waits = report["waits"].as_array().expect("waits").iter();
    let names = waits.filter(|wait| wait["name"] == "socket receive").flat_map(|wait| wait["of"].as_array());
    let names: Vec<&Value> = names.flatten().map(|of| &of["name"]).collect();
    let asked = &report["limit"]["requests"].as_array().expect("ends")[1]["name"];
    assert!(names.contains(&asked), "{names:?} without {asked}");
    let screen = Longpole::with(["report"]).and(&recorded.file).ok().stdout;
    assert!(screen.contains("\nSERVES ") && screen.contains("\nASKS "), "{screen}");
}

#[test]
fn requests_over_tcp_are_counted() {
    check("tcp");
}

#[test]
fn requests_over_unix_sockets_are_counted() {
    check("unix");
}
