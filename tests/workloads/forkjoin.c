/* Fork and join with one long branch: on enough CPUs only LongBranch matters, on one CPU all branches count alike
   per unit of work.
   usage: forkjoin [rounds 11] [short branches 5] [units 400000]; LongBranch works four times the units of a
   ShortBranch. */
#include "common.h"

enum { MOST = 64 };

static uint64_t units;
static volatile uint64_t sink;

static NAMED void *ShortBranch(void *argument)
{
    (void)argument;
    sink = burn(units, 7);
    return NULL;
}

static NAMED void *LongBranch(void *argument)
{
    (void)argument;
    sink = burn(4 * units, 11);
    return NULL;
}

static NAMED void Between(void)
{
    sink = burn(units / 100, 13);
}

int main(int argc, char **argv)
{
    long rounds = argument(argc, argv, 1, 11);
    long branches = argument(argc, argv, 2, 5);
    units = (uint64_t)argument(argc, argv, 3, 400000);
    if (branches >= MOST)
        must(22, "forkjoin");
    wait_for_start();
    for (long round = 0; round < rounds; round++) {
        pthread_t handle[MOST];
        Between();
        for (long i = 0; i < branches; i++)
            must(pthread_create(&handle[i], NULL, ShortBranch, NULL), "pthread_create");
        must(pthread_create(&handle[branches], NULL, LongBranch, NULL), "pthread_create");
        for (long i = 0; i <= branches; i++)
            must(pthread_join(handle[i], NULL), "pthread_join");
    }
    printf("%ld rounds of %ld branches\n", rounds, branches + 1);
    return 0;
}
