/* Threads that compute a little on their own and much under one hot lock, and touch a cold lock now and then. The
   hot lock is the long pole: no number of CPUs makes the work under it faster.
   usage: convoy [rounds 101] [threads 3] [units under the hot lock 200000] */
#include "common.h"

static pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER, cold = PTHREAD_MUTEX_INITIALIZER;
static long rounds, units;
static uint64_t shared;

NAMED static uint64_t UnderTheLock(uint64_t seed)
{
    pthread_mutex_lock(&hot);
    seed = burn((uint64_t)units, seed);
    shared += seed & 1;
    pthread_mutex_unlock(&hot);
    return seed;
}

NAMED static uint64_t OnItsOwn(uint64_t seed)
{
    return burn((uint64_t)units / 2, seed);
}

static void *work(void *argument)
{
    uint64_t seed = (uint64_t)(uintptr_t)argument * 7919 + 1;
    for (long i = 0; i < rounds; i++) {
        seed = OnItsOwn(seed);
        seed = UnderTheLock(seed);
        pthread_mutex_lock(&cold);
        shared++;
        pthread_mutex_unlock(&cold);
    }
    return (void *)(uintptr_t)seed;
}

int main(int argc, char **argv)
{
    rounds = argument(argc, argv, 1, 101);
    long threads = argument(argc, argv, 2, 3);
    units = argument(argc, argv, 3, 200000);
    pthread_t all[64];
    if (threads > 64)
        threads = 64;
    printf("%p %p\n", (void *)&hot, (void *)&cold);
    wait_for_start();
    for (long i = 0; i < threads; i++)
        must(pthread_create(&all[i], NULL, work, (void *)(uintptr_t)i), "pthread_create");
    for (long i = 0; i < threads; i++)
        must(pthread_join(all[i], NULL), "pthread_join");
    printf("%ld rounds\n", rounds * threads);
    return 0;
}
