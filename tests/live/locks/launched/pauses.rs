//! A program that takes locks all the time is recorded from inside only in stretches, so that it is hardly slower than
//! alone.

use crate::locks::support::{Program, Recorded, c};
use engine::event::{GapReason, NoteKind};
use longpole_tests::{Longpole, skip_unless_live};
use probe_abi::Record;

/// A program in which two threads count under a mutex, and read the sum under a read-write lock. The argument is the
/// number of rounds.
const COUNTERS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t look = PTHREAD_RWLOCK_INITIALIZER;
static long rounds, sum, seen;
static void *count(void *arg) {
    for (long i = 0; i < rounds; i++) {
        pthread_mutex_lock(&gate);
        sum++;
        pthread_mutex_unlock(&gate);
        pthread_rwlock_rdlock(&look);
        seen += sum < 0;
        pthread_rwlock_unlock(&look);
    }
    return arg;
}
int main(int argc, char **argv) {
    rounds = atol(argv[1]);
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], 0, count, 0);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], 0);
    printf("%ld\n", sum);
    return argc - argc;
}
"#;

/// Records the program as a user would.
fn record(program: &Program, rounds: &str) -> Recorded {
    let file = program.folder.path().join("test.lp");
    let call =
        Longpole::with(["record", "--force", "-o"]).and(&file).and("--").and(&program.path).and(rounds);
    Recorded::read(&file, call.run())
}

#[test]
fn a_program_that_locks_all_the_time_is_recorded_in_stretches_and_analysed_without_a_pause() {
    let counters = skip_unless_live!(c(COUNTERS));
    let recorded = record(&counters, "40000000");
    assert_eq!(recorded.ended.stdout.trim(), "80000000");
    let said = &recorded.ended.stderr;
    let recording = &recorded.recording;
    let pauses: Vec<(u64, u64)> = recording
        .notes
        .iter()
        .filter_map(|note| match note.kind {
            NoteKind::Gap { until_ns, reason: GapReason::OperationsPaused, .. } => {
                Some((note.time_ns, until_ns))
            }
            _ => None,
        })
        .collect();
    let (begin_ns, end_ns) = engine::timeline::extent(recording);
    let paused: u64 = pauses.iter().map(|(from_ns, until_ns)| until_ns - from_ns).sum();
    assert!(paused > (end_ns - begin_ns) / 3, "{pauses:?} of {begin_ns} to {end_ns}: {said}");
    let loss = recording.facts.end.as_ref().expect("an end").loss;
    assert_eq!((loss.operations, loss.undecodable), (0, 0), "{said}");
    // In a pause, no operation may begin. Operations in progress end.
    let inside = recording.events.iter().filter(|event| {
        let time_ns = event.header().time_ns;
        let is_operation = matches!(event, Record::Operation(_) | Record::Burst(_));
        is_operation
            && pauses.iter().any(|(from_ns, until_ns)| (from_ns + 1_000_000..*until_ns).contains(&time_ns))
    });
    assert!(inside.count() <= 4 * pauses.len(), "{said}");
    // Where recording from inside distorts the run, the chosen part has only waits.
    let (from_ns, until_ns, _) = engine::timeline::typical(recording, 250_000).expect("a part");
    let avoided = engine::timeline::Pauses::to_avoid(recording);
    assert!(!avoided.is_empty() && !avoided.meet(from_ns, until_ns), "{avoided:?}");
    let part = engine::timeline::excerpt(recording.clone(), from_ns, until_ns, recording.events.len() as u64);
    let timeline = engine::timeline::build(&part);
    assert_eq!(timeline.lock_holes, 0, "{said}");
    // The part must have both locks, and the report of the whole recording must say what is missing.
    let text = Longpole::with(["report", "--by", "lock"]).and(&recorded.file).ok().stdout;
    assert!(text.contains("gate"), "{text}: {said}");
    let text = Longpole::with(["notes", "--whole"]).and(&recorded.file).ok().stdout;
    assert!(text.contains("to keep to --overhead"), "{text}: {said}");
}

#[test]
fn every_operation_is_recorded_if_that_is_asked_for() {
    let counters = skip_unless_live!(c(COUNTERS));
    let recorded = counters.record(&[], &["2000000"]);
    let is_pause =
        |kind: &NoteKind| matches!(kind, NoteKind::Gap { reason: GapReason::OperationsPaused, .. });
    assert!(!recorded.recording.notes.iter().any(|note| is_pause(&note.kind)), "{}", recorded.ended.stderr);
    assert_eq!(recorded.ended.stdout.trim(), "4000000");
}
