/* Two threads, each with a mutex of its own or both with the same one, which they take and give back over and over with so
   much computing while they have it and so much in between. Prints the wall time and the CPU time that took, in
   nanoseconds, and then how often each thread had its mutex.
   usage: two_mutexes [pairs of each thread 500000] [nanoseconds of computing held 100] [and apart 1750]
                      [0: a mutex each, 1: one for both] */
#include "common.h"
#include <time.h>

static struct { pthread_mutex_t lock; char apart[128]; } locks[2] = {
    { PTHREAD_MUTEX_INITIALIZER, "" }, { PTHREAD_MUTEX_INITIALIZER, "" } };
static long pairs, held_steps, apart_steps, shared, had[2];
static volatile unsigned long sink[2][32];

static long long now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* One step depends on the one before, so that nothing is done at the same time. */
static inline void compute(int thread, long steps)
{
    unsigned long number = sink[thread][0];
    for (long i = 0; i < steps; i++)
        number = number * 6364136223846793005UL + 1442695040888963407UL;
    sink[thread][0] = number;
}

static void *work(void *argument)
{
    int thread = (int)(long)argument;
    pthread_mutex_t *lock = &locks[shared ? 0 : thread].lock;
    for (long i = 0; i < pairs; i++) {
        pthread_mutex_lock(lock);
        compute(thread, held_steps);
        had[thread]++;
        pthread_mutex_unlock(lock);
        compute(thread, apart_steps);
    }
    return 0;
}

int main(int argc, char **argv)
{
    pairs = argument(argc, argv, 1, 500000);
    long held_ns = argument(argc, argv, 2, 100), apart_ns = argument(argc, argv, 3, 1750);
    shared = argument(argc, argv, 4, 0);
    wait_for_start();
    /* What a step takes here: the best of several tries. */
    enum { STEPS = 1000000 };
    long long best = 1LL << 62;
    for (int i = 0; i < 20; i++) {
        long long start = now(CLOCK_THREAD_CPUTIME_ID);
        compute(0, STEPS);
        long long took = now(CLOCK_THREAD_CPUTIME_ID) - start;
        if (took < best)
            best = took;
    }
    held_steps = (long)((double)held_ns * STEPS / best);
    apart_steps = (long)((double)apart_ns * STEPS / best);
    long long wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    pthread_t threads[2];
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, work, (void *)i);
    for (long i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    wall = now(CLOCK_MONOTONIC) - wall;
    printf("%lld ns wall, %lld ns CPU\n%ld and %ld times\n", wall, cpu, had[0], had[1]);
    return 0;
}
