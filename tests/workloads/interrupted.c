/* A signal interrupts its_victim at its very first instruction, which is all of it; just_before ends at the byte before.
   main -> calls_victim -> its_victim -> signal -> handles. x86-64 only. usage: interrupted [milliseconds 600] */
#include "common.h"

#include <signal.h>
#include <sys/time.h>

static volatile uint64_t sink;
static volatile long left;
void its_victim(void);
__asm__(".text\n.globl just_before\n.type just_before,@function\njust_before:\n.cfi_startproc\nnop\nret\n.cfi_endproc\n"
        ".size just_before,.-just_before\n.globl its_victim\n.type its_victim,@function\nits_victim:\n.cfi_startproc\n"
        "1: jmp 1b\n.cfi_endproc\n.size its_victim,.-its_victim\n");

NAMED void handles(int number)
{
    (void)number;
    sink += burn(20000000, sink + 3);
    if (--left <= 0)
        _exit(0);
}

NAMED void calls_victim(void)
{
    its_victim();
    sink++;
}

int main(int argc, char **argv)
{
    left = argument(argc, argv, 1, 600) / 20 + 1;
    wait_for_start();
    struct sigaction action = {.sa_handler = handles};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval timer = {{0, 2000}, {0, 2000}};
    setitimer(ITIMER_REAL, &timer, NULL);
    calls_victim();
    return 0;
}
