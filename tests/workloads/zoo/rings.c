/* Two stages with a ring of four places between them, no lock. Who finds it full or empty sleeps a while and looks again (sleep),
   or waits for a semaphore that the other posts (sem). Arguments: which, items. */
#include "work.h"
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

enum { PLACES = 4 };

static atomic_long put, taken;
static sem_t filled, emptied;
static uint64_t ring[PLACES];
static long items;
static int sleeps;

WORK(sample, 260000)
WORK(filter, 240000)

static __attribute__((noinline)) void await(sem_t *semaphore, atomic_long *mine, atomic_long *theirs, long ahead)
{
    if (!sleeps)
        sem_wait(semaphore);
    while (*mine - *theirs >= ahead)
        usleep(5000);
}

static void *sampler(void *unused)
{
    for (long i = 0; i < items; i++) {
        uint64_t value = sample(i + 1);
        await(&emptied, &put, &taken, PLACES);
        ring[i % PLACES] = value;
        put++;
        sem_post(&filled);
    }
    return unused;
}

int main(int count, char **words)
{
    pthread_t thread;
    uint64_t sum = 0;
    sleeps = count < 2 || strcmp(words[1], "sleep") == 0;
    items = argument(count, words, 2, 3000);
    sem_init(&filled, 0, 0);
    sem_init(&emptied, 0, PLACES);
    pthread_create(&thread, NULL, sampler, NULL);
    for (long i = 0; i < items; i++) {
        await(&filled, &taken, &put, 0);
        sum ^= filter(ring[i % PLACES]);
        taken++;
        sem_post(&emptied);
    }
    pthread_join(thread, NULL);
    printf("%lx\n", (unsigned long)sum);
}
