/* Three threads in phases with std::barrier; one has twice the work. Argument: phases.
   flags: -std=c++20 */
#include "work.h"
#include <barrier>
#include <thread>
#include <vector>

static volatile uint64_t sink;

WORK(advance, 400000)

int main(int count, char **words)
{
    long phases = argument(count, words, 1, 1000);
    std::barrier together(3);
    std::vector<std::thread> threads;
    for (int me = 0; me < 3; me++)
        threads.emplace_back([=, &together] {
            uint64_t state = me + 1;
            for (long phase = 0; phase < phases; phase++) {
                state = advance(state);
                if (me == 0)
                    state = advance(state);
                together.arrive_and_wait();
            }
            sink = state;
        });
    for (auto &thread : threads)
        thread.join();
    puts("done");
}
