/* Two threads that count what they do: "shared" in one counter, "false" in counters of their own in one cache line, "own" in lines
   of their own. Only the first two wait for each other. Rounds are in thousands. */
#include "common.h"
#include <stdatomic.h>

enum { THREADS = 2, LINE = 64 };

static _Alignas(LINE) atomic_long hits[THREADS * LINE / sizeof(long)];
static size_t apart;
static long rounds;

NAMED void count(size_t thread) { hits[thread * apart]++; }

static void *work(void *number)
{
    uint64_t seed = (size_t)number + 1;
    for (long i = 0; i < rounds; i++) {
        seed = burn(10, seed);
        count((size_t)number);
    }
    return (void *)(size_t)seed;
}

int main(int number, char **words)
{
    if (number < 3)
        return 2;
    apart = !strcmp(words[1], "shared") ? 0 : !strcmp(words[1], "false") ? 1 : LINE / sizeof(long);
    rounds = atol(words[2]) * 1000;
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
