/* Functions of which some are called so often that probes on them would slow the program. Every 100 ms it prints how
   often the small one was called since the last line and how much CPU time that took, in nanoseconds, until its input
   ends. usage: dear [units of work per call 2000] */
#include "common.h"
#include <poll.h>
#include <time.h>

/* So many that probes on the function around them cost nothing, however slow the machine. */
enum { CALLS = 12000 };

static volatile uint64_t sink;

NAMED void SmallAndHot(uint64_t units) { sink = burn(units, sink | 1); }

NAMED void Seldom(uint64_t units)
{
    for (int i = 0; i < CALLS; i++)
        SmallAndHot(units);
}

static long long now_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(int argc, char **argv)
{
    uint64_t units = (uint64_t)argument(argc, argv, 1, 2000);
    wait_for_start();
    struct pollfd input = {0, POLLIN, 0};
    do {
        long long wall = now_ns(CLOCK_MONOTONIC), cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
        long calls = 0;
        while (now_ns(CLOCK_MONOTONIC) - wall < 100000000) {
            Seldom(units);
            calls += CALLS;
        }
        printf("%ld %lld\n", calls, now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu);
        fflush(stdout);
    } while (poll(&input, 1, 0) == 0);
    return 0;
}
