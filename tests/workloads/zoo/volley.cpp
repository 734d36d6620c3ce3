// Two threads in turn, each of which yields until it is its turn. Strictly serial. Argument: rounds.
#include "work.h"
#include <atomic>
#include <sched.h>
#include <thread>

static std::atomic<int> whose{0};
static volatile uint64_t sink;

WORK(ping, 200000)
WORK(pong, 100000)

int main(int count, char **words)
{
    long rounds = argument(count, words, 1, 9000);
    auto player = [=](int me, uint64_t (*stroke)(uint64_t)) {
        uint64_t state = 1;
        for (long i = 0; i < rounds; i++) {
            while (whose.load() != me)
                sched_yield();
            state = stroke(state);
            whose = 1 - me;
        }
        sink = state;
    };
    std::thread first(player, 0, ping), second(player, 1, pong);
    first.join();
    second.join();
    puts("done");
}
