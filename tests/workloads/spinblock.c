/* Locks that spin before they sleep, glibc's adaptive mutex, and one that only spins. The work under either is short,
   so that on several CPUs most waits end while spinning; on one CPU spinning waits for nobody.
   usage: spinblock [threads 4] [rounds 3000] [units 3000] */
#define _GNU_SOURCE
#include "common.h"

enum { MOST = 64 };

static pthread_mutex_t adaptive;
static pthread_spinlock_t spin;
static long rounds;
static uint64_t units;
static volatile uint64_t sink;

static NAMED void UnderAdaptive(uint64_t seed)
{
    sink = burn(units, seed);
}

static NAMED void UnderSpin(uint64_t seed)
{
    sink = burn(units / 4, seed);
}

static NAMED void Alone(uint64_t seed)
{
    sink = burn(4 * units, seed);
}

static void *worker(void *argument)
{
    (void)argument;
    for (long round = 1; round <= rounds; round++) {
        pthread_mutex_lock(&adaptive);
        UnderAdaptive((uint64_t)round);
        pthread_mutex_unlock(&adaptive);
        Alone((uint64_t)round);
        pthread_spin_lock(&spin);
        UnderSpin((uint64_t)round);
        pthread_spin_unlock(&spin);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    long threads = argument(argc, argv, 1, 4);
    rounds = argument(argc, argv, 2, 3000);
    units = (uint64_t)argument(argc, argv, 3, 3000);
    if (threads < 1 || threads > MOST) {
        fprintf(stderr, "%s: from 1 to %d threads\n", argv[0], MOST);
        return 2;
    }
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(&adaptive, &kind);
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    wait_for_start();
    pthread_t ids[MOST];
    for (long i = 0; i < threads; i++)
        must(pthread_create(&ids[i], NULL, worker, NULL), "pthread_create");
    for (long i = 0; i < threads; i++)
        must(pthread_join(ids[i], NULL), "pthread_join");
    printf("%ld threads, %ld rounds\n", threads, rounds);
    return 0;
}
