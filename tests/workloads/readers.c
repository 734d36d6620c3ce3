/* A table behind a read-write lock: most threads read it, every so often one writes. Readers run side by side; a
   writer stops them all.
   usage: readers [threads 4] [rounds 400] [units of a read 40000] [one write in 20] */
#include "common.h"

enum { MOST = 64 };

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static long rounds, every;
static uint64_t units;
static volatile uint64_t sink;

static NAMED void ReadTable(uint64_t seed)
{
    sink = burn(units, seed);
}

static NAMED void WriteTable(uint64_t seed)
{
    sink = burn(2 * units, seed);
}

static NAMED void Outside(uint64_t seed)
{
    sink = burn(units / 2, seed);
}

static void *worker(void *argument)
{
    long number = (long)argument;
    for (long round = 0; round < rounds; round++) {
        if ((round + number * 7) % every == 0) {
            must(pthread_rwlock_wrlock(&table), "wrlock");
            WriteTable((uint64_t)round + 1);
        } else {
            must(pthread_rwlock_rdlock(&table), "rdlock");
            ReadTable((uint64_t)round + 1);
        }
        must(pthread_rwlock_unlock(&table), "unlock");
        Outside((uint64_t)round + 1);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    long threads = argument(argc, argv, 1, 4);
    rounds = argument(argc, argv, 2, 400);
    units = (uint64_t)argument(argc, argv, 3, 40000);
    every = argument(argc, argv, 4, 20);
    if (threads < 1 || threads > MOST || every < 1) {
        fprintf(stderr, "%s: from 1 to %d threads, a write in at least 1\n", argv[0], MOST);
        return 2;
    }
    wait_for_start();
    pthread_t ids[MOST];
    for (long i = 0; i < threads; i++)
        must(pthread_create(&ids[i], NULL, worker, (void *)i), "pthread_create");
    for (long i = 0; i < threads; i++)
        must(pthread_join(ids[i], NULL), "pthread_join");
    printf("%ld threads, %ld rounds\n", threads, rounds);
    return 0;
}
