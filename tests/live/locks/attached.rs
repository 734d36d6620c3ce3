//! Locks of programs that longpole comes to later: nothing records their operations, and the answer is that of a recording
//! that did.

use super::support::program;
use longpole_tests::{Background, Longpole, Recorded, skip_unless_built, skip_unless_live};
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

/// Four threads; of 100 parts of work 60 are under `hot`, 10 under `cool`, and the rest under none. Argument: rounds.
const WORK: &str = r#"
__attribute__((noinline)) void burn(unsigned long n) {
    unsigned long x = 1;
    for (unsigned long i = 0; i < n; i++) { x = x * 6364136223846793005ul + i; __asm__ volatile("" : "+r"(x)); }
}
__attribute__((noinline)) void held_hot(void) { burn(24000); __asm__ volatile(""); }
__attribute__((noinline)) void held_cool(void) { burn(4000); __asm__ volatile(""); }
__attribute__((noinline)) void apart(void) { burn(12000); __asm__ volatile(""); }
"#;

const IN_C: &str = r#"
#include <pthread.h>
#include <stdlib.h>
pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER, cool = PTHREAD_MUTEX_INITIALIZER;
static long rounds;
static void *work(void *none) {
    for (long i = 0; i < rounds; i++) {
        apart();
        pthread_mutex_lock(&hot);
        held_hot();
        pthread_mutex_unlock(&hot);
        pthread_mutex_lock(&cool);
        held_cool();
        pthread_mutex_unlock(&cool);
    }
    return none;
}
int main(int count, char **words) {
    rounds = atol(words[1]);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    return 0;
}
"#;

/// The same with guards, so that taking and giving back are in functions of their own where nothing is inlined.
const IN_CPP: &str = r#"
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>
std::mutex hot, cool;
static void under_hot() { std::lock_guard<std::mutex> guard(hot); held_hot(); }
static void under_cool() { std::lock_guard<std::mutex> guard(cool); held_cool(); }
int main(int, char **words) {
    long rounds = atol(words[1]);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([=] { for (long i = 0; i < rounds; i++) { apart(); under_hot(); under_cool(); } });
    for (auto &thread : threads) thread.join();
}
"#;

fn attached(
    compiler: &str,
    flags: &[&str],
    text: &str,
) -> Result<(Value, f64), longpole_tests::workload::Problem> {
    let program = program(&format!("{WORK}{text}"), compiler, flags)?;
    let target = Background::must_start(Command::new(&program.path).arg("100000000"));
    std::thread::sleep(Duration::from_millis(300));
    let recorded = Recorded::attach(&["-d", "3s", "-F", "499", "--overhead", "none"], target.pid());
    target.signal("KILL").expect("killed");
    let shown =
        Longpole::with(["report", "--json", "--by", "lock", "--cpus", "1,2"]).and(&recorded.file).ok();
    let speed_up = recorded.report("1,2").at(2).speedup();
    Ok((serde_json::from_str(&shown.stdout).expect("JSON"), speed_up))
}

/// Of the running time, what samples say that `name` is held; and its error.
fn held(report: &Value, name: &str) -> Option<(f64, f64)> {
    let rows = report["objects"].as_array().expect("objects");
    let known = &rows.iter().find(|row| row["variable"] == name)?["put_back"];
    Some((known["held_share"].as_f64()?, known["held_error"].as_f64()?))
}

/// Attached, the lock of such a program was not named, and more CPUs were said to help.
#[test]
fn a_hot_lock_of_a_running_program_is_as_well_known_as_that_of_a_launched_one() {
    skip_unless_live!();
    for (compiler, level, text) in
        [("cc", "-O0", IN_C), ("cc", "-O2", IN_C), ("c++", "-O0", IN_CPP), ("c++", "-O2", IN_CPP)]
    {
        let (report, speed_up) = skip_unless_built!(attached(compiler, &[level], text));
        let what = format!("{compiler} {level}");
        let (share, error) = held(&report, "hot").unwrap_or_else(|| panic!("{what}: {report}"));
        assert!((share - 0.6).abs() <= 0.05 + error, "{what}: hot {share} ± {error} of 0.6");
        // Nobody may have had to wait for the other one while a stack was taken.
        if let Some((share, error)) = held(&report, "cool") {
            assert!((share - 0.1).abs() <= 0.05 + error, "{what}: cool {share} ± {error} of 0.1");
        }
        assert!(speed_up <= 100.0 / 60.0 + 0.1, "{what}: {speed_up}, with 60 of 100 parts under one lock");
    }
}
