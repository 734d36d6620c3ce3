/* Work stealing: every thread has a double-ended queue of its own, splits a range until it is small, works on one half
   and leaves the other to itself or to a thief. Who steals from whom is another matter on every number of CPUs.
   usage: stealing [threads 4] [units in all 40000000] [smallest part 100000] */
#include "common.h"
#include <sched.h>
#include <stdatomic.h>

enum { MOST = 64, ROOM = 256 };

struct deque {
    pthread_mutex_t lock;
    long parts[ROOM];
    int first, count;
};

static struct deque deques[MOST];
static long threads, smallest;
static atomic_long left;
static volatile uint64_t sink;

static NAMED void Leaf(long units)
{
    sink = burn((uint64_t)units, 23);
}

static void push(struct deque *deque, long units)
{
    pthread_mutex_lock(&deque->lock);
    deque->parts[(deque->first + deque->count++) % ROOM] = units;
    pthread_mutex_unlock(&deque->lock);
}

/* Its owner takes the newest, a thief the oldest part. */
static long take(struct deque *deque, int own)
{
    long units = 0;
    pthread_mutex_lock(&deque->lock);
    if (deque->count > 0) {
        units = deque->parts[(deque->first + (own ? deque->count - 1 : 0)) % ROOM];
        deque->first = (deque->first + !own) % ROOM;
        deque->count--;
    }
    pthread_mutex_unlock(&deque->lock);
    return units;
}

static void *worker(void *argument)
{
    long number = (long)argument;
    while (atomic_load(&left) > 0) {
        long units = take(&deques[number], 1);
        for (long i = 1; units == 0 && i < threads; i++)
            units = take(&deques[(number + i) % threads], 0);
        if (units == 0) {
            sched_yield();
            continue;
        }
        while (units > smallest) {
            push(&deques[number], units / 2);
            units -= units / 2;
        }
        Leaf(units);
        atomic_fetch_sub(&left, units);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    threads = argument(argc, argv, 1, 4);
    long units = argument(argc, argv, 2, 40000000);
    smallest = argument(argc, argv, 3, 100000);
    if (threads < 1 || threads > MOST || smallest < 1) {
        fprintf(stderr, "%s: from 1 to %d threads, parts of at least 1\n", argv[0], MOST);
        return 2;
    }
    for (long i = 0; i < threads; i++)
        pthread_mutex_init(&deques[i].lock, NULL);
    atomic_store(&left, units);
    push(&deques[0], units);
    wait_for_start();
    pthread_t ids[MOST];
    for (long i = 0; i < threads; i++)
        must(pthread_create(&ids[i], NULL, worker, (void *)i), "pthread_create");
    for (long i = 0; i < threads; i++)
        must(pthread_join(ids[i], NULL), "pthread_join");
    printf("%ld units\n", units);
    return 0;
}
