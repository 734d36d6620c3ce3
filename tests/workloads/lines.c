/* Two threads that count what they do, with atomic instructions: "shared" in one counter, "false" in counters of their own in one
   cache line, "own" in lines of their own. Without: "plain" in one line, "padded" in lines of their own; "table" only reads, "queue"
   counts one word under a lock. Only "shared", "false" and "plain" wait for a line. Rounds are in thousands. */
#include "common.h"
#include <stdatomic.h>

enum { THREADS = 2, LINE = 64 };

static _Alignas(LINE) atomic_long hits[THREADS * LINE / sizeof(long)];
static _Alignas(LINE) volatile long sums[THREADS * LINE / sizeof(long)];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t apart;
static long rounds;

NAMED void count(size_t thread) { hits[thread * apart]++; }

NAMED void add(size_t thread) { sums[thread * apart]++; }

NAMED long look(size_t thread) { return sums[thread]; }

static void *work(void *number)
{
    uint64_t seed = (size_t)number + 1;
    for (long i = 0; i < rounds; i++) {
        seed = burn(10, seed);
        count((size_t)number);
    }
    return (void *)(size_t)seed;
}

static void *work_plainly(void *number)
{
    uint64_t seed = (size_t)number + 1;
    for (long i = 0; i < rounds; i++) {
        seed = burn(4, seed);
        add((size_t)number);
    }
    return (void *)(size_t)seed;
}

static void *read_only(void *number)
{
    uint64_t seed = (size_t)number + 1;
    for (long i = 0; i < rounds; i++)
        seed = burn(4, seed) + (uint64_t)look((size_t)number);
    return (void *)(size_t)seed;
}

static void *work_under_lock(void *number)
{
    uint64_t seed = (size_t)number + 1;
    for (long i = 0; i < rounds; i++) {
        seed = burn(200, seed);
        pthread_mutex_lock(&lock);
        add((size_t)number);
        pthread_mutex_unlock(&lock);
    }
    return (void *)(size_t)seed;
}

int main(int number, char **words)
{
    if (number < 3)
        return 2;
    const char *how = words[1];
    int is_apart = !strcmp(how, "own") || !strcmp(how, "padded");
    apart = is_apart ? LINE / sizeof(long) : !strcmp(how, "shared") || !strcmp(how, "queue") ? 0 : 1;
    void *(*run)(void *) = !strcmp(how, "table") ? read_only : !strcmp(how, "queue") ? work_under_lock : work;
    if (!strcmp(how, "plain") || !strcmp(how, "padded"))
        run = work_plainly;
    rounds = atol(words[2]) * 1000;
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run, (void *)i);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
