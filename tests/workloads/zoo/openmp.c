/* OpenMP: one row of four is longer (skew), rows grow (slope), or a critical section (critical). Arguments: which, rounds.
   flags: -fopenmp */
#include "work.h"

WORK(update_total, 120000)
WORK(measure_cell, 100000)

static __attribute__((noinline)) uint64_t relax_row(uint64_t state, long turns)
{
    TURNS(state, turns)
    return state;
}

int main(int count, char **words)
{
    const char *name = count > 1 ? words[1] : "skew";
    long rounds = argument(count, words, 2, 100);
    uint64_t sum = 0;
    if (strcmp(name, "skew") == 0) {
        for (long round = 0; round < rounds; round++)
#pragma omp parallel for schedule(static, 1) reduction(^ : sum) num_threads(2)
            for (int row = 0; row < 4; row++)
                sum ^= relax_row(row + 1, row == 0 ? 8000000 : 2000000);
    } else if (strcmp(name, "slope") == 0) {
        for (long round = 0; round < rounds; round++)
#pragma omp parallel for schedule(static) reduction(^ : sum) num_threads(2)
            for (int row = 0; row < 1000; row++)
                sum ^= relax_row(row + 1, row * 60L);
    } else {
#pragma omp parallel for schedule(static) num_threads(2)
        for (long cell = 0; cell < rounds; cell++) {
            uint64_t seen = measure_cell(cell + 1);
#pragma omp critical(total)
            sum = update_total(seen) ^ sum;
        }
    }
    printf("%lx\n", (unsigned long)sum);
}
