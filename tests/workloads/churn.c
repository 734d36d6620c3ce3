/* Threads born and gone all the time, a few at once.
   usage: churn [threads 211] [at once 4] [pause before, in milliseconds 0] */
#include "common.h"

enum { MOST = 64 };

static volatile uint64_t sink;

static NAMED void ShortLife(void)
{
    sink = burn(50000, 3);
}

static void *life(void *argument)
{
    ShortLife();
    return argument;
}

int main(int argc, char **argv)
{
    long threads = argument(argc, argv, 1, 211), at_once = argument(argc, argv, 2, 4);
    if (at_once < 1 || at_once > MOST)
        must(22, "churn");
    wait_for_start();
    usleep((useconds_t)argument(argc, argv, 3, 0) * 1000);
    for (long born = 0; born < threads;) {
        pthread_t handle[MOST];
        long now = 0;
        for (; now < at_once && born < threads; now++, born++)
            must(pthread_create(&handle[now], NULL, life, NULL), "pthread_create");
        for (long i = 0; i < now; i++)
            must(pthread_join(handle[i], NULL), "pthread_join");
    }
    printf("%ld threads\n", threads);
    return 0;
}
