/* C++ exceptions thrown through several frames and caught, in two threads.
   usage: exceptions [throws 503] */
#include "common.h"
#include <stdexcept>
#include <string>
#include <thread>

struct Unwound {
    uint64_t &count;
    ~Unwound() { count++; }
};

NAMED uint64_t Deep(long depth, uint64_t seed, uint64_t &unwound)
{
    Unwound guard{unwound};
    if (depth == 0)
        throw std::runtime_error("bottom " + std::to_string(seed));
    return Deep(depth - 1, burn(10, seed), unwound) + 1;
}

NAMED uint64_t Catcher(uint64_t seed, uint64_t &unwound)
{
    try {
        return Deep(7, seed, unwound);
    } catch (const std::runtime_error &error) {
        return std::string(error.what()).size();
    }
}

NAMED void Thrower(long throws, uint64_t *caught, uint64_t *unwound)
{
    for (long i = 0; i < throws; i++)
        *caught += Catcher((uint64_t)i + 1, *unwound) > 7;
}

int main(int argc, char **argv)
{
    long throws = argument(argc, argv, 1, 503);
    wait_for_start();
    uint64_t caught[2] = {0, 0}, unwound[2] = {0, 0};
    std::thread other(Thrower, throws, &caught[1], &unwound[1]);
    Thrower(throws, &caught[0], &unwound[0]);
    other.join();
    printf("%llu caught, %llu frames unwound\n", (unsigned long long)(caught[0] + caught[1]),
           (unsigned long long)(unwound[0] + unwound[1]));
    return 0;
}
