/* Four threads that compute a little in a chain of calls and sleep a little, without frame pointers. The program
   ends after the number of seconds in its argument. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned long sum;
static long end_s;

__attribute__((noinline)) static void leaf_work(void) {
    for (int i = 0; i < 200000; i++) sum += i;
}

__attribute__((noinline)) static void middle_work(int depth) {
    if (depth > 0) middle_work(depth - 1);
    else leaf_work();
    sum++;
}

static void *outer_work(void *unused) {
    (void)unused;
    struct timespec now, pause = {0, 500000};
    do {
        middle_work(3);
        nanosleep(&pause, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec < end_s);
    return NULL;
}

int main(int count, char **arguments) {
    pthread_t threads[4];
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    end_s = now.tv_sec + (count > 1 ? atoi(arguments[1]) : 1);
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, outer_work, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    return 0;
}
