//! Tests of the answers to requests, and their content, without sockets.

use super::access::{Access, Token};
use super::answer::{Answer, answer};
use super::board::Board;
use super::texts::Writer;
use crate::tui::{LiveCounts, Requests, Snapshot};
use engine::event::LossCounts;
use engine::program::{CauseKind, Endpoint, TimePart};
use engine::report::{Cpus, Detail, Report};
use engine::requests::{CauseRow, Latencies, RequestSummary};
use hyper::{Request, StatusCode};
use std::sync::Arc;

const TOKEN: &str = "0123456789abcdef";

fn access(address: &str) -> Access {
    Access::new(address.parse().expect("an address"), Token::chosen(TOKEN).expect("a token"))
}

fn ask(access: &Access, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let request =
        headers.iter().fold(Request::builder().method(method).uri(path), |request, (name, value)| {
            request.header(*name, *value)
        });
    answer(&request.body(()).expect("a request").into_parts().0, access)
}

fn status(answer: Answer) -> StatusCode {
    match answer {
        Answer::No(status, _) => status,
        _ => StatusCode::OK,
    }
}

const HERE: (&str, &str) = ("host", "127.0.0.1:9464");

#[test]
fn metrics_are_open_to_this_machine_and_the_page_needs_the_token() {
    let local = access("127.0.0.1:9464");
    let get = |path: &str| ask(&local, "GET", path, &[HERE]);
    assert_eq!(get("/metrics"), Answer::Metrics);
    assert_eq!(get(&format!("/?token={TOKEN}")), Answer::Page);
    assert_eq!(get(&format!("/events?a=b&token={TOKEN}&c")), Answer::Events);
    for path in
        ["/", "/events", "/?token=", "/?token=0123456789abcdee", "/?token=0123456789abcdef0", "/?Token=x"]
    {
        assert_eq!(status(get(path)), StatusCode::FORBIDDEN, "{path}");
    }
    // From other machines, nothing can be read without the token.
    let open = access("0.0.0.0:9464");
    let bearer = |token: &str| status(ask(&open, "GET", "/metrics", &[HERE, ("authorization", token)]));
    assert_eq!(status(ask(&open, "GET", "/metrics", &[HERE])), StatusCode::UNAUTHORIZED);
    assert_eq!(bearer(&format!("Bearer {TOKEN}")), StatusCode::OK);
    for wrong in [TOKEN, "Bearer", "Bearer ", "Basic 0123456789abcdef", "Bearer 0123456789abcdeF"] {
        assert_eq!(bearer(wrong), StatusCode::UNAUTHORIZED, "{wrong}");
    }
}

#[test]
fn a_path_to_a_file_is_not_found_and_only_get_is_allowed() {
    let local = access("127.0.0.1:9464");
    for path in [
        "/../../etc/passwd",
        "/..%2f..%2fetc/passwd",
        "/metrics/",
        "//metrics",
        "/metrics/../events",
        "/%6detrics",
    ] {
        assert_eq!(status(ask(&local, "GET", path, &[HERE])), StatusCode::NOT_FOUND, "{path}");
    }
    for method in ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "CONNECT", "TRACE", "X"] {
        assert_eq!(
            status(ask(&local, method, "/metrics", &[HERE])),
            StatusCode::METHOD_NOT_ALLOWED,
            "{method}"
        );
    }
}

/// A page of another site could give its own host name the address of longpole, and then read the answers (DNS
/// rebinding).
#[test]
fn a_request_with_a_foreign_host_name_is_refused() {
    let local = access("[::1]:9464");
    let host = |host: &str| status(ask(&local, "GET", "/metrics", &[("host", host)]));
    for own in ["127.0.0.1:9464", "localhost:9464", "LOCALHOST", "[::1]:9464", "127.0.0.1", "[::1]"] {
        assert_eq!(host(own), StatusCode::OK, "{own}");
    }
    for other in
        ["evil.example:9464", "localhost.evil.example", "127.0.0.1.evil.example:9464", "", ":9464", "[::1"]
    {
        assert_eq!(host(other), StatusCode::MISDIRECTED_REQUEST, "{other}");
    }
    assert_eq!(status(ask(&local, "GET", "/metrics", &[])), StatusCode::MISDIRECTED_REQUEST);
}

#[test]
fn tokens_are_random_and_only_safe_characters_are_accepted() {
    let (one, other) = (Token::random().expect("random"), Token::random().expect("random"));
    assert_ne!(one.text(), other.text());
    assert!(Token::chosen(one.text()).is_some());
    for wrong in ["", "short", "0123456789abcde&", "0123456789abcde\n0", "0123456789abcdeé", &"x".repeat(257)]
    {
        assert!(Token::chosen(wrong).is_none(), "{wrong:?}");
    }
}

fn report(names: &[&str]) -> Report {
    let threads: Vec<_> = names
        .iter()
        .map(|name| serde_json::json!({"name": name, "ops": [["lock", name], ["exec", name, 1000], ["unlock", name]]}))
        .collect();
    let program = serde_json::json!({"format": "longpole-program", "version": 1, "threads": threads});
    let program = engine::program::json::read(&program.to_string()).expect("a program");
    let cpus = [Cpus::ONE, Cpus::Infinite];
    engine::report::report(&program, &cpus, Detail::Functions)
}

/// A series that occurs twice would make the complete text invalid, and a line end in a name would begin another
/// series.
#[test]
fn metrics_escape_names_and_contain_each_series_once() {
    let names = ["a\nb", "\"} 1\n# EOF", "\\", "x"];
    let mut twice = report(&names);
    twice.results.push(twice.results[0].clone());
    let board = Board::new("s\"u\n".to_owned());
    board.show(Arc::new(Snapshot { report: twice, ..Snapshot::default() }));
    let loss = LossCounts { dropped: 7, ..LossCounts::default() };
    board.count(LiveCounts { events: 42, loss, ..LiveCounts::default() });
    let texts = Writer::new(board).texts();
    let text = std::str::from_utf8(&texts.metrics).expect("UTF-8");
    let series: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let keys: std::collections::BTreeSet<&str> =
        series.iter().filter_map(|line| line.rsplit_once(' ')).map(|(key, _)| key).collect();
    assert_eq!(keys.len(), series.len(), "{text}");
    assert!(text.contains("subject=\"s\\\"u\\n\""), "{text}");
    assert!(
        text.contains("longpole_events_total 42\n") && text.contains("reason=\"ring_full\"} 7\n"),
        "{text}"
    );
    for name in ["a\\nb", "\\\"} 1\\n# EOF", "\\\\", "x"] {
        assert!(
            text.contains(&format!("longpole_function_ratio{{cpus=\"1\",function=\"{name}\"}}")),
            "{name}: {text}"
        );
    }
    assert!(text.ends_with("\n# EOF\n") && text.matches("\n# EOF").count() == 1, "{text}");
    // An event is two lines, with any names.
    for event in [&texts.report, &texts.counts] {
        let text = std::str::from_utf8(event).expect("UTF-8");
        assert_eq!(text.lines().count(), 3, "{text}");
    }
}

/// A server with 30 ports, of which the first has the most requests and calls a function and a lock.
fn traffic() -> Vec<Endpoint> {
    let part =
        |kind, name: &str, share| TimePart { kind, name: name.to_owned(), share, ..TimePart::default() };
    let spent = vec![
        part(CauseKind::Computing, "parse", 0.25),
        part(CauseKind::Computing, "digest", 0.5),
        part(CauseKind::Lock, "a\"b", 0.25),
    ];
    let end = |port: u64| Endpoint {
        served: true,
        name: format!("port {port}"),
        count: 1_000 - port,
        per_second: 250.5,
        open: 1.5,
        mean_ns: 3e6,
        p99_ns: 9_000_000,
        ..Endpoint::default()
    };
    let mut ends: Vec<Endpoint> = (80..110).map(end).collect();
    ends[0].spent = spent;
    ends[1].count = 1;
    ends
}

#[test]
fn metrics_and_page_have_the_requests_of_the_busiest_endpoints() {
    let limits = engine::limit::Limits { traffic: traffic(), ..engine::limit::Limits::default() };
    let board = Board::new(String::new());
    board.show(Arc::new(Snapshot { report: report(&["x"]), limits, ..Snapshot::default() }));
    let texts = Writer::new(board).texts();
    let text = std::str::from_utf8(&texts.metrics).expect("UTF-8");
    let of = "direction=\"answered\",endpoint=\"port 80\"";
    for line in [
        format!("longpole_requests_per_second{{{of}}} 250.5"),
        format!("longpole_requests_open{{{of}}} 1.5"),
        format!("longpole_request_mean_seconds{{{of}}} 0.003"),
        format!("longpole_request_p99_seconds{{{of}}} 0.009"),
        format!("longpole_request_spent_ratio{{{of},cause=\"computing\"}} 0.75"),
        format!("longpole_request_spent_ratio{{{of},cause=\"a\\\"b\"}} 0.25"),
    ] {
        assert!(text.contains(&format!("\n{line}\n")), "{line}: {text}");
    }
    assert!(!text.contains("port 81"), "too few requests: {text}");
    assert_eq!(text.matches("\nlongpole_requests_per_second{").count(), 20, "{text}");
    let event = std::str::from_utf8(&texts.report).expect("UTF-8");
    let json = event.split_once("data: ").expect("data").1;
    let json: serde_json::Value = serde_json::from_str(json).expect("JSON");
    let lines = &json["limit"]["requests"];
    assert_eq!((&lines[0][0], &lines[1][0]), (&"SERVES".into(), &"SPENDS".into()), "{lines}");
    assert_eq!(lines[1][1], "a request's time: 75 % computing, most in digest, 25 % a\"b");
}

#[test]
fn metrics_have_the_latencies_and_causes_of_single_requests() {
    let latencies =
        Latencies { p50_ns: 1_000_000, p90_ns: 2_000_000, p99_ns: 8_000_000, ..Latencies::default() };
    let kind = CauseKind::Computing;
    let row = CauseRow { kind, name: "digest".to_owned(), fast_ns: 5e5, slow_ns: 6e6, ..CauseRow::default() };
    let summary = RequestSummary {
        count: 500,
        span_ns: 2_000_000_000,
        latencies,
        rows: vec![row],
        ..RequestSummary::default()
    };
    let metrics = |summary| {
        let requests = Some(Requests { what: "serve".to_owned(), summary, ..Requests::default() });
        let board = Board::new(String::new());
        board.show(Arc::new(Snapshot { requests, report: report(&["x"]), ..Snapshot::default() }));
        let texts = Writer::new(board).texts();
        String::from_utf8(texts.metrics.to_vec()).expect("UTF-8")
    };
    let text = metrics(Some(summary));
    for line in [
        "longpole_per_requests_per_second{per=\"serve\"} 250",
        "longpole_per_request_p50_seconds{per=\"serve\"} 0.001",
        "longpole_per_request_p90_seconds{per=\"serve\"} 0.002",
        "longpole_per_request_p99_seconds{per=\"serve\"} 0.008",
        "longpole_per_request_spent_seconds{per=\"serve\",group=\"fast\",cause=\"computing digest\"} 0.0005",
        "longpole_per_request_spent_seconds{per=\"serve\",group=\"slow\",cause=\"computing digest\"} 0.006",
    ] {
        assert!(text.contains(&format!("\n{line}\n")), "{line}: {text}");
    }
    // Without a request, the rate is 0 and latencies have no value.
    let text = metrics(None);
    assert!(text.contains("\nlongpole_per_requests_per_second{per=\"serve\"} 0\n"), "{text}");
    assert!(!text.contains("longpole_per_request_p50_seconds{"), "{text}");
}

#[test]
fn metrics_have_at_most_20_functions_and_events_at_most_100_rows() {
    let names: Vec<String> = (0..500).map(|number| format!("f{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let board = Board::new(String::new());
    board.show(Arc::new(Snapshot { report: report(&names), ..Snapshot::default() }));
    let texts = Writer::new(board).texts();
    let text = std::str::from_utf8(&texts.metrics).expect("UTF-8");
    let series = text.matches("\nlongpole_function_ratio{").count();
    assert!((20..=40).contains(&series), "{series}: 20 on each number of CPUs");
    let event = std::str::from_utf8(&texts.report).expect("UTF-8");
    let json = event.split_once("data: ").expect("data").1;
    let json: serde_json::Value = serde_json::from_str(json).expect("JSON");
    assert_eq!(json["report"]["results"][0]["functions"].as_array().map(Vec::len), Some(100));
    assert_eq!(json["report"]["locks"].as_array().map(Vec::len), Some(100));
}
