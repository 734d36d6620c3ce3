/* coz's toy, rebuilt: two threads compute side by side and both are waited for. Fast works 64 units for every 67 of Slow,
   so making Slow faster gains at most 4.5 % and making Fast faster nothing, on two CPUs or more.
   usage: toy [rounds 101] [units 1000000] [percent of Slow 100] [percent of Fast 100] */
#include "common.h"

static long rounds;
static uint64_t units, slow_percent, fast_percent;
static volatile uint64_t sink[2];

static NAMED void Slow(void)
{
    sink[0] = burn(67 * units / 64 * slow_percent / 100, 7);
}

static NAMED void Fast(void)
{
    sink[1] = burn(units * fast_percent / 100, 11);
}

static void *run_slow(void *argument)
{
    (void)argument;
    for (long round = 0; round < rounds; round++)
        Slow();
    return NULL;
}

static void *run_fast(void *argument)
{
    (void)argument;
    for (long round = 0; round < rounds; round++)
        Fast();
    return NULL;
}

int main(int argc, char **argv)
{
    rounds = argument(argc, argv, 1, 101);
    units = (uint64_t)argument(argc, argv, 2, 1000000);
    slow_percent = (uint64_t)argument(argc, argv, 3, 100);
    fast_percent = (uint64_t)argument(argc, argv, 4, 100);
    wait_for_start();
    pthread_t slow, fast;
    must(pthread_create(&slow, NULL, run_slow, NULL), "pthread_create");
    must(pthread_create(&fast, NULL, run_fast, NULL), "pthread_create");
    must(pthread_join(slow, NULL), "pthread_join");
    must(pthread_join(fast, NULL), "pthread_join");
    printf("%ld rounds\n", rounds);
    return 0;
}
