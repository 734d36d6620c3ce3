/* Leaves a deep recursion by longjmp, again and again.
   usage: longjmp [jumps 401] */
#include "common.h"
#include <setjmp.h>

static jmp_buf back;
static volatile uint64_t sink;

static NAMED int Dive(int depth)
{
    sink = burn(10, sink + 1);
    if (depth == 0)
        longjmp(back, 23);
    return Dive(depth - 1) + 1;
}

static NAMED int Surface(void)
{
    int code = setjmp(back);
    if (code == 0)
        return Dive(19);
    return code;
}

int main(int argc, char **argv)
{
    long jumps = argument(argc, argv, 1, 401);
    long sum = 0;
    wait_for_start();
    for (long i = 0; i < jumps; i++)
        sum += Surface();
    printf("%ld jumps, sum %ld\n", jumps, sum);
    return sum == 23 * jumps ? 0 : 1;
}
