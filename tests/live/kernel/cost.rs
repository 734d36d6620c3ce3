//! What recording costs. Measurements, not tests: `cargo test -p longpole-tests --test live kernel::cost -- --ignored
//! --nocapture --test-threads 1`.

use super::support::{GATE, Program, compile, record_with};
use longpole_tests::workload::Problem;
use longpole_tests::{skip_unless_built, skip_unless_live};

const HAND_OVER: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
enum { ROUNDS = 200000 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn;
static void *play(void *argument) {
    int me = (int)(long)argument;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&mutex);
        while (turn != me) pthread_cond_wait(&changed, &mutex);
        turn = !me;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&mutex);
    }
    return 0;
}
int main(void) {
    gate();
    struct timespec a, b;
    pthread_t t, u;
    clock_gettime(CLOCK_MONOTONIC, &a);
    pthread_create(&t, 0, play, (void *)0L);
    pthread_create(&u, 0, play, (void *)1L);
    pthread_join(t, 0);
    pthread_join(u, 0);
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("%ld\n", (b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec);
    return 0;
}
"#;

/// Nanoseconds that the target says it took.
fn nanoseconds(stdout: &str) -> f64 {
    stdout.trim().parse().expect("a number")
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
#[ignore = "a measurement"]
fn cost_of_a_hand_over() {
    skip_unless_live!();
    let program = skip_unless_built!(compile("c", &format!("{GATE}{HAND_OVER}"), &[]));
    let (mut plain, mut recorded, mut events) = (Vec::new(), Vec::new(), 0);
    // Costs of the single programs, where root may ask for them.
    let counting = std::fs::write("/proc/sys/kernel/bpf_stats_enabled", "1").is_ok();
    let run = record_with(&program, |options| options.ring_bytes = 1 << 26);
    for cost in run.costs.iter().filter(|cost| counting && cost.runs > 0) {
        println!("{}: {} runs, {} ns each", cost.name, cost.runs, cost.total_ns / cost.runs);
    }
    let _ = std::fs::write("/proc/sys/kernel/bpf_stats_enabled", "0");
    for _ in 0..7 {
        plain.push(nanoseconds(&program.run_plain().stdout));
        let run = record_with(&program, |options| options.ring_bytes = 1 << 26);
        events = run.records.len();
        assert_eq!(run.loss.lost(), 0);
        recorded.push(nanoseconds(&run.outcome.stdout));
    }
    let (plain, recorded) = (median(plain), median(recorded));
    println!(
        "hand-over: plain {:.0} ns, recorded {:.0} ns = {:.2}x; {} events, {:.0} ns each",
        plain / 4e5,
        recorded / 4e5,
        recorded / plain,
        events,
        (recorded - plain) / events as f64
    );
}

fn call_loop() -> Result<Program, Problem> {
    let source = r#"
#include <stdio.h>
#include <time.h>
enum { CALLS = 50000 };
volatile long sink;
__attribute__((noinline)) void leaf(long x) { sink += x; }
int main(void) {
    gate();
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (long i = 0; i < CALLS; i++) leaf(i);
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("%ld\n", (b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec);
    return 0;
}
"#;
    compile("c", &format!("{GATE}{source}"), &[])
}

#[test]
#[ignore = "a measurement"]
fn cost_of_a_probe() {
    skip_unless_live!();
    let program = skip_unless_built!(call_loop());
    let mut results = Vec::new();
    for (what, entry_only) in [("entry", true), ("entry and exit", false)] {
        let mut times = Vec::new();
        for _ in 0..5 {
            let run = record_with(&program, |options| {
                options.functions = program.functions(&["leaf"]);
                if entry_only {
                    options.functions[0].exit_offsets.clear();
                }
            });
            times.push(nanoseconds(&run.outcome.stdout) / 5e4);
        }
        results.push((what, median(times)));
    }
    println!("call: plain {:.1} ns", nanoseconds(&program.run_plain().stdout) / 5e4);
    for (what, time) in results {
        println!("call with {what}: {time:.0} ns");
    }
}

#[test]
#[ignore = "a measurement"]
fn cost_of_many_functions() {
    skip_unless_live!();
    let mut source = format!("{GATE}volatile long sink;\n");
    let mut names = Vec::new();
    for number in 0..5_000 {
        let name = format!("function_{number}");
        source += &format!("void {name}(long x) {{ if (x) sink += {number}; else sink -= x; }}\n");
        names.push(name);
    }
    source += "int main(void) { gate(); gate(); return 0; }\n";
    let program = skip_unless_built!(compile("c", &source, &[]));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let functions = program.functions(&names);
    let probes: usize = functions.iter().map(|function| 1 + function.exit_offsets.len()).sum();
    for round in 0..5 {
        let target = program.start();
        let mut options = super::support::options(target.pid());
        options.functions = if round == 0 { Vec::new() } else { functions.clone() };
        let start = std::time::Instant::now();
        let mut capture = capture::probe::Capture::start(options).expect("capture");
        let attached = start.elapsed();
        let start = std::time::Instant::now();
        let shed = if round == 0 {
            std::time::Duration::ZERO
        } else {
            capture.shed(&[17]).expect("shed");
            start.elapsed()
        };
        std::thread::sleep(std::time::Duration::from_millis(200));
        let start = std::time::Instant::now();
        capture.stop();
        println!(
            "{} functions, {probes} probes: attach {} ms, take one off {} ms, detach {} ms",
            if round == 0 { 0 } else { functions.len() },
            attached.as_millis(),
            shed.as_millis(),
            start.elapsed().as_millis()
        );
    }
}

#[test]
#[ignore = "a measurement"]
fn time_until_a_hot_function_is_free() {
    skip_unless_live!();
    let source = r#"
volatile long sink;
__attribute__((noinline)) void hot(long x) { sink += x; }
int main(void) { gate(); for (;;) hot(1); }
"#;
    let program = skip_unless_built!(compile("c", &format!("{GATE}{source}"), &["-no-pie"]));
    let code = program.code("hot");
    for rate in [100, 1_000, 10_000] {
        let mut target = program.start();
        let mut options = super::support::options(target.pid());
        options.functions = program.functions(&["hot"]);
        options.max_rate_hz = rate;
        let capture = capture::probe::Capture::start(options).expect("capture");
        target.open_gate();
        let start = std::time::Instant::now();
        while target.memory(code.address, 1) != code.bytes[..1] {}
        println!("limit {rate}/s: free after {} ms", start.elapsed().as_millis());
        drop(capture);
    }
}
