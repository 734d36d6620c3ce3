//! Tests of which thread runs, and which thread woke which.

use probe_abi::{Call, Cause, Context, Record, SwitchFlags, WakingFlags, futex_operation};

use super::support::{compile, record};
use longpole_tests::{skip_unless_built, skip_unless_live};

const PING_PONG: &str = r#"
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
enum { ROUNDS = 997 };
static _Atomic int turn, woken;
static long futex(_Atomic int *word, int op, int value) { return syscall(SYS_futex, word, op, value, 0, 0, 0); }
static void *play(void *argument) {
    int me = (int)(long)argument;
    for (int i = 0; i < ROUNDS; i++) {
        int now;
        while ((now = atomic_load(&turn)) != me) futex(&turn, FUTEX_WAIT_PRIVATE, now);
        /* Long enough for the other one to fall asleep. */
        for (volatile int work = 0; work < 30000; work++);
        atomic_store(&turn, !me);
        atomic_fetch_add(&woken, (int)futex(&turn, FUTEX_WAKE_PRIVATE, 1));
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
    printf("%p\n%d\n", (void *)&turn, woken);
    return 0;
}
"#;

/// System call numbers of x86-64.
const READ: u32 = 0;
const FUTEX: u32 = 202;
const CLOCK_NANOSLEEP: u32 = 230;

/// Every wake-up that futex calls report must be recorded once, with its thread and call, and with the word for which
/// the sleeper waited.
#[test]
fn every_futex_wake_up_is_recorded_once_with_its_word() {
    let program = skip_unless_live!(compile("c", PING_PONG, &[]));
    let recorded = record(&program, &[]);
    let mut counted = recorded.outcome.stdout.lines();
    let turn = counted.next().and_then(|line| u64::from_str_radix(line.trim_start_matches("0x"), 16).ok());
    let turn = turn.expect("the word's address");
    let woken: usize = counted.next().expect("a count").parse().expect("a number");
    assert_eq!(recorded.loss.lost(), 0);
    assert_eq!(recorded.holes(), 0);

    let mut recorded_wakes = 0;
    for record in &recorded.records {
        let Record::Waking(waking) = record else { continue };
        if waking.header.context != Context::Task as u8 || waking.wakee_call.argument0 != turn {
            continue;
        }
        assert_eq!(waking.waker_call, FUTEX);
        assert_eq!(waking.wakee_call.number, FUTEX);
        assert_eq!(futex_operation(waking.wakee_call.argument1), 0, "a plain wait");
        assert_eq!(waking.header.pid, recorded.pid);
        assert_eq!(waking.wakee_pid, recorded.pid);
        assert_eq!(waking.flags, WakingFlags::WAKER_TRACKED);
        recorded_wakes += 1;
    }
    assert!(woken > 0, "the test needs sleepers");
    assert_eq!(recorded_wakes, woken, "of {} tries", 2 * 997);
}

/// The switch by which a thread goes to sleep must name the thread's system call and its first arguments. A pre-emption
/// must name none.
#[test]
fn a_switch_to_sleep_names_its_system_call_and_a_pre_emption_none() {
    skip_unless_live!();
    let source = r#"
        #include <stdio.h>
        #include <sys/wait.h>
        #include <time.h>
        int main(void) {
            int ends[2];
            if (pipe(ends)) return 1;
            gate();
            printf("%d\n", ends[0]);
            for (int i = 0; i < 47; i++) {
                pid_t child = fork();
                if (child == 0) {
                    struct timespec nap = { 0, 2000000 };
                    nanosleep(&nap, 0);
                    _exit(write(ends[1], "x", 1) != 1);
                }
                char byte;
                if (read(ends[0], &byte, 1) != 1) return 1;
                waitpid(child, 0, 0);
            }
            for (volatile long i = 0; i < 300000000; i++);
            return 0;
        }"#;
    let program = skip_unless_built!(compile("c", source, &[]));
    let recorded = record(&program, &[]);
    let pipe: u64 = recorded.outcome.stdout.trim().parse().expect("a descriptor");
    let (mut reads, mut preempted) = (0, 0);
    for record in &recorded.records {
        let Record::Switch(switch) = record else { continue };
        if switch.header.tid != recorded.pid {
            continue;
        }
        let slept = switch.prev_state != 0 && switch.flags & SwitchFlags::PREEMPTED == 0;
        if !slept {
            assert_eq!(switch.prev_call, Call::NONE);
            preempted += 1;
        }
        reads += usize::from(switch.prev_call.number == READ && switch.prev_call.argument0 == pipe);
    }
    assert_eq!(reads, 47, "{preempted} switches without sleep");
}

/// A timer that fires on a busy thread's CPU must never count as a wake-up by that thread.
#[test]
fn a_timer_on_a_busy_thread_s_cpu_is_no_wake_up_by_that_thread() {
    skip_unless_live!();
    let source = r#"
        #include <sched.h>
        #include <pthread.h>
        #include <stdatomic.h>
        #include <stdio.h>
        #include <sys/syscall.h>
        #include <time.h>
        enum { SLEEPS = 499 };
        static _Atomic int done;
        volatile long sink;
        static void *sleeper(void *argument) {
            (void)argument;
            printf("%ld\n", (long)syscall(SYS_gettid));
            struct timespec nap = { 0, 300000 };
            for (int i = 0; i < SLEEPS; i++) nanosleep(&nap, 0);
            atomic_store(&done, 1);
            return 0;
        }
        int main(void) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(0, &one);
            sched_setaffinity(0, sizeof one, &one);
            gate();
            pthread_t thread;
            pthread_create(&thread, 0, sleeper, 0);
            while (!atomic_load(&done)) sink++;
            pthread_join(thread, 0);
            return 0;
        }"#;
    let program = skip_unless_built!(compile("c", source, &[]));
    let recorded = record(&program, &[]);
    let sleeper: u32 = recorded.outcome.stdout.trim().parse().expect("thread id");
    assert_eq!(recorded.loss.lost(), 0);
    let wakes: Vec<_> = recorded
        .records
        .iter()
        .filter_map(|record| match record {
            Record::Waking(waking) if waking.wakee_tid == sleeper => Some(waking),
            _ => None,
        })
        .collect();
    let new = wakes.iter().filter(|waking| waking.flags & WakingFlags::NEW != 0).count();
    assert_eq!(new, 1);
    let by_main = wakes.iter().filter(|waking| waking.header.tid == recorded.pid).count();
    let as_task = |waking: &&&probe_abi::Waking| {
        waking.header.context == Context::Task as u8 && waking.flags & WakingFlags::NEW == 0
    };
    let timers = wakes.len() - new;
    let sleeps = recorded.records.iter().filter(|record| match record {
        Record::Switch(switch) => {
            switch.header.tid == sleeper
                && switch.prev_state & 3 != 0
                && switch.flags & SwitchFlags::PREEMPTED == 0
        }
        _ => false,
    });
    let sleeps = sleeps.count();
    // A timer may fire before the thread has left the CPU. Some virtual machines run no tracer in the context of their
    // first process, so wake-ups from there have no record.
    assert!(sleeps > 400 && timers >= sleeps * 9 / 10, "sleeps end with a wake: {sleeps}, {timers}");
    // Most timers fire while the busy thread has the CPU. Without the context, these wake-ups would count as that
    // thread's own.
    assert!(by_main > 100, "the test needs timers on the busy thread's back: {by_main} of {timers}");
    assert_eq!(wakes.iter().filter(as_task).count(), 0, "wakes by a thread that has woken no one");
    for waking in wakes.iter().filter(|waking| waking.flags & WakingFlags::NEW == 0) {
        assert_eq!(waking.header.context, Context::HardIrq as u8);
        assert_eq!(Cause::from_number(waking.cause), Cause::Timer);
        assert_eq!(waking.wakee_call.number, CLOCK_NANOSLEEP);
        assert_ne!(waking.wakee_state & 3, 0, "it slept");
    }
}

/// Wake-ups by packets must count as the network's, even where its soft interrupt runs in the context of an unrelated
/// busy thread. A signal must be distinguished from a time limit.
#[test]
fn wake_ups_by_network_and_signals_are_not_those_of_a_thread() {
    skip_unless_live!();
    let source = r#"
        #include <sched.h>
        #include <arpa/inet.h>
        #include <errno.h>
        #include <pthread.h>
        #include <signal.h>
        #include <stdatomic.h>
        #include <stdio.h>
        #include <string.h>
        #include <sys/socket.h>
        #include <sys/syscall.h>
        #include <sys/time.h>
        #include <sys/wait.h>
        #include <time.h>
        enum { MESSAGES = 211 };
        static _Atomic int done;
        volatile long sink;
        static int receiver;
        static void *receive(void *argument) {
            (void)argument;
            printf("%ld\n", (long)syscall(SYS_gettid));
            char byte;
            for (int i = 0; i < MESSAGES; i++) recv(receiver, &byte, 1, 0);
            atomic_store(&done, 1);
            return 0;
        }
        static void nothing(int number) { (void)number; }
        int main(void) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(0, &one);
            sched_setaffinity(0, sizeof one, &one);
            receiver = socket(AF_INET, SOCK_DGRAM, 0);
            struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
            socklen_t size = sizeof here;
            if (bind(receiver, (void *)&here, size) || getsockname(receiver, (void *)&here, &size)) return 1;
            gate();
            pid_t sender = fork();
            if (sender == 0) {
                int out = socket(AF_INET, SOCK_DGRAM, 0);
                for (int i = 0; i < MESSAGES; i++) {
                    struct timespec nap = { 0, 1000000 };
                    nanosleep(&nap, 0);
                    sendto(out, "x", 1, 0, (void *)&here, sizeof here);
                }
                _exit(0);
            }
            pthread_t thread;
            pthread_create(&thread, 0, receive, 0);
            while (!atomic_load(&done)) sink++;
            pthread_join(thread, 0);
            waitpid(sender, 0, 0);
            /* A signal of the process's own timer ends a sleep. */
            signal(SIGALRM, nothing);
            struct itimerval alarm = { .it_value.tv_usec = 20000 };
            setitimer(ITIMER_REAL, &alarm, 0);
            struct timespec nap = { 5, 0 };
            return nanosleep(&nap, 0) == -1 && errno == EINTR ? 0 : 2;
        }"#;
    let program = skip_unless_built!(compile("c", source, &[]));
    let recorded = record(&program, &[]);
    let receiver: u32 = recorded.outcome.stdout.trim().parse().expect("thread id");
    let wakings = || {
        recorded.records.iter().filter_map(|record| match record {
            Record::Waking(waking) if waking.flags & WakingFlags::NEW == 0 && waking.wakee_state != 0 => {
                Some(waking)
            }
            _ => None,
        })
    };
    let mut by_network = 0;
    for waking in wakings().filter(|waking| waking.wakee_tid == receiver) {
        assert_ne!(waking.header.context, Context::Task as u8, "no thread of the process has woken it");
        by_network += u32::from(Cause::from_number(waking.cause) == Cause::Network);
    }
    assert!(by_network > 100, "{by_network} of 211 messages found a sleeping receiver");
    let signals = wakings().filter(|w| w.wakee_tid == recorded.pid && w.flags & WakingFlags::SIGNAL != 0);
    assert!(signals.count() >= 1, "the timer's signal");
}

/// A sleeping thread's user stack pointer must be saved. On each CPU, the next thread of a switch must be the previous
/// thread of the following switch.
#[test]
fn switches_chain_on_each_cpu_and_have_the_sleeper_s_stack_pointer() {
    let program = skip_unless_live!(compile("c", PING_PONG, &[]));
    let recorded = record(&program, &[]);
    let mut last_next = std::collections::HashMap::new();
    let mut slept = 0;
    for record in &recorded.records {
        let Record::Switch(switch) = record else { continue };
        let target = recorded.pid;
        assert_eq!(switch.flags & SwitchFlags::PREV_TRACKED != 0, switch.header.pid == target);
        assert_eq!(switch.flags & SwitchFlags::NEXT_TRACKED != 0, switch.next_pid == target);
        assert!(switch.header.pid == target || switch.next_pid == target);
        // The thread that leaves must be the one that came with the previous switch, if that one was tracked.
        if let Some((tid, true)) =
            last_next.insert(switch.header.cpu, (switch.next_tid, switch.next_pid == target))
        {
            assert_eq!(tid, switch.header.tid);
        }
        let sleeps = switch.prev_state & 3 != 0 && switch.flags & SwitchFlags::PREEMPTED == 0;
        if switch.header.pid == target && sleeps {
            slept += 1;
            assert_ne!(switch.prev_user_sp, 0);
            assert_eq!(switch.prev_user_sp % 8, 0);
        }
    }
    assert!(slept > 100, "the players wait for each other: {slept}");
}
