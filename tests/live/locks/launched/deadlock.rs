//! Programs that come to a stop: two threads with each other's locks, and a thread with its own.

use crate::locks::support::{Program, c, record_in};
use longpole_tests::{Longpole, skip_unless_live};
use serde_json::Value;

const STUCK: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
static pthread_mutex_t accounts = PTHREAD_MUTEX_INITIALIZER, journal = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static void *transfer(void *arg) {
    pthread_mutex_lock(&accounts);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&journal);
    return arg;
}
static void *audit(void *arg) {
    pthread_mutex_lock(&journal);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&accounts);
    return arg;
}
static void *again(void *arg) {
    pthread_mutex_lock(&accounts);
    pthread_mutex_lock(&accounts);
    return arg;
}
static void *ends(void *arg) { sleep(1); kill(getpid(), SIGINT); return arg; }
int main(int count, char **words) {
    pthread_t first, second, third;
    pthread_barrier_init(&both, 0, 2);
    if (count > 2) pthread_create(&third, 0, ends, 0);
    pthread_create(&first, 0, strcmp(words[1], "again") ? transfer : again, 0);
    if (strcmp(words[1], "again")) pthread_create(&second, 0, audit, 0);
    pthread_join(first, 0);
}
"#;

/// LIMIT as text and in JSON.
fn limit(program: &Program, options: &[&str], words: &[&str]) -> (String, Value) {
    let path = program.path.to_string_lossy().into_owned();
    let command: Vec<&str> = std::iter::once(path.as_str()).chain(words.iter().copied()).collect();
    let recorded = record_in(program.folder.path(), options, &command, &[]);
    let file = recorded.file.to_string_lossy().into_owned();
    let text = Longpole::with(["report", &file]).run().stdout;
    let answer = Longpole::with(["report", "--json", &file]).run().stdout;
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    (text, answer)
}

/// "waiting for signal: 97 %", and the locks were "held 0 ns".
#[test]
fn threads_with_each_others_locks_are_told_however_it_ends() {
    let program = skip_unless_live!(c(STUCK));
    for (options, words) in [(&["-d", "1s"][..], &["abba"][..]), (&[], &["abba", "ends"])] {
        let (text, answer) = limit(&program, options, words);
        assert_eq!(answer["limit"]["at"][0]["kind"], "deadlock", "{text}");
        let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in ["for lock \"journal\", held by", "for lock \"accounts\", held by", "in the same order"] {
            assert!(one_line.contains(part), "{part}: {text}");
        }
        let findings = answer["findings"].as_array().expect("findings");
        let deadlock = findings.iter().find(|finding| finding["kind"] == "deadlock").expect("a deadlock");
        assert_eq!(deadlock["others_ran"], false, "{deadlock}");
    }
}

#[test]
fn a_thread_that_takes_its_lock_again_is_told() {
    let program = skip_unless_live!(c(STUCK));
    let (text, answer) = limit(&program, &["-d", "1s"], &["again"]);
    assert_eq!(answer["limit"]["at"][0]["kind"], "deadlock", "{text}");
    assert!(text.contains("It has that lock already"), "{text}");
}
