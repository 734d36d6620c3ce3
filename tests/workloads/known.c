/* Two functions that compute the same amount, one of them in many small calls: probes make that one dearer. Prints the
   CPU time of each in nanoseconds, as the program itself measures it. usage: known [rounds 200] [units 5000] */
#include "common.h"
#include <time.h>

static volatile uint64_t sink;

NAMED void Small(uint64_t units) { sink = burn(units, sink | 1); }

NAMED void InManyCalls(uint64_t units)
{
    for (int i = 0; i < 60; i++)
        Small(units);
}

NAMED void InOneCall(uint64_t units) { sink = burn(60 * units, sink | 1); }

static long long now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(int argc, char **argv)
{
    long rounds = argument(argc, argv, 1, 200);
    uint64_t units = (uint64_t)argument(argc, argv, 2, 5000);
    wait_for_start();
    long long many = 0, one = 0;
    for (long i = 0; i < rounds; i++) {
        long long start = now_ns();
        InManyCalls(units);
        long long middle = now_ns();
        InOneCall(units);
        many += middle - start;
        one += now_ns() - middle;
    }
    printf("%lld %lld\n", many, one);
    return 0;
}
