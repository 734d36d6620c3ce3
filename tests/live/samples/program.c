/* main calls a, a calls b, and b calls two leaves, one of which does three times as much work as the other. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define KNOWN __attribute__((noinline, noclone, section("known")))

#ifdef KEPT
/* gcc omits frame pointers in functions that call no others, whatever its options say. */
#define FRAME __asm__ volatile("" : : "r"(__builtin_frame_address(0)))
#else
#define FRAME
#endif

static unsigned spin(unsigned x, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        x = x * 1664525u + 1013904223u;
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}

static double used(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

/* Rounds of a leaf: so many rounds that a probe hit of ten microseconds is small in comparison, and a different
   number each time, so that calls are not synchronous with the clock's ticks. */
static int rounds;

KNOWN unsigned leaf_one(unsigned x)
{
    FRAME;
    return spin(x, rounds) + 1;
}
KNOWN unsigned leaf_three(unsigned x)
{
    FRAME;
    return spin(x, 3 * rounds) + 1;
}
KNOWN unsigned b(unsigned x)
{
    rounds = 300000 + (x >> 16) * 5;
    x = leaf_three(x);
    x += leaf_one(x);
    return x + 1;
}
KNOWN unsigned a(unsigned x)
{
    return b(x) * 2 + 1;
}
/* Recursion so deep that neither a copy of a few kilobytes nor a list of frames contains the whole stack. */
KNOWN unsigned deep(unsigned x, int depth)
{
    volatile unsigned char room[256];
    room[x & 255] = 1;
    x = depth ? deep(x + room[0], depth - 1) : a(x);
    return x ^ room[x & 255];
}
KNOWN int main(int count, char **words)
{
    double until = used() + atof(words[1]);
    int depth = count > 2 ? atoi(words[2]) : 0;
    unsigned x = 1;
    while (used() < until)
        x = depth ? deep(x, depth) : a(x);
    printf("used %f\n", used());
    return x == 0;
}
KNOWN void end_of_known(void)
{
    __asm__ volatile("");
}
