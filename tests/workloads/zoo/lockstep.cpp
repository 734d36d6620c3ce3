// Threads that move particles in steps and meet behind each at a barrier of their own, where they turn until all are there.
// Arguments: threads, steps.
#include "work.h"
#include <atomic>
#include <thread>
#include <vector>

static std::atomic<long> arrived{0}, step_now{0};
static long threads, steps;

static __attribute__((noinline)) uint64_t move_particles(uint64_t state, long turns)
{
    TURNS(state, turns)
    return state;
}

static __attribute__((noinline)) void meet(long step)
{
    if (arrived.fetch_add(1) + 1 == threads) {
        arrived = 0;
        step_now = step + 1;
    }
    while (step_now.load(std::memory_order_acquire) <= step)
        __builtin_ia32_pause();
}

static void simulate(uint64_t *state)
{
    for (long step = 0; step < steps; step++) {
        *state = move_particles(*state, 2400000 / threads);
        meet(step);
    }
}

int main(int count, char **words)
{
    threads = argument(count, words, 1, 5);
    steps = argument(count, words, 2, 300);
    std::vector<uint64_t> states(threads * 16, 1);
    std::vector<std::thread> all;
    for (long i = 0; i < threads; i++)
        all.emplace_back(simulate, &states[i * 16]);
    for (auto &thread : all)
        thread.join();
    puts("moved");
}
