// Batches of std::async, one task of each batch four times as long as the others. Argument: batches.
#include "work.h"
#include <future>
#include <vector>

static __attribute__((noinline)) uint64_t render(uint64_t state, long turns)
{
    TURNS(state, turns)
    return state;
}

int main(int count, char **words)
{
    long batches = argument(count, words, 1, 60);
    uint64_t sum = 0;
    for (long batch = 0; batch < batches; batch++) {
        std::vector<std::future<uint64_t>> tasks;
        for (long i = 0; i < 5; i++)
            tasks.push_back(std::async(std::launch::async, render, batch + i + 1, i == 0 ? 12000000L : 3000000L));
        for (auto &task : tasks)
            sum ^= task.get();
    }
    printf("%lx\n", static_cast<unsigned long>(sum));
}
