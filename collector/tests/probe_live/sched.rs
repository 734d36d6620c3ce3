//! Who runs, and who woke whom.

use probe_abi::{Context, Record, WakingFlags, futex_operation};

use crate::support::{GATE, compile, live, record};

const PING_PONG: &str = r#"
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
enum { ROUNDS = 997 };
static _Atomic int turn;
static long futex(_Atomic int *word, int op, int value) { return syscall(SYS_futex, word, op, value, 0, 0, 0); }
static void *play(void *argument) {
    int me = (int)(long)argument;
    for (int i = 0; i < ROUNDS; i++) {
        int now;
        while ((now = atomic_load(&turn)) != me) futex(&turn, FUTEX_WAIT_PRIVATE, now);
        atomic_store(&turn, !me);
        futex(&turn, FUTEX_WAKE_PRIVATE, 1);
    }
    return 0;
}
int main(void) {
    gate();
    pthread_t a, b;
    pthread_create(&a, 0, play, (void *)0L);
    pthread_create(&b, 0, play, (void *)1L);
    pthread_join(a, 0);
    pthread_join(b, 0);
    puts("done");
    return 0;
}
"#;

/// Every wake that the futex calls say they made is there once, from the thread that made it.
#[test]
fn every_futex_wake_is_recorded_once() {
    let Some(_turn) = live("every_futex_wake_is_recorded_once") else { return };
    let program = compile("c", &format!("{GATE}{PING_PONG}"), &[]);
    let recorded = record(&program, &[]);
    assert_eq!(recorded.outcome.stdout, "done\n");
    assert_eq!(recorded.loss.lost(), 0);
    assert_eq!(recorded.holes(), 0);

    // Calls by operation: 2 threads × 997 wakes of the game, and what pthread_join waits for.
    let mut open = std::collections::HashMap::new();
    let (mut wake_calls, mut woken_by_result) = (0, 0);
    for record in &recorded.records {
        match record {
            Record::FutexEnter(enter) => {
                open.insert(enter.header.tid, *enter);
            }
            Record::FutexExit(exit) => {
                let enter = open.remove(&exit.header.tid).expect("an exit follows an enter");
                if futex_operation(enter.operation) == 1 {
                    assert_eq!(enter.word2, 0);
                    wake_calls += i64::from(enter.operation & 0x80 != 0);
                    woken_by_result += exit.result;
                }
            }
            _ => {}
        }
    }
    assert_eq!(wake_calls, 2 * 997, "private wakes");

    // A waking from inside futex(WAKE): by a target thread, in its own context, of a sleeping thread of the target.
    let mut inside = std::collections::HashMap::new();
    let mut recorded_wakes = 0;
    for record in &recorded.records {
        match record {
            Record::FutexEnter(enter) => {
                inside.insert(enter.header.tid, futex_operation(enter.operation));
            }
            Record::FutexExit(exit) => {
                inside.remove(&exit.header.tid);
            }
            Record::Waking(waking)
                if waking.header.context == Context::Task as u8
                    && inside.get(&waking.header.tid) == Some(&1) =>
            {
                assert_eq!(waking.header.pid, recorded.pid);
                assert_eq!(waking.wakee_pid, recorded.pid);
                assert_eq!(waking.flags, WakingFlags::WAKER_TRACKED);
                recorded_wakes += 1;
            }
            _ => {}
        }
    }
    assert_eq!(recorded_wakes, woken_by_result);
}
