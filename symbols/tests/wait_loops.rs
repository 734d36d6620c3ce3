//! Loops that only wait are distinguished from similar loops that work, in the code of compilers.

use super::sources::build;
use symbols::{Locator, Place, functions_of};

/// Functions whose names begin with `wait_` have a loop that only waits; those with `work_` have loops that compute.
const SOURCE: &str = r#"
#include <sched.h>
#include <stdint.h>
#include <stddef.h>
#define APART __attribute__((noinline, noclone))
int flag; int lock; unsigned serving, ticket; volatile int stop; long total; double factor = 3; long bound;
struct node { struct node *next; int locked; };
struct node *tail;
#define PAUSE() __builtin_ia32_pause()

APART void wait_test_and_set(int *l) { while (__atomic_exchange_n(l, 1, __ATOMIC_ACQUIRE)) ; }
APART void wait_test_and_set_pause(int *l) { while (__atomic_exchange_n(l, 1, __ATOMIC_ACQUIRE)) PAUSE(); }
APART void wait_flag_of_a_byte(char *l) { while (__atomic_test_and_set(l, __ATOMIC_ACQUIRE)) ; }
APART void wait_compare_and_swap(int *l)
{
    int free;
    do free = 0; while (!__atomic_compare_exchange_n(l, &free, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
}
APART void wait_test_test_and_set(int *l)
{
    for (;;) {
        while (__atomic_load_n(l, __ATOMIC_RELAXED)) PAUSE();
        if (!__atomic_exchange_n(l, 1, __ATOMIC_ACQUIRE)) return;
    }
}
APART void wait_ticket(void)
{
    unsigned mine = __atomic_fetch_add(&ticket, 1, __ATOMIC_RELAXED);
    while (__atomic_load_n(&serving, __ATOMIC_ACQUIRE) != mine) PAUSE();
}
APART void wait_mcs(struct node *mine)
{
    mine->next = 0;
    mine->locked = 1;
    struct node *before = __atomic_exchange_n(&tail, mine, __ATOMIC_ACQ_REL);
    if (!before) return;
    __atomic_store_n(&before->next, mine, __ATOMIC_RELEASE);
    while (__atomic_load_n(&mine->locked, __ATOMIC_ACQUIRE)) ;
}
APART void wait_flag(void) { while (!stop) ; }
APART void wait_flag_yield(void) { while (__atomic_load_n(&flag, __ATOMIC_ACQUIRE) != 1) sched_yield(); }
APART void wait_lock_yield(int *l) { while (__atomic_exchange_n(l, 1, __ATOMIC_ACQUIRE)) sched_yield(); }
APART int wait_some_turns(int *f)
{
    for (int i = 0; i < 10000; i++) {
        if (__atomic_load_n(f, __ATOMIC_ACQUIRE)) return 1;
        PAUSE();
    }
    return 0;
}
APART void wait_longer_and_longer(int *l)
{
    unsigned turns = 1;
    while (__atomic_load_n(l, __ATOMIC_RELAXED)) {
        for (unsigned i = 0; i < turns; i++) PAUSE();
        if (turns < 1024) turns *= 2;
    }
}
APART void wait_between_work(int rounds, int *l, uint64_t *x)
{
    for (int i = 0; i < rounds; i++) {
        while (__atomic_load_n(l, __ATOMIC_ACQUIRE) != i) PAUSE();
        for (int k = 0; k < 1000; k++) { *x ^= *x << 13; *x ^= *x >> 7; }
        __atomic_store_n(l, i + 1, __ATOMIC_RELEASE);
    }
}

APART int work_compare(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; i++) if (a[i] != b[i]) return a[i] - b[i];
    return 0;
}
APART size_t work_length(const char *s) { size_t n = 0; while (s[n]) n++; return n; }
APART uint32_t work_checksum(const uint8_t *s, size_t n)
{
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < n; i++) { a = (a + s[i]) % 65521; b = (b + a) % 65521; }
    return b << 16 | a;
}
APART long work_search(const int *s, long n, const volatile int *wanted)
{
    for (long i = 0; i < n; i++) if (s[i] == *wanted) return i;
    return -1;
}
APART struct node *work_list(struct node *at, const volatile int *wanted)
{
    while (at && at->locked != *wanted) at = at->next;
    return at;
}
APART long work_bisect(const long *s, long n, long wanted)
{
    long low = 0;
    while (low < n) { long middle = (low + n) / 2; if (s[middle] < wanted) low = middle + 1; else n = middle; }
    return low;
}
APART long work_find_root(const long *parent, long at) { while (parent[at] != at) at = parent[at]; return at; }
APART uint64_t work_shift(uint64_t x, int n)
{
    for (int i = 0; i < n; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; }
    return x;
}
APART uint64_t work_until_stopped(uint64_t x)
{
    while (!stop) x = x * 6364136223846793005ull + 1442695040888963407ull;
    return x;
}
APART uint64_t work_up_to_a_bound(uint64_t x)
{
    for (volatile long *end = &bound, i = 0; i < *end; i++) x ^= x >> 7;
    return x;
}
APART double work_powers(double x, int n) { for (int i = 0; i < n; i++) x = x * *(volatile double *)&factor + 1; return x; }
APART void work_counter(long n)
{
    for (long i = 0; i < n; i++) __atomic_fetch_add(&total, 1, __ATOMIC_RELAXED);
}
APART void work_greatest(long *most, long value)
{
    long seen = __atomic_load_n(most, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(most, &seen, seen + value, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) ;
}
APART void work_push(struct node *mine)
{
    mine->next = __atomic_load_n(&tail, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&tail, &mine->next, mine, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) ;
}
APART void work_fill(int *to, int n, const volatile int *what) { for (int i = 0; i < n; i++) to[i] = *what; }
APART void work_calls(uint64_t *x) { while (!stop) *x = work_shift(*x, 100); }
APART int work_collatz(long n) { int steps = 0; while (n != 1 && !stop) { n = n & 1 ? 3 * n + 1 : n / 2; steps++; } return steps; }

int main(int count, char **words)
{
    struct node mine = {0, 0};
    uint64_t x = count;
    if (count > 100) {
        wait_test_and_set(&lock); wait_test_and_set_pause(&lock); wait_flag_of_a_byte((char *)&lock);
        wait_compare_and_swap(&lock); wait_test_test_and_set(&lock); wait_ticket(); wait_mcs(&mine); wait_flag();
        wait_flag_yield(); wait_lock_yield(&lock); wait_some_turns(&flag); wait_longer_and_longer(&lock);
        wait_between_work(count, &lock, &x);
    }
    long numbers[4] = {0, 1, 2, 3};
    x += work_compare(words[0], words[0], count) + work_length(words[0]) + work_checksum((uint8_t *)words[0], count);
    x += work_search(&flag, 1, &lock) + (long)work_list(&mine, &lock) + work_bisect(numbers, 4, count);
    x += work_find_root(numbers, 3) + work_shift(x, count) + work_until_stopped(x) + work_up_to_a_bound(x);
    x += (long)work_powers(x, count) + work_collatz(count);
    work_counter(count); work_greatest(&total, count); work_push(&mine); work_fill(&flag, 1, &lock); work_calls(&x);
    return x & 1;
}
"#;

/// For each function: number of addresses in it that lie in a loop that waits.
fn waits(test: &str, compiler: &str, arguments: &[&str]) -> Option<Vec<(String, usize)>> {
    let built = build(test, compiler, arguments, &[("main.c", SOURCE)])?;
    let module = functions_of(&built.binary).expect("functions");
    let own = |function: &&symbols::Function| {
        let name = module.name(function);
        name.starts_with("wait_") || name.starts_with("work_")
    };
    let counted = module.functions().iter().filter(own).map(|function| {
        let addresses = function.address..function.address + function.size;
        let places: Vec<Place> = addresses.map(Place::Address).collect();
        let found = Locator::with(&module, |locator| locator.locate(&places)).locations();
        (module.name(function), found.iter().filter(|location| location.waits).count())
    });
    Some(counted.collect())
}

#[test]
fn wait_loops_are_distinguished_from_searches_and_sums() {
    if !cfg!(target_arch = "x86_64") {
        println!("SKIP wait_loops_are_distinguished_from_searches_and_sums: x86-64 only");
        return;
    }
    for (compiler, options) in [("cc", "-O1"), ("cc", "-O2"), ("cc", "-O3"), ("cc", "-Os"), ("clang", "-O2")]
    {
        let arguments = [options, "-g", "-fno-inline"];
        let Some(found) = waits("wait_loops", compiler, &arguments) else { continue };
        assert!(found.len() >= 29, "{compiler} {options}: {found:?}");
        let wrong: Vec<_> =
            found.iter().filter(|(name, bytes)| name.starts_with("wait_") != (*bytes > 0)).collect();
        assert!(wrong.is_empty(), "{compiler} {options}: {wrong:?}");
    }
}

/// Without optimization, variables live on the stack: waits that count there are missed, but no work is called waiting.
#[test]
fn without_optimization_no_working_loop_counts_as_waiting() {
    let Some(found) = waits("wait_loops_unoptimized", "cc", &["-O0"]) else { return };
    let wrong: Vec<_> =
        found.iter().filter(|(name, bytes)| name.starts_with("work_") && *bytes > 0).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    for name in ["wait_test_test_and_set", "wait_flag", "wait_ticket", "wait_mcs", "wait_flag_yield"] {
        assert!(found.iter().any(|(found, bytes)| found == name && *bytes > 0), "{name}: {found:?}");
    }
}
