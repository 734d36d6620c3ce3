/* Phases with a barrier between them, as in numerical programs: every thread has another share of each phase, so that
   all wait for the slowest.
   usage: phases [threads 4] [phases 60] [units 400000] */
#include "common.h"

enum { MOST = 64 };

static pthread_barrier_t barrier;
static long threads, phases;
static uint64_t units;
static volatile uint64_t sink;

/* From 0.7 to 1.3 units; who is slowest changes from phase to phase. */
static NAMED void Phase(long number, long phase)
{
    uint64_t share = 70 + (uint64_t)((number * 37 + phase * 23) % 61);
    sink = burn(units * share / 100, (uint64_t)phase + 1);
}

static void *worker(void *argument)
{
    long number = (long)argument;
    for (long phase = 0; phase < phases; phase++) {
        Phase(number, phase);
        int end = pthread_barrier_wait(&barrier);
        must(end == PTHREAD_BARRIER_SERIAL_THREAD ? 0 : end, "pthread_barrier_wait");
    }
    return NULL;
}

int main(int argc, char **argv)
{
    threads = argument(argc, argv, 1, 4);
    phases = argument(argc, argv, 2, 60);
    units = (uint64_t)argument(argc, argv, 3, 400000);
    if (threads < 1 || threads > MOST) {
        fprintf(stderr, "%s: from 1 to %d threads\n", argv[0], MOST);
        return 2;
    }
    must(pthread_barrier_init(&barrier, NULL, (unsigned)threads), "pthread_barrier_init");
    wait_for_start();
    pthread_t ids[MOST];
    for (long i = 0; i < threads; i++)
        must(pthread_create(&ids[i], NULL, worker, (void *)i), "pthread_create");
    for (long i = 0; i < threads; i++)
        must(pthread_join(ids[i], NULL), "pthread_join");
    printf("%ld threads, %ld phases\n", threads, phases);
    return 0;
}
