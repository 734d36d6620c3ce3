/* The watchdog of Broberg, Lundberg and Grahn 2001, section 6, Fig. 20: one thread computes for 12 units, a second one
   wakes up every second unit, five times, and computes for one. On one CPU the watchdog is a part of the time it takes;
   on two it runs beside the rest, and making it faster gains nothing.
   usage: watchdog [milliseconds of a unit 20] */
#include "common.h"
#include <time.h>

enum { WORK = 12, WAKES = 5, EVERY = 2 };

static uint64_t units;
static long unit_ms;
static volatile uint64_t sink;

static NAMED void Work(void)
{
    for (int i = 0; i < WORK; i++)
        sink = burn(units, 11);
}

static NAMED void Watch(void)
{
    sink = burn(units, 13);
}

static void *watchdog(void *argument)
{
    (void)argument;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (int i = 0; i < WAKES; i++) {
        next.tv_nsec += EVERY * unit_ms * 1000000;
        while (next.tv_nsec >= 1000000000) {
            next.tv_nsec -= 1000000000;
            next.tv_sec++;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
        Watch();
    }
    return NULL;
}

int main(int argc, char **argv)
{
    unit_ms = argument(argc, argv, 1, 20);
    /* What a unit of burn takes, so that sleeping and computing are of one measure. */
    struct timespec before, after;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    sink = burn(10000000, 17);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    double ns = (double)(after.tv_sec - before.tv_sec) * 1e9 + (double)(after.tv_nsec - before.tv_nsec);
    units = (uint64_t)((double)unit_ms * 1e6 * 1e7 / ns);
    wait_for_start();
    pthread_t id;
    must(pthread_create(&id, NULL, watchdog, NULL), "pthread_create");
    Work();
    must(pthread_join(id, NULL), "pthread_join");
    printf("%d units of work, watched %d times\n", WORK, WAKES);
    return 0;
}
