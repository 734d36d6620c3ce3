/* Shared by the workloads: functions that keep their names, work of a set size, and a start that can wait for the
   one who attaches. */
#ifndef WORKLOADS_COMMON_H
#define WORKLOADS_COMMON_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The compiler may neither inline, clone nor merge such a function: its symbol stands for exactly its calls. */
#if defined(__GNUC__) && !defined(__clang__)
#define NAMED __attribute__((noipa))
#else
#define NAMED __attribute__((noinline))
#endif

/* About a nanosecond a unit; the result must be used, or the work would be optimized away. With BURN_IN_CALLER its code
   belongs to the line that it is called on, for profilers that go by lines. */
#ifdef BURN_IN_CALLER
#define burn(units, seed) ({ uint64_t s_ = (seed), n_ = (units); for (uint64_t i_ = 0; i_ < n_; i_++) { s_ ^= s_ << 13; s_ ^= s_ >> 7; s_ ^= s_ << 17; } s_; })
#else
static inline uint64_t burn(uint64_t units, uint64_t seed)
{
    for (uint64_t i = 0; i < units; i++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
    }
    return seed;
}
#endif

static inline long argument(int argc, char **argv, int index, long otherwise)
{
    if (argc <= index)
        return otherwise;
    char *end;
    long value = strtol(argv[index], &end, 10);
    if (*end != '\0' || end == argv[index] || value < 0) {
        fprintf(stderr, "%s: argument %d must be a number, not '%s'\n", argv[0], index, argv[index]);
        exit(2);
    }
    return value;
}

static inline void must(int code, const char *what)
{
    if (code != 0) {
        fprintf(stderr, "%s: %s\n", what, strerror(code));
        exit(2);
    }
}

/* With WORKLOAD_WAIT set: says "ready" and goes on when a line or the end of standard input comes. */
static inline void wait_for_start(void)
{
    if (getenv("WORKLOAD_WAIT") == NULL)
        return;
    puts("ready");
    fflush(stdout);
    char line[16];
    if (fgets(line, sizeof line, stdin) == NULL)
        return;
}

#ifdef SCALABLE
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

/* With WORKLOAD_SCALE=NAME=PERCENT the function of this name does so much of its work: a change really made.

   With WORKLOAD_CPUS=P it runs on an emulated machine of P CPUs: who computes takes one of P tokens, first come first served, sleeps for
   as long as it would compute, a nanosecond a unit, and gives the token back after a time slice at the latest. */
enum { SLOTS = 1024, SLICE_NS = 4000000 };

static const char *scaled_function;
static unsigned long scaled_percent, emulated_cpus;
static sem_t tokens[SLOTS];
static atomic_ulong tokens_taken, tokens_given;

__attribute__((constructor)) static void read_environment(void)
{
    static char name[64];
    const char *scale = getenv("WORKLOAD_SCALE"), *cpus = getenv("WORKLOAD_CPUS");
    if (scale != NULL && sscanf(scale, "%63[^=]=%lu", name, &scaled_percent) == 2)
        scaled_function = name;
    if (cpus == NULL)
        return;
    emulated_cpus = strtoul(cpus, NULL, 10);
    for (unsigned long slot = 0; slot < SLOTS; slot++)
        must(sem_init(&tokens[slot], 0, slot < emulated_cpus) == 0 ? 0 : 1, "sem_init");
}

static inline uint64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline void pass_on_a_token(uint64_t ns)
{
    /* Slept too long: the next time it is less. */
    static _Thread_local int64_t debt_ns;
    while (ns > 0) {
        int64_t slice = ns < SLICE_NS ? (int64_t)ns : SLICE_NS;
        ns -= (uint64_t)slice;
        sem_t *token = &tokens[atomic_fetch_add(&tokens_taken, 1) % SLOTS];
        while (sem_wait(token) != 0)
            ;
        uint64_t began = monotonic_ns();
        if (slice > debt_ns) {
            uint64_t end = began + (uint64_t)(slice - debt_ns);
            struct timespec until = {(time_t)(end / 1000000000), (long)(end % 1000000000)};
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        }
        debt_ns += (int64_t)(monotonic_ns() - began) - slice;
        sem_post(&tokens[(atomic_fetch_add(&tokens_given, 1) + emulated_cpus) % SLOTS]);
    }
}

__attribute__((always_inline)) static inline uint64_t scaled(uint64_t units, const char *function)
{
    if (scaled_function != NULL && strcmp(function, scaled_function) == 0)
        units = units * scaled_percent / 100;
    if (emulated_cpus == 0)
        return units;
    pass_on_a_token(units);
    return 0;
}

/* In the function itself, so that its work is its own. */
#undef burn
#define burn(units, seed) ({ uint64_t s_ = (seed), n_ = scaled((units), __func__); for (uint64_t i_ = 0; i_ < n_; i_++) { s_ ^= s_ << 13; s_ ^= s_ >> 7; s_ ^= s_ << 17; } s_; })
#endif

#endif
