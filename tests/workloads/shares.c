// A program whose functions have known shares of its CPU time: `shares SEED SECONDS THREADS`. The seed chooses what it does:
// long or short calls, nested, recursive, functions that are open from the first to the last moment, phases.
//
// Every function computes by the same loop, so that within a round (some milliseconds) shares are those of the turns. A shared
// machine is not always equally fast: each round times some turns of its own, where there are no probes, with
// CLOCK_THREAD_CPUTIME_ID, and weighs as much as its turns at the median speed of its block of 128 rounds. What probes take
// is no time of the program. At the end it prints `truth FUNCTION SELF TOTAL`, shares of the CPU time of `forever`. SIGTERM ends it sooner.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ALPHA, BETA, GAMMA, DELTA, OUTER, MIDDLE, INNER, RECURSE, FOREVER, FUNCTIONS };
static const char *names[] = {"alpha", "beta", "gamma_", "delta", "outer", "middle", "inner", "recurse", "forever"};

static __thread uint64_t self[FUNCTIONS], total[FUNCTIONS];
static double seconds = 1.5;
static unsigned seed;
static volatile uint64_t sink;
static volatile sig_atomic_t stopped;

static void stop(int signal) { stopped = 1; }

// `turns` times; about a nanosecond each.
#define TURN(who, turns)                                                                                               \
    do {                                                                                                               \
        uint64_t x = 1, end = (turns);                                                                                 \
        for (uint64_t i = 0; i < end; i++) {                                                                           \
            x = x * 6364136223846793005ul + i;                                                                         \
            __asm__ volatile("" : "+r"(x));                                                                            \
        }                                                                                                              \
        sink = x;                                                                                                      \
        self[who] += end;                                                                                              \
    } while (0)

#define LEAF(name, who)                                                                                                \
    __attribute__((noinline)) void name(uint64_t turns) {                                                              \
        TURN(who, turns);                                                                                              \
        total[who] += turns;                                                                                           \
    }
LEAF(alpha, ALPHA)
LEAF(beta, BETA)
LEAF(gamma_, GAMMA)
LEAF(delta, DELTA)
LEAF(inner, INNER)

__attribute__((noinline)) void middle(uint64_t turns) {
    uint64_t before = self[MIDDLE] + self[INNER];
    TURN(MIDDLE, turns);
    inner(turns * 3);
    TURN(MIDDLE, turns / 2);
    total[MIDDLE] += self[MIDDLE] + self[INNER] - before;
}

__attribute__((noinline)) void outer(uint64_t turns, int calls) {
    uint64_t before = self[OUTER] + self[MIDDLE] + self[INNER];
    TURN(OUTER, turns);
    for (int call = 0; call < calls; call++)
        middle(turns);
    total[OUTER] += self[OUTER] + self[MIDDLE] + self[INNER] - before;
}

__attribute__((noinline)) int recurse(int depth, uint64_t turns) {
    TURN(RECURSE, turns);
    int deepest = depth ? recurse(depth - 1, turns) + 1 : 0;
    __asm__ volatile("" : "+r"(deepest));
    return deepest;
}

struct round {
    double speed, share_self[FUNCTIONS], share_total[FUNCTIONS], turns;
};
struct thread {
    pthread_t thread;
    struct round *rounds;
    int count;
    unsigned random;
};

static double clock_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static unsigned dice(unsigned *state, unsigned sides) {
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % sides;
}

// Turns of what a seed does in one round, in pieces of about so many turns.
static void one_round(struct thread *t, int kind, unsigned const *weights, double gone) {
    switch (kind) {
    case 0: // Calls of 20 to 100 us.
    case 1: // Of half to 3 us.
    case 2: { // Of one to 20 ms.
        static const uint64_t lengths[] = {20000, 500, 2000000}, times[] = {20, 800, 1};
        uint64_t length = lengths[kind];
        for (uint64_t n = 0; n < times[kind]; n++) {
            alpha(length * weights[0] / 4);
            beta(length * weights[1] / 4);
            gamma_(length * weights[2] / 4);
        }
        break;
    }
    case 3:
        for (int n = 0; n < 20; n++) {
            outer(4000 * weights[0], 1 + weights[1]);
            alpha(20000 * weights[2]);
        }
        break;
    case 4:
        for (int n = 0; n < 20; n++) {
            uint64_t before = self[RECURSE];
            recurse(1 + weights[0], 5000 * weights[1]);
            total[RECURSE] += self[RECURSE] - before;
            beta(30000 * weights[2]);
        }
        break;
    case 5: // Some hot, some that keep their probes.
        for (int n = 0; n < 200; n++)
            alpha(2000 * weights[0]);
        outer(300000 * weights[1], 2);
        delta(1000000 * weights[2]);
        break;
    case 6: // First one thing, then another.
        if (gone < 0.4)
            for (int n = 0; n < 300; n++)
                gamma_(2000 * weights[0]);
        else if (gone < 0.7)
            outer(100000 * weights[1], 3);
        else
            for (int n = 0; n < 20; n++)
                alpha(50000 * weights[2]);
        break;
    default: // All at random.
        for (int n = 0; n < 30; n++) {
            uint64_t turns = 500 + dice(&t->random, 60000);
            switch (dice(&t->random, 4)) {
            case 0: alpha(turns * weights[0]); break;
            case 1: beta(turns * weights[1]); break;
            case 2: outer(turns, dice(&t->random, 3)); break;
            default: delta(turns * weights[2]);
            }
        }
    }
}

// Open from the thread's beginning to its end, or to the end of the recording.
__attribute__((noinline, optimize("no-reorder-blocks-and-partition"))) void forever(struct thread *t) {
    unsigned random = seed * 2654435761u + 17;
    unsigned weights[3];
    int kind = seed % 8;
    for (int n = 0; n < 3; n++)
        weights[n] = 1 + dice(&random, 6);
    double began = clock_ns(CLOCK_MONOTONIC), gone = 0, room = 1 << 16;
    t->rounds = malloc(room * sizeof *t->rounds);
    while (gone < 1 && t->count < room && !stopped) {
        memset(self, 0, sizeof self);
        memset(total, 0, sizeof total);
        struct round *round = &t->rounds[t->count++];
        double from = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        TURN(FOREVER, 100000);
        round->speed = (clock_ns(CLOCK_THREAD_CPUTIME_ID) - from) / self[FOREVER];
        one_round(t, kind, weights, gone);
        round->turns = 0;
        for (int n = 0; n < FUNCTIONS; n++)
            round->turns += self[n];
        for (int n = 0; n < FUNCTIONS; n++) {
            round->share_self[n] = self[n] / round->turns;
            round->share_total[n] = total[n] / round->turns;
        }
        gone = (clock_ns(CLOCK_MONOTONIC) - began) / 1e9 / seconds;
    }
}

static void *work(void *argument) {
    forever(argument);
    return 0;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int count, char **arguments) {
    enum { BLOCK = 128 };
    seed = count > 1 ? atoi(arguments[1]) : 0;
    seconds = count > 2 ? atof(arguments[2]) : 1.5;
    int threads = count > 3 ? atoi(arguments[3]) : 2;
    static struct thread all[64];
    signal(SIGTERM, stop);
    for (int n = 0; n < threads; n++) {
        all[n].random = seed * 40503u + n;
        pthread_create(&all[n].thread, 0, work, &all[n]);
    }
    for (int n = 0; n < threads; n++)
        pthread_join(all[n].thread, 0);
    double sums[2][FUNCTIONS] = {{0}}, sum = 0;
    for (int n = 0; n < threads; n++)
        for (int block = 0; block < all[n].count; block += BLOCK) {
            int many = all[n].count - block < BLOCK ? all[n].count - block : BLOCK;
            double near[BLOCK];
            for (int at = 0; at < many; at++)
                near[at] = all[n].rounds[block + at].speed;
            qsort(near, many, sizeof *near, by_size);
            for (int at = 0; at < many; at++) {
                struct round *round = &all[n].rounds[block + at];
                double ns = near[many / 2] * round->turns;
                sum += ns;
                for (int f = 0; f < FUNCTIONS; f++) {
                    sums[0][f] += ns * round->share_self[f];
                    sums[1][f] += ns * round->share_total[f];
                }
            }
        }
    for (int f = 0; f < FUNCTIONS; f++)
        if (f == FOREVER || sums[1][f] > 0)
            printf("truth %s %.6f %.6f\n", names[f], sums[0][f] / sum, f == FOREVER ? 1.0 : sums[1][f] / sum);
    return 0;
}
