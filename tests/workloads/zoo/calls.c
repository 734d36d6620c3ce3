/* Two threads that call a small function a million times a second. usage: calls [thousands of calls of a thread 2000] */
#include <pthread.h>

#include "work.h"

WORK(small_step, 900)

static long thousands;

static void *caller(void *seed)
{
    uint64_t state = (uintptr_t)seed;
    for (long left = thousands * 1000; left > 0; left--)
        state = small_step(state);
    return (void *)(uintptr_t)state;
}

int main(int count, char **words)
{
    pthread_t threads[2];
    uint64_t sum = 0;
    thousands = argument(count, words, 1, 2000);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, caller, (void *)(uintptr_t)(i + 1));
    for (int i = 0; i < 2; i++) {
        void *state;
        pthread_join(threads[i], &state);
        sum += (uintptr_t)state;
    }
    printf("%llu\n", (unsigned long long)sum);
}
