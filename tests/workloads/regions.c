/* Parallel regions of OpenMP in two functions, one of which has three times as much to do.
   usage: regions [rounds 51] [iterations 40] [units 100000]
   flags: -fopenmp */
#include "common.h"

static uint64_t units;
static volatile uint64_t sink;

static NAMED void Tile(uint64_t size)
{
    sink = burn(units * size, 29);
}

static NAMED void Narrow(long iterations)
{
#pragma omp parallel for schedule(static)
    for (long i = 0; i < iterations; i++)
        Tile(1);
}

static NAMED void Wide(long iterations)
{
#pragma omp parallel for schedule(static)
    for (long i = 0; i < iterations; i++)
        Tile(3);
}

static NAMED void Serial(void)
{
    sink = burn(units * 40, 31);
}

int main(int argc, char **argv)
{
    long rounds = argument(argc, argv, 1, 51), iterations = argument(argc, argv, 2, 40);
    units = (uint64_t)argument(argc, argv, 3, 100000);
    for (long round = 0; round < rounds; round++) {
        Serial();
        Narrow(iterations);
        Serial();
        Wide(iterations);
    }
    printf("%ld rounds\n", rounds);
    return 0;
}
