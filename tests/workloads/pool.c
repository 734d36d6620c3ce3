/* A pool of threads with futures: the main thread hands out tasks of different sizes through one queue, and waits for
   each result in order; a task's result is a future of its own.
   usage: pool [threads 4] [tasks 300] [units 200000] */
#include "common.h"

enum { MOST = 64 };

struct future {
    pthread_mutex_t lock;
    pthread_cond_t done;
    int ready;
    uint64_t result;
    long number;
    struct future *next;
};

static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static struct future *first, **last = &first;
static uint64_t units;

/* From half a unit to one and a half. */
static NAMED uint64_t Task(long number)
{
    return burn(units * (50 + (uint64_t)(number * 31 % 101)) / 100, (uint64_t)number + 1);
}

static NAMED uint64_t Combine(uint64_t sum, uint64_t result)
{
    return sum ^ burn(units / 20, result | 1);
}

static void submit(struct future *future)
{
    pthread_mutex_lock(&queue);
    *last = future;
    last = &future->next;
    pthread_cond_signal(&not_empty);
    pthread_mutex_unlock(&queue);
}

static void *worker(void *argument)
{
    (void)argument;
    for (;;) {
        pthread_mutex_lock(&queue);
        while (first == NULL)
            pthread_cond_wait(&not_empty, &queue);
        struct future *future = first;
        first = future->next;
        if (first == NULL)
            last = &first;
        pthread_mutex_unlock(&queue);
        if (future->number < 0)
            return NULL;
        uint64_t result = Task(future->number);
        pthread_mutex_lock(&future->lock);
        future->result = result;
        future->ready = 1;
        pthread_cond_signal(&future->done);
        pthread_mutex_unlock(&future->lock);
    }
}

static uint64_t get(struct future *future)
{
    pthread_mutex_lock(&future->lock);
    while (!future->ready)
        pthread_cond_wait(&future->done, &future->lock);
    uint64_t result = future->result;
    pthread_mutex_unlock(&future->lock);
    return result;
}

int main(int argc, char **argv)
{
    long threads = argument(argc, argv, 1, 4), tasks = argument(argc, argv, 2, 300);
    units = (uint64_t)argument(argc, argv, 3, 200000);
    if (threads < 1 || threads > MOST) {
        fprintf(stderr, "%s: from 1 to %d threads\n", argv[0], MOST);
        return 2;
    }
    struct future *futures = calloc((size_t)(tasks + threads), sizeof *futures);
    if (futures == NULL)
        must(12, "calloc");
    wait_for_start();
    pthread_t ids[MOST];
    for (long i = 0; i < threads; i++)
        must(pthread_create(&ids[i], NULL, worker, NULL), "pthread_create");
    for (long i = 0; i < tasks + threads; i++) {
        pthread_mutex_init(&futures[i].lock, NULL);
        pthread_cond_init(&futures[i].done, NULL);
        futures[i].number = i < tasks ? i : -1;
        submit(&futures[i]);
    }
    uint64_t sum = 0;
    for (long i = 0; i < tasks; i++)
        sum = Combine(sum, get(&futures[i]));
    for (long i = 0; i < threads; i++)
        must(pthread_join(ids[i], NULL), "pthread_join");
    printf("%ld tasks, %llx\n", tasks, (unsigned long long)sum);
    return 0;
}
