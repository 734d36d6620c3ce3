/* Pairs of threads, each pair on a CPU of its own, hand over by a futex at a given rate, for a given time; what is more
   than that they sleep through. Prints how many hand-overs there were.
   usage: flood [hand-overs a second 170000] [milliseconds 1000] [pairs 1] */
#define _GNU_SOURCE
#include "common.h"
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

struct pair {
    _Atomic uint32_t turn;
    _Atomic int done;
    long number, handovers;
    char apart[128];
};

static long rate, milliseconds, pairs;

static void pass_on(struct pair *pair, uint32_t own)
{
    atomic_store(&pair->turn, !own);
    syscall(SYS_futex, &pair->turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void wait_for_turn(struct pair *pair, uint32_t own)
{
    while (atomic_load(&pair->turn) != own && !atomic_load(&pair->done))
        syscall(SYS_futex, &pair->turn, FUTEX_WAIT_PRIVATE, !own, NULL, NULL, 0);
}

static void *other(void *argument)
{
    struct pair *pair = argument;
    for (;;) {
        wait_for_turn(pair, 1);
        if (atomic_load(&pair->done))
            return NULL;
        pass_on(pair, 1);
    }
}

static long long now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void *leader(void *argument)
{
    struct pair *pair = argument;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)(pair->number % sysconf(_SC_NPROCESSORS_ONLN)), &one);
    sched_setaffinity(0, sizeof one, &one);
    pthread_t thread;
    must(pthread_create(&thread, NULL, other, pair), "pthread_create");
    long long start = now_ns(), end = start + milliseconds * 1000000LL, now = start;
    while ((now = now_ns()) < end) {
        long due = (long)((double)(now - start) * (double)rate / (double)pairs / 1e9);
        if (pair->handovers >= due) {
            struct timespec pause = {0, 200000};
            nanosleep(&pause, NULL);
            continue;
        }
        for (int i = 0; i < 50; i++) {
            pass_on(pair, 0);
            wait_for_turn(pair, 0);
            pair->handovers += 2;
        }
    }
    atomic_store(&pair->done, 1);
    pass_on(pair, 0);
    must(pthread_join(thread, NULL), "pthread_join");
    return NULL;
}

int main(int argc, char **argv)
{
    rate = argument(argc, argv, 1, 170000);
    milliseconds = argument(argc, argv, 2, 1000);
    pairs = argument(argc, argv, 3, 1);
    struct pair *all = calloc((size_t)pairs, sizeof *all);
    pthread_t *leaders = calloc((size_t)pairs, sizeof *leaders);
    wait_for_start();
    long handovers = 0;
    for (long i = 0; i < pairs; i++) {
        all[i].number = i;
        must(pthread_create(&leaders[i], NULL, leader, &all[i]), "pthread_create");
    }
    for (long i = 0; i < pairs; i++) {
        must(pthread_join(leaders[i], NULL), "pthread_join");
        handovers += all[i].handovers;
    }
    printf("%ld hand-overs\n", handovers);
    return 0;
}
