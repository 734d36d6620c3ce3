/* Threads that wait for a result by asking again and again, and give up their CPU in between.
   usage: impatient [threads 3] [units until the result 200000000] */
#include "common.h"
#include <sched.h>
#include <stdatomic.h>

enum { MOST = 64 };

static atomic_int ready;
static volatile uint64_t sink;

static NAMED void Result(uint64_t units)
{
    sink = burn(units, 7);
}

static void *impatient(void *argument)
{
    (void)argument;
    while (!atomic_load(&ready))
        sched_yield();
    return NULL;
}

int main(int argc, char **argv)
{
    long threads = argument(argc, argv, 1, 3);
    uint64_t units = (uint64_t)argument(argc, argv, 2, 200000000);
    if (threads < 1 || threads > MOST) {
        fprintf(stderr, "%s: from 1 to %d threads\n", argv[0], MOST);
        return 2;
    }
    wait_for_start();
    pthread_t ids[MOST];
    for (long i = 0; i < threads; i++)
        must(pthread_create(&ids[i], NULL, impatient, NULL), "pthread_create");
    Result(units);
    atomic_store(&ready, 1);
    for (long i = 0; i < threads; i++)
        must(pthread_join(ids[i], NULL), "pthread_join");
    printf("%ld threads\n", threads);
    return 0;
}
