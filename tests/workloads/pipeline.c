/* Three stages with bounded buffers between them; the middle one is the slow one, so that on two CPUs or more the
   critical path is made of StageTransform.
   usage: pipeline [items 401] [buffer 4] [units 100000]; Transform works five times the units of its neighbours. */
#include "common.h"

enum { MOST = 1024 };

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t not_empty, not_full;
    uint64_t items[MOST];
    long first, count;
};

static struct queue parsed = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, {0}, 0, 0};
static struct queue transformed = {
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, {0}, 0, 0};
static long items, bound;
static uint64_t units;

static void put(struct queue *queue, uint64_t item)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->count == bound)
        pthread_cond_wait(&queue->not_full, &queue->lock);
    queue->items[(queue->first + queue->count++) % bound] = item;
    pthread_cond_signal(&queue->not_empty);
    pthread_mutex_unlock(&queue->lock);
}

static uint64_t take(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->count == 0)
        pthread_cond_wait(&queue->not_empty, &queue->lock);
    uint64_t item = queue->items[queue->first];
    queue->first = (queue->first + 1) % bound;
    queue->count--;
    pthread_cond_signal(&queue->not_full);
    pthread_mutex_unlock(&queue->lock);
    return item;
}

static NAMED uint64_t StageParse(uint64_t item)
{
    return burn(units, item + 1);
}

static NAMED uint64_t StageTransform(uint64_t item)
{
    return burn(5 * units, item);
}

static NAMED uint64_t StageWrite(uint64_t item)
{
    return burn(units, item);
}

static void *parse(void *argument)
{
    (void)argument;
    for (long i = 0; i < items; i++)
        put(&parsed, StageParse((uint64_t)i));
    return NULL;
}

static void *transform(void *argument)
{
    (void)argument;
    for (long i = 0; i < items; i++)
        put(&transformed, StageTransform(take(&parsed)));
    return NULL;
}

int main(int argc, char **argv)
{
    items = argument(argc, argv, 1, 401);
    bound = argument(argc, argv, 2, 4);
    units = (uint64_t)argument(argc, argv, 3, 100000);
    if (bound < 1 || bound > MOST)
        must(22, "pipeline");
    wait_for_start();
    pthread_t first, second;
    must(pthread_create(&first, NULL, parse, NULL), "pthread_create");
    must(pthread_create(&second, NULL, transform, NULL), "pthread_create");
    uint64_t sum = 0;
    for (long i = 0; i < items; i++)
        sum ^= StageWrite(take(&transformed));
    must(pthread_join(first, NULL), "pthread_join");
    must(pthread_join(second, NULL), "pthread_join");
    printf("%ld items, %016llx\n", items, (unsigned long long)sum);
    return 0;
}
