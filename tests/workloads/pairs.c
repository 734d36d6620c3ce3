/* Takes and releases an uncontended mutex over and over, with so much computing in between. Prints the wall time and the
   CPU time that took, in nanoseconds.
   usage: pairs [pairs 1000000] [nanoseconds of computing in each 0] [1: a recursive mutex, whose operations nobody folds] */
#include "common.h"
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long sink;

static long long now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* One step depends on the one before, so that nothing is done at the same time. */
static void compute(long steps)
{
    unsigned long number = sink;
    for (long i = 0; i < steps; i++)
        number = number * 6364136223846793005UL + 1442695040888963407UL;
    sink = number;
}

int main(int argc, char **argv)
{
    long pairs = argument(argc, argv, 1, 1000000);
    long work_ns = argument(argc, argv, 2, 0);
    if (argument(argc, argv, 3, 0)) {
        pthread_mutexattr_t recursive;
        pthread_mutexattr_init(&recursive);
        pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
        pthread_mutex_init(&lock, &recursive);
    }
    wait_for_start();
    /* What a step takes here: the best of several tries. */
    enum { STEPS = 1000000 };
    long long best = 1LL << 62;
    for (int i = 0; i < 20; i++) {
        long long start = now(CLOCK_THREAD_CPUTIME_ID);
        compute(STEPS);
        long long took = now(CLOCK_THREAD_CPUTIME_ID) - start;
        if (took < best)
            best = took;
    }
    long steps = (long)((double)work_ns * STEPS / best);
    long long wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_THREAD_CPUTIME_ID);
    for (long i = 0; i < pairs; i++) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
        compute(steps);
    }
    cpu = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
    wall = now(CLOCK_MONOTONIC) - wall;
    printf("%lld ns wall, %lld ns CPU\n", wall, cpu);
    return 0;
}
