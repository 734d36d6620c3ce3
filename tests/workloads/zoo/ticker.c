/* Two workers, and a thread that wakes every ten milliseconds for ever. Argument: rounds. */
#include "work.h"
#include <pthread.h>
#include <unistd.h>

static long rounds;
static volatile uint64_t sink;

WORK(work, 100000000)

static void *tick(void *unused)
{
    (void)unused;
    for (;;)
        usleep(10000);
    return NULL;
}

static void *worker(void *argument)
{
    uint64_t state = (uint64_t)argument + 1;
    for (long i = 0; i < rounds; i++)
        state = work(state);
    sink = state;
    return NULL;
}

int main(int count, char **words)
{
    rounds = argument(count, words, 1, 8);
    pthread_t ticker, workers[2];
    pthread_create(&ticker, NULL, tick, NULL);
    for (long i = 0; i < 2; i++)
        pthread_create(&workers[i], NULL, worker, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(workers[i], NULL);
    puts("done");
}
