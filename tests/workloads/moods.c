/* A program that changes its ways: it computes, then calls many small functions, none of them often, then takes and gives
   back a mutex all the time, and so on, each for so long. Every 100 ms it prints which of these it is at, how much it has
   done of that since the last line, and how much CPU time that took, in nanoseconds.
   usage: moods [milliseconds of each 2000] [how many 3] */
#include "common.h"
#include <time.h>

static volatile uint64_t sink;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

NAMED void Compute(void)
{
    sink = burn(20000, sink | 1);
}

#define SMALL(n) NAMED void Small##n(void) { sink = burn(400, sink | (n + 1)); }
#define TEN(n) SMALL(n##0) SMALL(n##1) SMALL(n##2) SMALL(n##3) SMALL(n##4) SMALL(n##5) SMALL(n##6) SMALL(n##7) SMALL(n##8) SMALL(n##9)
TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9) TEN(10) TEN(11) TEN(12) TEN(13) TEN(14) TEN(15) TEN(16)
TEN(17) TEN(18) TEN(19) TEN(20) TEN(21) TEN(22) TEN(23) TEN(24) TEN(25) TEN(26) TEN(27) TEN(28) TEN(29) TEN(30) TEN(31) TEN(32)
#define CALL(n) Small##n();
#define CALLS(n) CALL(n##0) CALL(n##1) CALL(n##2) CALL(n##3) CALL(n##4) CALL(n##5) CALL(n##6) CALL(n##7) CALL(n##8) CALL(n##9)

NAMED void CallMany(void)
{
    CALLS(1) CALLS(2) CALLS(3) CALLS(4) CALLS(5) CALLS(6) CALLS(7) CALLS(8) CALLS(9) CALLS(10) CALLS(11) CALLS(12) CALLS(13) CALLS(14) CALLS(15) CALLS(16)
    CALLS(17) CALLS(18) CALLS(19) CALLS(20) CALLS(21) CALLS(22) CALLS(23) CALLS(24) CALLS(25) CALLS(26) CALLS(27) CALLS(28) CALLS(29) CALLS(30) CALLS(31) CALLS(32)
}

NAMED void LockAndUnlock(void)
{
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&lock);
        sink = burn(400, sink | 1);
        pthread_mutex_unlock(&lock);
        sink = burn(400, sink | 1);
    }
}

static long long now_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* A mutex of a program with one thread may be passed over. */
static void *wait_for_the_end(void *end)
{
    pthread_mutex_lock(end);
    pthread_mutex_unlock(end);
    return NULL;
}

int main(int argc, char **argv)
{
    static void (*const ways[])(void) = { Compute, CallMany, LockAndUnlock };
    long each_ms = argument(argc, argv, 1, 2000), count = argument(argc, argv, 2, 3);
    static pthread_mutex_t end = PTHREAD_MUTEX_INITIALIZER;
    pthread_t other;
    pthread_mutex_lock(&end);
    must(pthread_create(&other, NULL, wait_for_the_end, &end), "pthread_create");
    for (long way = 0; way < count; way++) {
        for (long line = 0; line < each_ms / 100; line++) {
            long long from = now_ns(CLOCK_MONOTONIC), cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID), done = 0;
            while (now_ns(CLOCK_MONOTONIC) - from < 100000000) {
                ways[way % 3]();
                done++;
            }
            printf("%ld %lld %lld\n", way % 3, done, now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu);
            fflush(stdout);
        }
    }
    pthread_mutex_unlock(&end);
    pthread_join(other, NULL);
    return 0;
}
