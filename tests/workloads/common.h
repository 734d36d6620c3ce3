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

#endif
