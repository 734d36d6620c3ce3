//! Tests that read metrics with Prometheus's own parser and with Prometheus itself, and the page with a browser.

use super::{TOKEN, serve, snapshot, snapshot_of};
use crate::command_line::Folder;
use crate::exports::{hostile::hostile, tools};
use crate::page::browser::{chromium, drive};
use longpole_tests::skip;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The body of an answer.
fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").expect("headers and a body").1
}

/// Name, labels and value of each sample, by Prometheus's own parser.
fn parsed(python: &Path, folder: &Folder, text: &str) -> Vec<(String, Value, f64)> {
    let file = folder.file("metrics", text);
    let told = tools::checked(python, "read_metrics.py", &[&file]);
    serde_json::from_str(&told).expect("JSON")
}

macro_rules! python {
    () => {
        match tools::python() {
            Ok(python) => python,
            Err(reason) => skip!("{reason}"),
        }
    };
}

#[test]
fn prometheus_parser_finds_the_numbers_of_the_report() {
    let python = python!();
    let (served, folder) = (serve(), Folder::new());
    let before = parsed(&python, &folder, body(&served.get("/metrics")));
    assert!(before.iter().any(|(name, ..)| name == "longpole_events_total"), "before the first report");
    let mut compared = 0;
    for name in ["store", "pipeline", "timers"] {
        let (served, snapshot) = (serve(), snapshot(name));
        served.board.show(snapshot.clone());
        let answer = served.get("/metrics");
        assert!(
            answer.contains("content-type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"),
            "{answer}"
        );
        let samples = parsed(&python, &folder, body(&answer));
        let value = |name: &str, labels: Value| {
            samples.iter().find(|sample| sample.0 == name && sample.1 == labels).map(|sample| sample.2)
        };
        for result in &snapshot.report.results {
            let cpus = result.cpus.to_string();
            let time = value("longpole_predicted_seconds", serde_json::json!({"cpus": cpus}));
            assert_eq!(time, Some(result.time_ns / 1e9), "{name} on {cpus}");
            let largest =
                result.functions.iter().max_by(|a, b| a.tet_ns.total_cmp(&b.tet_ns)).expect("a function");
            let labels = serde_json::json!({"cpus": cpus, "function": largest.function});
            assert_eq!(value("longpole_function_ratio", labels), Some(largest.tet_ns / result.time_ns));
            compared += 2;
        }
        for lock in snapshot.report.locks.iter().take(20) {
            let labels = serde_json::json!({"lock": lock.lock});
            assert_eq!(value("longpole_lock_acquisitions", labels), Some(lock.acquisitions as f64));
            compared += 1;
        }
    }
    assert!(compared > 24, "{compared}");
}

#[test]
fn hostile_lock_names_stay_labels_of_metrics() {
    let python = python!();
    let (served, folder) = (serve(), Folder::new());
    let text = std::fs::read_to_string(hostile(&folder)).expect("written");
    let program = engine::program::json::read(&text).expect("a program");
    served.board.show(snapshot_of(&program));
    let samples = parsed(&python, &folder, body(&served.get("/metrics")));
    let told: BTreeSet<&str> = samples.iter().filter_map(|(_, labels, _)| labels["lock"].as_str()).collect();
    for object in &program.objects {
        assert!(told.contains(object.as_str()), "{object:?}: {told:?}");
    }
}

/// The queries of the dashboard.
fn questions() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/grafana-dashboard.json");
    let dashboard: Value = serde_json::from_slice(&std::fs::read(page).expect("read")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    targets.map(|target| target["expr"].as_str().expect("a question").to_owned()).collect()
}

/// The server has every name that the dashboard asks for.
#[test]
fn the_dashboard_asks_only_for_metrics_that_exist() {
    let served = serve();
    served.board.show(snapshot("store"));
    let metrics = served.get("/metrics");
    for question in questions() {
        let words = question.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let names: Vec<&str> = words.filter(|word| word.starts_with("longpole_")).collect();
        assert!(!names.is_empty(), "{question}");
        for name in names {
            let starts = [format!("\n# TYPE {name} "), format!("\n{name}{{"), format!("\n{name} ")];
            assert!(starts.iter().any(|start| metrics.contains(start)), "{name} of {question}: {metrics}");
        }
    }
}

/// A server process that is killed at the end of the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn prometheus_reads_the_metrics_of_the_report() {
    if !tools::has("prometheus", "--version") {
        skip!("there is no prometheus here");
    }
    let python = python!();
    let (served, folder) = (serve(), Folder::new());
    let snapshot = snapshot("store");
    served.board.show(snapshot.clone());
    let config = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n- job_name: longpole\n  static_configs: [{{targets: ['{}']}}]\n",
        served.address
    );
    let config = folder.file("prometheus.yml", config);
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its number").port();
    let mut command = Command::new("prometheus");
    command
        .arg(format!("--config.file={config}"))
        .arg(format!("--storage.tsdb.path={}", folder.path("data")));
    command.arg(format!("--web.listen-address=127.0.0.1:{port}")).stdout(Stdio::null()).stderr(Stdio::null());
    let _server = Server(command.spawn().expect("prometheus starts"));
    let address = format!("http://127.0.0.1:{port}/api/v1/query");
    let ask = |question: &str| -> Vec<(Value, f64)> {
        let told = tools::checked(&python, "ask_prometheus.py", &[&address, question]);
        serde_json::from_str(&told).expect("JSON")
    };
    let begun = Instant::now();
    let found = loop {
        let found = ask("longpole_predicted_seconds");
        if !found.is_empty() {
            break found;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "up: {:?}", ask("up"));
        std::thread::sleep(Duration::from_millis(200));
    };
    for result in &snapshot.report.results {
        let cpus = result.cpus.to_string();
        let value = found.iter().find(|(labels, _)| labels["cpus"] == cpus.as_str()).map(|(_, value)| *value);
        assert_eq!(value, Some(result.time_ns / 1e9), "on {cpus}: {found:?}");
    }
    assert!(ask("up").iter().all(|(_, up)| *up == 1.0));
    for question in questions() {
        let question = question.replace("$job", ".*").replace("$instance", ".*").replace("$cpus", "8");
        let found = ask(&question);
        // There is no rate and no cost after the start, since the recording was made before.
        let has_none = ["rate(", "cost"].iter().any(|word| question.contains(word));
        assert!(has_none || !found.is_empty(), "{question}");
    }
}

#[test]
fn the_live_page_shows_the_report_in_a_browser() {
    let chromium = match chromium() {
        Ok(chromium) => chromium,
        Err(reason) => skip!("{reason}"),
    };
    let served = serve();
    let snapshot = snapshot("store");
    served.board.show(snapshot.clone());
    let address = format!("http://{}/?token={TOKEN}", served.address);
    let found = drive(&chromium, "live", &[&address]);
    assert_eq!(found["title"], "store (pid 4242) – longpole top");
    let times: Vec<f64> =
        found["times"].as_array().expect("times").iter().filter_map(Value::as_f64).collect();
    assert_eq!(times, snapshot.report.results.iter().map(|result| result.time_ns).collect::<Vec<_>>());
    let functions = found["functions"].as_array().expect("names");
    assert_eq!(functions.len(), snapshot.report.results[0].functions.len().min(100));
    assert!(functions.iter().any(|name| name == "digest_row"), "{functions:?}");
    assert!(found["limit"].as_str().expect("text").contains("registry.gate"), "{found}");
}

#[test]
fn hostile_names_run_nothing_in_the_live_page() {
    let chromium = match chromium() {
        Ok(chromium) => chromium,
        Err(reason) => skip!("{reason}"),
    };
    let (served, folder) = (serve(), Folder::new());
    let text = std::fs::read_to_string(hostile(&folder)).expect("written");
    served.board.show(snapshot_of(&engine::program::json::read(&text).expect("a program")));
    let address = format!("http://{}/?token={TOKEN}", served.address);
    let found = drive(&chromium, "live", &[&address]);
    let functions = found["functions"].as_array().expect("names");
    assert!(functions.iter().any(|name| name == "</script><script>alert(1)</script> f"), "{functions:?}");
}
