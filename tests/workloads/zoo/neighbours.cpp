// Two parsers that keep their statistics in one array: side by side (packed), or each in lines of its own (padded).
// Arguments: which, thousands of tokens.
#include "work.h"
#include <thread>
#include <vector>

struct Packed {
    volatile long tokens, digits, depth;
};
struct alignas(128) Padded : Packed {
};

template <class Stats> static __attribute__((noinline)) void parse(Stats &stats, long tokens)
{
    uint64_t state = 88172645463325252u;
    for (long i = 0; i < tokens; i++) {
        TURNS(state, 2)
        stats.tokens = stats.tokens + 1;
        if (state % 10 < 4)
            stats.digits = stats.digits + 1;
        stats.depth = stats.depth + (state & 1 ? 1 : -1);
    }
}

template <class Stats> static void run(long tokens)
{
    std::vector<Stats> all(2);
    std::thread first([&] { parse(all[0], tokens); }), second([&] { parse(all[1], tokens); });
    first.join();
    second.join();
    printf("%ld %ld\n", all[0].digits + all[1].digits, all[0].depth);
}

int main(int count, char **words)
{
    long tokens = 1000 * argument(count, words, 2, 100000);
    if (count > 1 && strcmp(words[1], "padded") == 0)
        run<Padded>(tokens);
    else
        run<Packed>(tokens);
}
