/* 16 threads that only compute, each the same amount, some calls deep. Prints the CPU time of all of them in ns. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 16, DEPTH = 20 };

static long rounds;

__attribute__((noinline)) static unsigned work(unsigned x, int depth)
{
    if (depth > 0)
        return work(x, depth - 1) * 2 + 1;
    for (int i = 0; i < 20000; i++) {
        x = x * 1664525u + 1013904223u;
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}

static void *thread(void *start)
{
    unsigned x = (unsigned)(size_t)start;
    for (long i = 0; i < rounds; i++)
        x += work(x, DEPTH);
    return (void *)(size_t)x;
}

int main(int count, char **words)
{
    pthread_t threads[THREADS];
    rounds = count > 1 ? atol(words[1]) : 1000;
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, thread, (void *)i);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    printf("%lld ns\n", (long long)t.tv_sec * 1000000000 + t.tv_nsec);
    return 0;
}
