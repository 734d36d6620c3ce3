// Two threads that blur tiles, each with a scratch buffer of its own for every tile: new each time, which the C library maps and
// unmaps where its threshold is low (MALLOC_MMAP_THRESHOLD_). Argument: tiles.
#include "work.h"
#include <thread>
#include <vector>

static const int SIDE = 384;

static __attribute__((noinline)) float blur(const std::vector<float> &tile)
{
    std::vector<float> rows(tile.size());
    for (size_t i = 1; i + 1 < tile.size(); i++)
        rows[i] = (tile[i - 1] + tile[i] + tile[i + 1]) / 3;
    float sum = 0;
    for (size_t i = 0; i < rows.size(); i += 16)
        sum += rows[i];
    return sum;
}

int main(int count, char **words)
{
    long tiles = argument(count, words, 1, 8000);
    std::vector<float> picture(SIDE * SIDE);
    for (size_t i = 0; i < picture.size(); i++)
        picture[i] = i * 2654435761u % 256;
    float sums[2] = {0, 0};
    auto work = [&](int me) {
        for (long i = 0; i < tiles; i++)
            sums[me] += blur(picture) / tiles;
    };
    std::thread first(work, 0), second(work, 1);
    first.join();
    second.join();
    printf("%.0f\n", sums[0] - sums[1]);
}
