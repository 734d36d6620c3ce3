/* One function that is called rarely and takes long. Another one takes as long in all, in bursts of short calls. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define ALONE __attribute__((noinline, noclone))

static unsigned spin(unsigned x, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        x = x * 1664525u + 1013904223u;
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}
ALONE unsigned often(unsigned x)
{
    return spin(x, 300) + 1;
}
ALONE unsigned seldom(unsigned x)
{
    return spin(x, 10000000) + 1;
}
static void *worker(void *word)
{
    unsigned x = (unsigned)(size_t)word;
    for (;;) {
        x = seldom(x);
        for (int i = 0; i < 30000; i++)
            x = often(x);
    }
    return 0;
}
int main(void)
{
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, worker, (void *)i);
    puts("started");
    fflush(stdout);
    pthread_join(threads[0], 0);
    return 0;
}
