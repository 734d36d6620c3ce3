/* oneTBB: a sum over tiles in parallel. Argument: tiles.
   flags: -Wl,--no-as-needed -ltbb */
#include "work.h"
#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_reduce.h>

WORK(tile, 2000000)

int main(int count, char **words)
{
    size_t tiles = static_cast<size_t>(argument(count, words, 1, 800));
    tbb::global_control two(tbb::global_control::max_allowed_parallelism, 2);
    uint64_t sum = tbb::parallel_reduce(
        tbb::blocked_range<size_t>(0, tiles, 4), uint64_t{0},
        [](const tbb::blocked_range<size_t> &range, uint64_t sum) {
            for (size_t i = range.begin(); i != range.end(); ++i)
                sum ^= tile(i + 1);
            return sum;
        },
        [](uint64_t left, uint64_t right) { return left ^ right; });
    printf("%lx\n", static_cast<unsigned long>(sum));
}
