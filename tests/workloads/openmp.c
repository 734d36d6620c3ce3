/* Loops of OpenMP, one with a static and one with a dynamic schedule; later iterations take longer.
   usage: openmp [rounds 20] [iterations 400] [units 10000]
   flags: -fopenmp */
#include "common.h"

static uint64_t units;
static volatile uint64_t sink;

static NAMED void Static(long i, long iterations)
{
    sink = burn(units * (uint64_t)(iterations + 2 * i) / (uint64_t)iterations, 29);
}

static NAMED void Dynamic(long i, long iterations)
{
    sink = burn(units * (uint64_t)(iterations + 2 * i) / (uint64_t)iterations, 31);
}

int main(int argc, char **argv)
{
    long rounds = argument(argc, argv, 1, 20), iterations = argument(argc, argv, 2, 400);
    units = (uint64_t)argument(argc, argv, 3, 10000);
    wait_for_start();
    for (long round = 0; round < rounds; round++) {
#pragma omp parallel for schedule(static)
        for (long i = 0; i < iterations; i++)
            Static(i, iterations);
#pragma omp parallel for schedule(dynamic, 4)
        for (long i = 0; i < iterations; i++)
            Dynamic(i, iterations);
    }
    printf("%ld rounds\n", rounds);
    return 0;
}
