/* Runners that pass a baton, each computing a little with it: all wait for one condition and look whether it is their turn (all), or
   each waits for its own (one). Arguments: which, rounds. */
#include "work.h"
#include <pthread.h>

enum { RUNNERS = 16 };

static pthread_mutex_t field = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t passed[RUNNERS];
static long rounds;
static int turn, to_all;
static uint64_t baton = 1;

WORK(run_leg, 10000)

static void pass_on(void)
{
    turn = (turn + 1) % RUNNERS;
    if (to_all)
        pthread_cond_broadcast(&passed[0]);
    else
        pthread_cond_signal(&passed[turn]);
}

static void *runner(void *argument)
{
    long me = (long)argument;
    for (long i = 0; i < rounds; i++) {
        pthread_mutex_lock(&field);
        while (turn != me)
            pthread_cond_wait(&passed[to_all ? 0 : me], &field);
        baton = run_leg(baton);
        pass_on();
        pthread_mutex_unlock(&field);
    }
    return NULL;
}

int main(int count, char **words)
{
    pthread_t threads[RUNNERS];
    to_all = count < 2 || strcmp(words[1], "all") == 0;
    rounds = argument(count, words, 2, 1000);
    for (int i = 0; i < RUNNERS; i++)
        pthread_cond_init(&passed[i], NULL);
    for (long i = 0; i < RUNNERS; i++)
        pthread_create(&threads[i], NULL, runner, (void *)i);
    for (int i = 0; i < RUNNERS; i++)
        pthread_join(threads[i], NULL);
    printf("%lx\n", (unsigned long)baton);
}
