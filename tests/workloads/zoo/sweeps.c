/* OpenMP: a grid that is smoothed in many short sweeps, each with a barrier at its end. With more threads than CPUs that spin there,
   whoever is late waits for a CPU. Argument: sweeps. flags: -fopenmp */
#include "work.h"

enum { CELLS = 48000 };

static double now_[CELLS], next[CELLS];

static __attribute__((noinline)) double smooth(const double *cells, long at)
{
    double sum = cells[at];
    for (int step = 0; step < 6; step++)
        sum = sum * 0.5 + 0.25 * (cells[at - 1] + cells[at + 1]);
    return sum;
}

int main(int count, char **words)
{
    long sweeps = argument(count, words, 1, 3000);
    for (long i = 0; i < CELLS; i++)
        now_[i] = i % 100;
#pragma omp parallel
    for (long sweep = 0; sweep < sweeps; sweep++) {
#pragma omp for schedule(static)
        for (long i = 1; i < CELLS - 1; i++)
            next[i] = smooth(now_, i);
#pragma omp for schedule(static)
        for (long i = 1; i < CELLS - 1; i++)
            now_[i] = next[i];
    }
    printf("%.6f\n", now_[CELLS / 2]);
}
