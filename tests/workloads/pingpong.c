/* Two threads hand a lock to and fro as fast as they can, by a mutex and two condition variables. Prints the wall
   time of the hand-overs in nanoseconds.
   usage: pingpong [hand-overs 200000] */
#include "common.h"
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed[2] = {PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER};
static int turn;
static long handovers;

static void *player(void *argument)
{
    int own = (int)(intptr_t)argument;
    pthread_mutex_lock(&lock);
    for (long i = own; i < handovers; i += 2) {
        while (turn != own)
            pthread_cond_wait(&changed[own], &lock);
        turn = !own;
        pthread_cond_signal(&changed[!own]);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(int argc, char **argv)
{
    handovers = argument(argc, argv, 1, 200000);
    wait_for_start();
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    pthread_t other;
    must(pthread_create(&other, NULL, player, (void *)(intptr_t)1), "pthread_create");
    player(NULL);
    must(pthread_join(other, NULL), "pthread_join");
    clock_gettime(CLOCK_MONOTONIC, &end);
    long long ns = (end.tv_sec - start.tv_sec) * 1000000000LL + (end.tv_nsec - start.tv_nsec);
    printf("%lld ns\n", ns);
    return 0;
}
