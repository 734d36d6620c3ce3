/* So many threads at once, each of which takes and gives back two recursive mutexes of its own (or the two that all share)
   in turn: operations that nobody folds. All begin together, and after 200 operations each sleeps, if it is to. Prints how
   many operations on mutexes they made, setting them up and all.
   usage: many_lockers [threads 600] [milliseconds 1000] [1: all share the mutexes] [microseconds of sleep 0] */
#include "common.h"
#include <stdatomic.h>
#include <time.h>

struct mutexes { pthread_mutex_t first, second; char apart[128]; };

static struct mutexes *all;
static long threads, milliseconds, shared, pause_us;
static atomic_long operations, there;
static atomic_int go;

static long long now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void *work(void *argument)
{
    struct mutexes *own = &all[shared ? 0 : (long)argument];
    atomic_fetch_add(&there, 1);
    while (!atomic_load(&go)) {
        struct timespec pause = {0, 2000000};
        nanosleep(&pause, NULL);
    }
    long long end = now_ns() + milliseconds * 1000000LL;
    long made = 0;
    do {
        for (int i = 0; i < 50; i++) {
            pthread_mutex_lock(&own->first);
            pthread_mutex_unlock(&own->first);
            pthread_mutex_lock(&own->second);
            pthread_mutex_unlock(&own->second);
        }
        made += 200;
        if (pause_us)
            usleep((useconds_t)pause_us);
    } while (now_ns() < end);
    atomic_fetch_add(&operations, made);
    return NULL;
}

int main(int argc, char **argv)
{
    threads = argument(argc, argv, 1, 600);
    milliseconds = argument(argc, argv, 2, 1000);
    shared = argument(argc, argv, 3, 0);
    pause_us = argument(argc, argv, 4, 0);
    all = calloc((size_t)threads, sizeof *all);
    pthread_t *numbers = calloc((size_t)threads, sizeof *numbers);
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    for (long i = 0; i < threads; i++) {
        pthread_mutex_init(&all[i].first, &recursive);
        pthread_mutex_init(&all[i].second, &recursive);
    }
    wait_for_start();
    for (long i = 0; i < threads; i++)
        must(pthread_create(&numbers[i], NULL, work, (void *)i), "pthread_create");
    while (atomic_load(&there) < threads) {
        struct timespec pause = {0, 2000000};
        nanosleep(&pause, NULL);
    }
    atomic_store(&go, 1);
    for (long i = 0; i < threads; i++)
        must(pthread_join(numbers[i], NULL), "pthread_join");
    printf("%ld operations\n", atomic_load(&operations) + 2 * threads);
    return 0;
}
