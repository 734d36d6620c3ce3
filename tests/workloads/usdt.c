/* Requests that USDT probes mark, from one function to another: `order` with counters that say whether a tracer is there, `page` without.
   Pages begin before orders and end before them. One order in ten fails, one in a hundred is slow, one in five begins twice. The notes are
   written by hand, as <sys/sdt.h> does it.
   usage: usdt [threads 2] [orders 500]
   With WORKLOAD_WAIT: a line "go" on standard input begins all threads' orders, "look" asks for the counters. */
#define BURN_IN_CALLER
#include "common.h"

#define PROBE(name, counter)                                                                                            \
    __asm__ volatile("990: nop\n"                                                                                       \
                     ".pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n.4byte 992f-991f, 994f-993f, 3\n"              \
                     "991: .asciz \"stapsdt\"\n992: .balign 4\n"                                                        \
                     "993: .8byte 990b, _.stapsdt.base, " counter "\n"                                                  \
                     ".asciz \"shop\"\n.asciz \"" name "\"\n.asciz \"\"\n994: .balign 4\n.popsection\n" ::: "memory")
__asm__(".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n.weak _.stapsdt.base\n.hidden _.stapsdt.base\n"
        "_.stapsdt.base: .space 1\n.size _.stapsdt.base, 1\n.popsection\n");

#define COUNTER __attribute__((section(".probes"), used, visibility("hidden")))
COUNTER volatile unsigned short begun = 0, done = 0, failed = 0;

static long orders;
static volatile uint64_t sink;

NAMED static void encrypt(void) { sink += burn(20000000, 2); }
NAMED static void render(void) { sink += burn(200000, 1); }

NAMED static void take(void)
{
    PROBE("page__start", "0");
    if (begun)
        PROBE("order__start", "begun");
}

NAMED static void hand_over(long number)
{
    if (number % 10 == 9) {
        if (failed)
            PROBE("order__failed", "failed");
    } else if (done)
        PROBE("order__done", "done");
}

NAMED static void show(void) { PROBE("page__done", "0"); }

static void *customer(void *unused)
{
    hand_over(0);
    for (long number = 0; number < orders; number++) {
        take();
        if (number % 5 == 0 && begun)
            PROBE("order__start", "begun");
        render();
        show();
        if (number % 100 == 99)
            encrypt();
        hand_over(number);
    }
    return NULL;
}

static void all_orders(long threads)
{
    pthread_t customers[64];
    for (long i = 0; i < threads; i++)
        must(pthread_create(&customers[i], NULL, customer, NULL), "pthread_create");
    for (long i = 0; i < threads; i++)
        pthread_join(customers[i], NULL);
}

int main(int argc, char **argv)
{
    long threads = argument(argc, argv, 1, 2);
    must(threads > 64 ? 22 : 0, "threads");
    orders = argument(argc, argv, 2, 500);
    if (getenv("WORKLOAD_WAIT") == NULL)
        return all_orders(threads), 0;
    puts("ready");
    fflush(stdout);
    for (char line[16]; fgets(line, sizeof line, stdin) != NULL; fflush(stdout)) {
        if (strcmp(line, "look\n") != 0)
            all_orders(threads);
        printf("counters %d %d %d\n", begun, done, failed);
    }
    return 0;
}
