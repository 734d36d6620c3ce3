/* Two threads on one CPU hand over by a futex at a given rate, for a given time or number; what is more than that they
   sleep through. Prints how many hand-overs there were, and how many futex calls did sleep.
   usage: flood [hand-overs a second 170000] [milliseconds 1000] [CPU 0] */
#define _GNU_SOURCE
#include "common.h"
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

static _Atomic uint32_t turn;
static _Atomic int done;
static long handovers;

static void pass_on(uint32_t own)
{
    atomic_store(&turn, !own);
    syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void wait_for_turn(uint32_t own)
{
    while (atomic_load(&turn) != own && !atomic_load(&done))
        syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, !own, NULL, NULL, 0);
}

static void *other(void *unused)
{
    (void)unused;
    for (;;) {
        wait_for_turn(1);
        if (atomic_load(&done))
            return NULL;
        pass_on(1);
    }
}

static long long now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(int argc, char **argv)
{
    long rate = argument(argc, argv, 1, 170000), milliseconds = argument(argc, argv, 2, 1000);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)argument(argc, argv, 3, 0), &one);
    sched_setaffinity(0, sizeof one, &one);
    pthread_t thread;
    must(pthread_create(&thread, NULL, other, NULL), "pthread_create");
    wait_for_start();
    long long start = now_ns(), end = start + milliseconds * 1000000LL, now = start;
    while ((now = now_ns()) < end) {
        long due = (long)((double)(now - start) * (double)rate / 1e9);
        if (handovers >= due) {
            struct timespec pause = {0, 200000};
            nanosleep(&pause, NULL);
            continue;
        }
        for (int i = 0; i < 50; i++) {
            pass_on(0);
            wait_for_turn(0);
            handovers += 2;
        }
    }
    atomic_store(&done, 1);
    pass_on(0);
    must(pthread_join(thread, NULL), "pthread_join");
    printf("%ld hand-overs\n", handovers);
    return 0;
}
