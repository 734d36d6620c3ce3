//! Tests of entering and leaving functions.

use super::support::{compile, record};
use longpole_tests::{skip_unless_built, skip_unless_live};

/// Entries and exits must be counted exactly, in prime numbers. One function has two `ret`s, and one ends in a jump to
/// another function.
#[test]
fn calls_are_counted_exactly_at_every_kind_of_exit() {
    skip_unless_live!();
    let source = r#"
        #include <stdio.h>
        volatile long sink;
        __attribute__((noinline)) void leaf(long x) { sink += x; }
        __attribute__((noinline)) long two_ways(long x) { if (x & 1) { leaf(x); return x * 3; } sink ^= x; return 7; }
        __attribute__((noinline)) void tail(long x) { sink += 2; leaf(x); }
        int main(void) {
            gate();
            for (long i = 0; i < 10007; i++) two_ways(i);
            for (long i = 0; i < 4001; i++) tail(i);
            printf("%ld\n", sink);
            return 0;
        }"#;
    let program = skip_unless_built!(compile("c", source, &["-foptimize-sibling-calls"]));
    let plain = program.run_plain();
    let code = std::fs::read(&program.path).expect("target");
    let exits = &program.functions(&["tail"])[0].exit_offsets;
    assert!(exits.iter().all(|at| matches!(code[*at as usize], 0xe9 | 0xeb)), "`tail` ends in a jump");
    let recorded = record(&program, &["leaf", "two_ways", "tail", "main"]);
    assert_eq!(recorded.outcome, plain, "same output and exit code");
    assert_eq!(recorded.loss.lost(), 0);
    assert_eq!(recorded.entries_and_exits(0), (5003 + 4001, 5003 + 4001));
    assert_eq!(recorded.entries_and_exits(1), (10007, 10007));
    assert_eq!(recorded.entries_and_exits(2), (4001, 4001));
    // `main` was already running when the probes were set, so it has an exit and no entry.
    assert_eq!(recorded.entries_and_exits(3), (0, 1));
    assert_eq!(recorded.calls, [5003 + 4001, 10007, 4001, 0]);
}

/// Recursion counts once: of 1,000 nested calls, only the outermost one is recorded.
#[test]
fn recursive_calls_are_folded_into_the_outermost_one() {
    skip_unless_live!();
    let source = r#"
        #include <stdio.h>
        volatile long sink;
        long odd(long n);
        __attribute__((noinline)) long even(long n) { return n == 0 ? 1 : odd(n - 1) + (sink & 0); }
        __attribute__((noinline)) long odd(long n) { return n == 0 ? 0 : even(n - 1) + (sink & 0); }
        __attribute__((noinline)) long down(long n) { return n == 1 ? 1 : 1 + down(n - 1); }
        int main(void) {
            gate();
            long total = 0;
            for (int i = 0; i < 7; i++) total += down(1000);
            for (int i = 0; i < 11; i++) total += even(501);
            printf("%ld\n", total);
            return 0;
        }"#;
    let program = skip_unless_built!(compile("c", source, &[]));
    let plain = program.run_plain();
    let recorded = record(&program, &["down", "even", "odd"]);
    assert_eq!(recorded.outcome, plain);
    assert_eq!(recorded.entries_and_exits(0), (7, 7));
    assert_eq!(recorded.entries_and_exits(1), (11, 11));
    assert_eq!(recorded.entries_and_exits(2), (11, 11));
    assert_eq!(recorded.calls, [7_000, 11 * 251, 11 * 251]);
    assert_eq!(recorded.loss.recursion_folded, 7 * 999 + 11 * 250 * 2);
    assert_eq!(recorded.loss.lost(), 0);
}

/// Exceptions must pass through probed frames without harm, and the frames that they skip must not hide later calls.
#[test]
fn exceptions_pass_through_probed_frames() {
    skip_unless_live!();
    let source = r#"
        #include <cstdio>
        #include <stdexcept>
        volatile long sink;
        extern "C" {
        __attribute__((noinline)) long thrower(long n, long depth) {
            if (depth > 0) return thrower(n, depth - 1) + 1;
            if (n % 2) throw std::runtime_error("odd");
            return sink += n;
        }
        __attribute__((noinline)) long middle(long n) { return thrower(n, 3) + 1; }
        __attribute__((noinline)) long deeper(long n) {
            volatile char room[4096];
            room[0] = 1;
            return middle(n) + room[0];
        }
        __attribute__((noinline)) long catcher(long n) {
            try { return middle(n); }
            catch (const std::exception &) { return deeper(n - 1); }
        }
        }
        int main() {
            gate();
            long total = 0;
            for (long i = 0; i < 1009; i++) total += catcher(i);
            std::printf("%ld\n", total);
            return 0;
        }"#;
    let program = skip_unless_built!(compile("cpp", source, &[]));
    let plain = program.run_plain();
    assert_eq!(plain.stderr, "");
    let recorded = record(&program, &["catcher", "middle", "thrower", "deeper"]);
    assert_eq!(recorded.outcome, plain);
    // 505 numbers are even. 504 odd ones throw and are tried again, one lower and one function deeper.
    assert_eq!(recorded.entries_and_exits(0), (1009, 1009));
    assert_eq!(recorded.entries_and_exits(1), (1009 + 504, 1009));
    assert_eq!(recorded.entries_and_exits(2), (1009 + 504, 1009));
    assert_eq!(recorded.entries_and_exits(3), (504, 504));
    assert_eq!(recorded.calls[2], 4 * (1009 + 504));
    assert_eq!(recorded.loss.lost(), 0);
}

/// The same with longjmp: the next call comes from below the frame that was left, without a probe hit in between.
#[test]
fn longjmp_leaves_no_frame_behind() {
    skip_unless_live!();
    let source = r#"
        #include <setjmp.h>
        #include <stdio.h>
        #include <string.h>
        static jmp_buf back;
        volatile long sink;
        __attribute__((noinline)) void jumper(long n) { if (n & 1) longjmp(back, 1); sink += n; }
        __attribute__((noinline)) void below(long n) {
            char room[512];
            memset(room, (int)n, sizeof room);
            sink += room[n & 255];
            jumper(n & ~1L);
        }
        int main(void) {
            gate();
            for (volatile long i = 0; i < 2003; i++) {
                if (setjmp(back)) below(i);
                else jumper(i);
            }
            printf("%ld\n", sink);
            return 0;
        }"#;
    let program = skip_unless_built!(compile("c", source, &[]));
    let plain = program.run_plain();
    let recorded = record(&program, &["jumper"]);
    assert_eq!(recorded.outcome, plain);
    // 1002 even numbers return. 1001 odd ones jump out, are called again from deeper down, and then return.
    assert_eq!(recorded.entries_and_exits(0), (1002 + 1001 * 2, 2003));
    assert_eq!(recorded.loss.lost(), 0);
}

/// A thread that is cancelled while it waits inside probed frames must unlock what it held, as without probes.
#[test]
fn cancelled_threads_run_their_cleanup_in_probed_frames() {
    skip_unless_live!();
    let source = r#"
        #include <pthread.h>
        #include <stdio.h>
        static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
        static int waiting;
        static void release(void *m) { pthread_mutex_unlock(m); }
        __attribute__((noinline)) void wait_for_ever(void) { for (;;) pthread_cond_wait(&never, &mutex); }
        void *body(void *argument) {
            (void)argument;
            pthread_mutex_lock(&mutex);
            pthread_cleanup_push(release, &mutex);
            waiting = 1;
            wait_for_ever();
            pthread_cleanup_pop(1);
            return 0;
        }
        int main(void) {
            gate();
            int cancelled = 0;
            for (int i = 0; i < 13; i++) {
                pthread_t thread;
                void *result;
                waiting = 0;
                pthread_create(&thread, 0, body, 0);
                for (int seen = 0; !seen;) {
                    pthread_mutex_lock(&mutex);
                    seen = waiting;
                    pthread_mutex_unlock(&mutex);
                }
                pthread_cancel(thread);
                pthread_join(thread, &result);
                cancelled += result == PTHREAD_CANCELED;
                if (pthread_mutex_trylock(&mutex)) puts("still locked");
                else pthread_mutex_unlock(&mutex);
            }
            printf("%d\n", cancelled);
            return 0;
        }"#;
    let program = skip_unless_built!(compile("c", source, &[]));
    let plain = program.run_plain();
    assert_eq!(plain.stdout, "13\n");
    let recorded = record(&program, &["wait_for_ever", "body", "release"]);
    assert_eq!(recorded.outcome, plain);
    assert_eq!(recorded.entries_and_exits(0), (13, 0));
    assert_eq!(recorded.entries_and_exits(1), (13, 0));
    assert_eq!(recorded.entries_and_exits(2), (13, 13));
}

/// A Rust panic that `catch_unwind` catches must pass through probed frames.
#[test]
fn rust_panics_pass_through_probed_frames() {
    skip_unless_live!();
    let source = r#"
        use std::{hint::black_box, io::Read, panic};
        #[inline(never)]
        #[unsafe(no_mangle)]
        fn panics(n: u64) -> u64 { if n % 3 == 0 { panic::resume_unwind(Box::new(n)) } black_box(n) }
        #[inline(never)]
        #[unsafe(no_mangle)]
        fn through(n: u64) -> u64 { black_box(panics(n)) + 1 }
        #[inline(never)]
        #[unsafe(no_mangle)]
        fn catches(n: u64) -> u64 { panic::catch_unwind(|| through(n)).unwrap_or(7) }
        fn main() {
            std::io::stdin().read_exact(&mut [0]).unwrap();
            println!("{}", (0..1013).map(catches).sum::<u64>());
        }
    "#;
    let program = skip_unless_built!(compile("rs", source, &["-C", "opt-level=1"]));
    let plain = program.run_plain();
    let recorded = record(&program, &["catches", "through", "panics"]);
    assert_eq!(recorded.outcome, plain);
    // 338 of the numbers below 1013 are divisible by three.
    assert_eq!(recorded.entries_and_exits(0), (1013, 1013));
    assert_eq!(recorded.entries_and_exits(1), (1013, 1013 - 338));
    assert_eq!(recorded.entries_and_exits(2), (1013, 1013 - 338));
}

/// If a thread has more open frames than the kernel programs remember, no record may be lost. A recursive call below
/// these frames has a record of its own.
#[test]
fn a_stack_deeper_than_the_kernel_programs_keep_loses_no_record() {
    skip_unless_live!();
    const DEPTH: usize = 150;
    let mut source = format!(
        "#include <stdio.h>\nvolatile long sink;\n\
         __attribute__((noinline)) long f{DEPTH}(long x) {{ return x ? f{DEPTH}(x - 1) + 1 : sink; }}\n"
    );
    for level in (0..DEPTH).rev() {
        let next = level + 1;
        source += &format!("__attribute__((noinline)) long f{level}(long x) {{ return f{next}(x) + 1; }}\n");
    }
    source += "int main(void) { gate(); for (int i = 0; i < 3; i++) printf(\"%ld\\n\", f0(4)); return 0; }\n";
    let program = skip_unless_built!(compile("c", &source, &[]));
    let plain = program.run_plain();
    let names: Vec<String> = (0..=DEPTH).map(|level| format!("f{level}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let recorded = record(&program, &names);
    assert_eq!(recorded.outcome, plain);
    for level in 0..DEPTH as u32 {
        assert_eq!(recorded.entries_and_exits(level), (3, 3), "f{level}");
    }
    assert_eq!(recorded.entries_and_exits(DEPTH as u32), (3 * 5, 3 * 5));
    assert_eq!(recorded.loss.lost(), 0);
}
