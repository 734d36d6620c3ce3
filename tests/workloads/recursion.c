/* Recursion 1,000 deep, in two threads.
   usage: recursion [times 13] [depth 1000] */
#include "common.h"

static long times, depth;

static NAMED uint64_t Down(long left, uint64_t seed)
{
    seed = burn(20, seed);
    if (left == 0)
        return seed;
    return Down(left - 1, seed) ^ (uint64_t)left;
}

static NAMED uint64_t Top(uint64_t seed)
{
    return Down(depth - 1, seed);
}

static void *diver(void *argument)
{
    uint64_t sum = 0;
    for (long i = 0; i < times; i++)
        sum += Top((uint64_t)i + 1);
    *(uint64_t *)argument = sum;
    return NULL;
}

int main(int argc, char **argv)
{
    times = argument(argc, argv, 1, 13);
    depth = argument(argc, argv, 2, 1000);
    wait_for_start();
    uint64_t sums[2];
    pthread_t other;
    must(pthread_create(&other, NULL, diver, &sums[1]), "pthread_create");
    diver(&sums[0]);
    must(pthread_join(other, NULL), "pthread_join");
    printf("%016llx %s\n", (unsigned long long)sums[0], sums[0] == sums[1] ? "twice" : "differs");
    return sums[0] == sums[1] ? 0 : 1;
}
