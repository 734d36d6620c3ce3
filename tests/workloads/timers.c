/* Four threads that work and wait for time, in turns: until a time of the clock, for so long, for a timer that repeats,
   and for one that is set anew each time. Nothing that the first and the third do moves when they are woken.
   usage: timers [rounds 10] [milliseconds of a round 20] [units of work 500000] */
#define _GNU_SOURCE
#include "common.h"
#include <sys/timerfd.h>
#include <time.h>

static long rounds, period_ns;
static uint64_t units;
static volatile uint64_t sink;

static NAMED void Work(void)
{
    sink = burn(units, 7);
}

static struct timespec now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time;
}

static void later(struct timespec *time)
{
    time->tv_nsec += period_ns;
    while (time->tv_nsec >= 1000000000) {
        time->tv_nsec -= 1000000000;
        time->tv_sec++;
    }
}

static void *until(void *argument)
{
    pthread_setname_np(pthread_self(), argument);
    struct timespec next = now();
    for (long round = 0; round < rounds; round++) {
        Work();
        /* On a busy machine some are over before the thread comes to them. */
        struct timespec time = now();
        do
            later(&next);
        while (next.tv_sec < time.tv_sec || (next.tv_sec == time.tv_sec && next.tv_nsec <= time.tv_nsec));
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL) != 0)
            ;
    }
    return NULL;
}

static void *length(void *argument)
{
    pthread_setname_np(pthread_self(), argument);
    struct timespec length = {0, 0};
    later(&length);
    for (long round = 0; round < rounds; round++) {
        Work();
        clock_nanosleep(CLOCK_MONOTONIC, 0, &length, NULL);
    }
    return NULL;
}

static void *timer(void *argument)
{
    pthread_setname_np(pthread_self(), argument);
    int again = strcmp(argument, "again") == 0;
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec setting = {{0, 0}, {0, 0}};
    later(&setting.it_value);
    if (again)
        later(&setting.it_interval);
    uint64_t times;
    for (long round = 0; round < rounds; round++) {
        if (round == 0 || !again)
            must(timerfd_settime(timer, 0, &setting, NULL), "timerfd_settime");
        Work();
        if (read(timer, &times, sizeof times) != sizeof times)
            must(5, "read");
    }
    close(timer);
    return NULL;
}

int main(int argc, char **argv)
{
    rounds = argument(argc, argv, 1, 10);
    period_ns = argument(argc, argv, 2, 20) * 1000000;
    units = (uint64_t)argument(argc, argv, 3, 500000);
    wait_for_start();
    pthread_t ids[4];
    must(pthread_create(&ids[0], NULL, until, "until"), "pthread_create");
    must(pthread_create(&ids[1], NULL, length, "length"), "pthread_create");
    must(pthread_create(&ids[2], NULL, timer, "again"), "pthread_create");
    must(pthread_create(&ids[3], NULL, timer, "once"), "pthread_create");
    for (int i = 0; i < 4; i++)
        must(pthread_join(ids[i], NULL), "pthread_join");
    printf("%ld rounds\n", rounds);
    return 0;
}
