//! The cost of recording operations, measured inside the program, must be reported.

use crate::locks::support::c;
use longpole_tests::{Longpole, skip_unless_live};

const LOCKING: &str = r#"
#include <pthread.h>
#include <stdlib.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long work;
static void *runs(void *rounds) {
    for (long i = (long)rounds; i > 0; i--) {
        pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock);
        for (int k = 0; k < 10000; k++) work++;
    }
    return 0;
}
int main(int count, char **words) {
    pthread_t thread;
    pthread_create(&thread, 0, runs, (void *)atol(words[1]));
    pthread_join(thread, 0);
}
"#;

/// The reported overhead must include the library's operations. x264 was 4 % slower, while the rest of the overhead is
/// 2.5 %.
#[test]
fn the_overhead_has_the_measured_cost_of_lock_operations() {
    let program = skip_unless_live!(c(LOCKING));
    // The run takes some seconds, in which the cost accounting runs several times.
    let recorded = program.record(&[], &["120000"]);
    let all = recorded.operations().count() as u64;
    assert!(all >= 240_000, "{all}");
    let end = recorded.recording.facts.end.as_ref().expect("an end");
    let overhead = end.overhead.expect("overhead");
    assert!(overhead.operations > 10_000 && overhead.operations <= all, "{overhead:?} of {all}");
    // The cost is at least that of two readings of the clock, and at most the largest time that counts as measured.
    let each_ns = overhead.operation_ns / overhead.operations;
    assert!((10..=20_000).contains(&each_ns), "{each_ns} ns each");
    let without = overhead.spent_ns() - overhead.operation_ns;
    assert_eq!(without, overhead.hit_ns + overhead.event_ns + overhead.sample_ns + overhead.collector_ns);
    let said = Longpole::told_cost(&recorded.file);
    assert!(said.contains(" operations/s × "), "{said}");
}
