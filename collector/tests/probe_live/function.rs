//! Functions being entered and left.

use crate::support::{GATE, compile, live, record};

/// Prime numbers of calls come back exactly, entries and exits, for a function with two `ret`s and one that ends in a
/// jump to another.
#[test]
fn calls_are_counted_exactly() {
    let Some(_turn) = live("calls_are_counted_exactly") else { return };
    let source = format!(
        "{GATE}{}",
        r#"
        #include <stdio.h>
        volatile long sink;
        __attribute__((noinline)) void leaf(long x) { sink += x; }
        __attribute__((noinline)) long two_ways(long x) { if (x & 1) { leaf(x); return x * 3; } sink ^= x; return 7; }
        __attribute__((noinline, optimize("O2"))) void tail(long x) { sink += 2; leaf(x); }
        int main(void) {
            gate();
            for (long i = 0; i < 10007; i++) two_ways(i);
            for (long i = 0; i < 4001; i++) tail(i);
            printf("%ld\n", sink);
            return 0;
        }"#
    );
    let program = compile("c", &source, &[]);
    let plain = program.run_plain();
    let recorded = record(&program, &["leaf", "two_ways", "tail", "main"]);
    assert_eq!(recorded.outcome, plain, "same output and exit code");
    assert_eq!(recorded.loss.lost(), 0);
    assert_eq!(recorded.entries_and_exits(0), (5003 + 4001, 5003 + 4001));
    assert_eq!(recorded.entries_and_exits(1), (10007, 10007));
    assert_eq!(recorded.entries_and_exits(2), (4001, 4001));
    // `main` was running when the probes came: it has an end but no start.
    assert_eq!(recorded.entries_and_exits(3), (0, 1));
    assert_eq!(recorded.calls, [5003 + 4001, 10007, 4001, 0]);
}
