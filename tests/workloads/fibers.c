/* Two fibers on stacks of their own: three quarters of the time in the first, one quarter in the second.
   usage: fibers [rounds 1500] */
#include "common.h"
#include <ucontext.h>

enum { STACK = 65536 };

static ucontext_t scheduler, first, second;
static volatile uint64_t sink;

static NAMED void fibers_leaf(uint64_t units)
{
    sink = burn(units, 3);
}

static NAMED void fibers_first(void)
{
    for (;;) {
        fibers_leaf(300000);
        must(swapcontext(&first, &scheduler), "swapcontext");
    }
}

static NAMED void fibers_second(void)
{
    for (;;) {
        fibers_leaf(100000);
        must(swapcontext(&second, &scheduler), "swapcontext");
    }
}

static void prepare(ucontext_t *fiber, void (*function)(void))
{
    must(getcontext(fiber), "getcontext");
    fiber->uc_stack.ss_sp = malloc(STACK);
    fiber->uc_stack.ss_size = STACK;
    fiber->uc_link = NULL;
    makecontext(fiber, function, 0);
}

int main(int argc, char **argv)
{
    long rounds = argument(argc, argv, 1, 1500);
    wait_for_start();
    prepare(&first, fibers_first);
    prepare(&second, fibers_second);
    for (long i = 0; i < rounds; i++) {
        must(swapcontext(&scheduler, &first), "swapcontext");
        must(swapcontext(&scheduler, &second), "swapcontext");
    }
    printf("%ld rounds\n", rounds);
    return 0;
}
