/* The n largest h(x) of Broberg, Lundberg and Grahn 2001, section 4.2. h(x) = g(f(x)) with a cheap f and a dear,
   monotone g: each thread finds the n largest f of its part of the numbers, the parts are merged, and g is applied to
   n numbers at the end, by one thread. f's work is 4.5 times that of g, so that f is worth more on up to four CPUs and
   g on more (their Fig. 15).
   usage: nlargest [threads 8] [blocks of 10000 numbers 450] [percent of f's work 100] [percent of g's work 100] */
#include "common.h"

enum { LARGEST = 100, BLOCK = 10000, MOST = 64, F_UNITS = 200, G_UNITS = 4000 };

static long threads, blocks, f_units, g_units;
static uint64_t found[MOST][LARGEST];
static volatile uint64_t sink;

static uint64_t number(uint64_t index)
{
    uint64_t x = index * 0x9e3779b97f4a7c15u;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9u;
    return (x ^ (x >> 32)) & 0xffffff;
}

/* Puts a value into a heap whose smallest element is the first. */
static inline void keep(uint64_t *heap, uint64_t value)
{
    if (value <= heap[0])
        return;
    long at = 0;
    for (;;) {
        long child = 2 * at + 1;
        if (child >= LARGEST)
            break;
        if (child + 1 < LARGEST && heap[child + 1] < heap[child])
            child++;
        if (heap[child] >= value)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = value;
}

/* f(x) = |x + 2 x^2| of a block of numbers, and which of them are among the largest. */
static NAMED void f(long block, uint64_t *heap)
{
    sink = burn((uint64_t)f_units * BLOCK / 10, 1);
    for (long i = 0; i < BLOCK; i++) {
        uint64_t x = number((uint64_t)(block * BLOCK + i));
        keep(heap, x + 2 * x * x);
    }
}

/* g(y), monotone: here y itself, after much work. */
static NAMED uint64_t g(uint64_t y)
{
    sink = burn((uint64_t)g_units * 50, y | 1);
    return y;
}

static void *search(void *argument)
{
    long part = (long)argument;
    for (long block = blocks * part / threads; block < blocks * (part + 1) / threads; block++)
        f(block, found[part]);
    return NULL;
}

int main(int argc, char **argv)
{
    threads = argument(argc, argv, 1, 8);
    blocks = argument(argc, argv, 2, 450);
    f_units = F_UNITS * argument(argc, argv, 3, 100) / 100;
    /* As much of g as belongs to that many numbers. */
    g_units = G_UNITS * argument(argc, argv, 4, 100) / 100 * blocks / 450;
    if (threads < 1 || threads > MOST) {
        fprintf(stderr, "%s: from 1 to %d threads\n", argv[0], MOST);
        return 2;
    }
    wait_for_start();
    pthread_t ids[MOST];
    for (long i = 0; i < threads; i++)
        must(pthread_create(&ids[i], NULL, search, (void *)i), "pthread_create");
    for (long i = 0; i < threads; i++)
        must(pthread_join(ids[i], NULL), "pthread_join");
    for (long i = 1; i < threads; i++)
        for (long j = 0; j < LARGEST; j++)
            keep(found[0], found[i][j]);
    uint64_t sum = 0;
    for (long i = 0; i < LARGEST; i++)
        sum += g(found[0][i]);
    printf("%d largest of %ld: %llx\n", LARGEST, blocks * BLOCK, (unsigned long long)sum);
    return 0;
}
