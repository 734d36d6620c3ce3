//! Records that have no room must be counted, and the count must equal the number of missing records.

use std::sync::Mutex;

use capture::probe::Capture;

use super::support::{Recorded, compile, drain, options};
use longpole_tests::{skip_unless_built, skip_unless_live};

/// The lines of the log.
struct Collected(Mutex<Vec<String>>);

static COLLECTED: Collected = Collected(Mutex::new(Vec::new()));

impl log::Log for Collected {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &log::Record<'_>) {
        self.0.lock().expect("no panic").push(format!("{} {}", record.level(), record.args()));
    }
    fn flush(&self) {}
}

/// A flood of records into the smallest ring. Every missing record must be counted and leave a missing number.
#[test]
fn a_flood_of_records_into_a_small_ring_is_counted_exactly() {
    skip_unless_live!();
    let source = r#"
        #include <sched.h>
        volatile long sink;
        __attribute__((noinline)) void work(long x) { sink += x; }
        int main(void) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(0, &one);
            sched_setaffinity(0, sizeof one, &one);
            gate();
            for (int i = 0; i < 3001; i++) work(i);
            gate();
            work(1);
            return 0;
        }"#;
    let program = skip_unless_built!(compile("c", source, &[]));
    let mut target = program.start();
    let pid = target.pid();
    log::set_logger(&COLLECTED).expect("the only logger of these tests");
    log::set_max_level(log::LevelFilter::Warn);
    let mut options = options(pid);
    options.ring_bytes = 4096;
    options.functions = program.functions(&["work"]);
    let mut capture = Capture::start(options).expect("capture");
    target.open_gate();
    // The test reads nothing until the target waits at its second gate.
    while capture.calls(0) != Some(3001) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    target.wait_for(|stat| stat.contains(" S "));
    let (mut records, mut bad) = (Vec::new(), 0);
    drain(&mut capture, &mut records, &mut bad);
    let dropped_by_then = capture.loss().dropped;
    assert!(dropped_by_then > 5_000, "3001 calls have 6002 records: {dropped_by_then}");
    target.open_gate();
    while !target.has_ended() {
        drain(&mut capture, &mut records, &mut bad);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let outcome = target.finish();
    capture.end();
    drain(&mut capture, &mut records, &mut bad);
    let calls = vec![capture.calls(0).expect("counted")];
    let summary = capture.stop();
    let received = records.len() as u64;
    // The log must have one line for each CPU, however many records are lost.
    let warnings = COLLECTED.0.lock().expect("no panic").clone();
    let of_cpu_0 = "WARN the ring of CPU 0 is full: records get lost";
    assert_eq!(warnings.iter().filter(|warning| *warning == of_cpu_0).count(), 1, "{warnings:?}");
    let recorded = Recorded { outcome, records, notes: summary.notes, loss: summary.loss, calls, pid };
    assert_eq!(summary.records, received + recorded.loss.dropped);
    assert_eq!(recorded.loss.missed, 0);
    // All records are of CPU 0, which also wrote some after the flood. So every lost record has a missing number.
    assert_eq!(recorded.holes(), recorded.loss.dropped);
}
