//! Clients that wait for a server's answers must not notice that longpole attaches to the server or detaches from it.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use longpole_tests::latency_client::{LatencyClient, lengths, quantile};
use longpole_tests::{Background, Longpole, Recorded, skip_unless_live};

const LIMIT: Duration = Duration::from_secs(120);
/// Length of each of the compared stretches of time.
const STRETCH: Duration = Duration::from_secs(2);

/// A server of 50 threads under the load of some clients. The clients end together with it.
struct Server {
    server: Background,
    _load: Background,
    _folder: tempfile::TempDir,
    client: UnixStream,
}

impl Server {
    fn start(program: &Path) -> Server {
        let folder = tempfile::tempdir().expect("folder");
        let socket = folder.path().join("socket");
        let mut server = Background::must_start(Command::new(program).arg(&socket).args(["50", "200"]));
        assert_eq!(server.line(LIMIT).expect("a line"), "ready");
        let mut load = Background::must_start(Command::new(program).arg("load").arg(&socket).arg("4"));
        assert_eq!(load.line(LIMIT).expect("a line"), "ready");
        let client = UnixStream::connect(&socket).expect("a server");
        Server { server, _load: load, _folder: folder, client }
    }

    fn asked(&self) -> LatencyClient {
        LatencyClient::start(self.client.try_clone().expect("a client"), b"?")
    }
}

/// If all functions and locks got probes at once, answers would be late: Redis then took 160 to 277 ms instead of 9.
#[test]
fn a_server_s_answers_stay_fast_while_longpole_attaches_and_detaches() {
    let program = skip_unless_live!("answers.c");
    let mut server = Server::start(&program);
    let asking = server.asked();
    std::thread::sleep(STRETCH);
    let attached = Instant::now();
    let (mut record, _folder, file) = Recorded::attach_in_background(&["--exact"], server.server.pid());
    record.wait_for_stderr("recording ", LIMIT).expect("a recording");
    std::thread::sleep(STRETCH);
    let left = Instant::now();
    record.signal("INT").expect("it runs");
    let ended = record.wait(LIMIT).expect("it ends");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let gone = Instant::now();
    std::thread::sleep(STRETCH);
    let over = Instant::now();
    let answers = asking.finish().expect("a server");
    let before = lengths(&answers, attached - STRETCH, attached);
    let after = lengths(&answers, gone, over);
    let with = lengths(&answers, attached, left);
    let leaving = lengths(&answers, left, gone);
    // Other programs load the machine in all stretches. So the worse of the two stretches without longpole is the
    // measure.
    let worst = |lengths: &[f64]| quantile(lengths, 1.0);
    let alone = worst(&before).max(worst(&after));
    let said = format!(
        "alone {alone:.1} ms, while it attaches and records {:.1} (99 %: {:.2}), while it goes {:.1}",
        worst(&with),
        quantile(&with, 0.99),
        worst(&leaving)
    );
    println!("{said}");
    assert!(worst(&with) < 5.0 * alone + 40.0 && worst(&leaving) < 5.0 * alone + 40.0, "{said}");
    assert!(server.server.is_running().expect("a server"));

    // Functions and locks that are used all the time must get no probes, and the recording must say why.
    let summary = &ended.stderr;
    assert!(
        summary.contains("no probes on mutexes and condition variables: the program uses them "),
        "{summary}"
    );
    let report = Longpole::report(&file, "1");
    let off = report.findings("operations_off");
    assert!(off.iter().any(|said| said.contains("probes would cost")), "{off:?}");
    for hot in ["HotStep", "LookUp"] {
        let calls = report.at(1).function(hot, "calls").unwrap_or(0.0);
        assert_eq!(calls, 0.0, "{hot} had probes: {summary}");
    }
    assert!(report.at(1).functions().iter().any(|name| name.starts_with("HotStep")), "samples show it");
}

/// Functions and locks that the user names get probes at once, and a message says how much a call costs then.
#[test]
fn functions_named_on_the_command_line_are_probed_at_once() {
    let program = skip_unless_live!("answers.c");
    let server = Server::start(&program);
    let options =
        ["-d", "1s", "--functions", "Answer", "--functions", "pthread_mutex_*", "--overhead", "50%"];
    let recorded = Recorded::attach(&options, server.server.pid());
    let said = &recorded.ended.stderr;
    assert!(said.contains("probed at once: 1 functions; each call costs "), "{said}");
    assert!(said.contains("recorded by probes on the functions of libc"), "{said}");
    assert!(!said.contains("if they cost little"), "{said}");
    let calls = recorded.report("1").at(1).function("Answer", "calls").unwrap_or(0.0);
    assert!(calls > 10.0, "{calls}: {said}");
}
