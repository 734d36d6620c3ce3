// Four readers of a table behind a shared_mutex; one turn in a thousand writes. Argument: turns of each.
#include "work.h"
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

static std::shared_mutex table_lock;
static uint64_t table[64];
static volatile uint64_t sink;

WORK(look_up, 50000)
WORK(rewrite, 200000)

int main(int count, char **words)
{
    long turns = argument(count, words, 1, 6000);
    std::vector<std::thread> threads;
    for (uint64_t me = 0; me < 4; me++)
        threads.emplace_back([=] {
            uint64_t state = me + 1;
            for (long i = 0; i < turns; i++) {
                if (i % 1000 == 999) {
                    std::unique_lock<std::shared_mutex> held(table_lock);
                    table[state & 63] = rewrite(state);
                } else {
                    std::shared_lock<std::shared_mutex> held(table_lock);
                    state = look_up(state) + (table[state & 63] & 1);
                }
            }
            sink = state;
        });
    for (auto &thread : threads)
        thread.join();
    puts("done");
}
