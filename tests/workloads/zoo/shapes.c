/* Three functions of six, three and one parts: side by side (apart), the last under a lock that is hot (lock), the same with
   a spin lock (spin), or one behind the other with bounded queues (pipe). Arguments: which, rounds. */
#include "work.h"
#include <pthread.h>

static long rounds;
static volatile uint64_t sink;

WORK(alpha, 120000)
WORK(beta, 60000)
WORK(gamma_, 20000)
WORK(tally, 64000)
WORK(prepare, 30000)

static pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER;
static pthread_spinlock_t spinning;

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t filled, emptied;
    int length, over;
};

static struct queue first = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
static struct queue second = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};

static void put(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->length >= 8)
        pthread_cond_wait(&queue->emptied, &queue->lock);
    queue->length++;
    pthread_cond_signal(&queue->filled);
    pthread_mutex_unlock(&queue->lock);
}

static int take(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->length == 0 && !queue->over)
        pthread_cond_wait(&queue->filled, &queue->lock);
    int got = queue->length > 0;
    queue->length -= got;
    pthread_cond_signal(&queue->emptied);
    pthread_mutex_unlock(&queue->lock);
    return got;
}

static void finish(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->over = 1;
    pthread_cond_broadcast(&queue->filled);
    pthread_mutex_unlock(&queue->lock);
}

static void *apart(void *unused)
{
    for (long i = 0; i < rounds; i++)
        sink = alpha(i + 1) ^ beta(i + 1) ^ gamma_(i + 1);
    return unused;
}

static void *locker(void *unused)
{
    for (long i = 0; i < rounds; i++) {
        pthread_mutex_lock(&hot);
        sink = tally(i + 1);
        pthread_mutex_unlock(&hot);
        sink = prepare(i + 1);
    }
    return unused;
}

static void *spinner(void *unused)
{
    for (long i = 0; i < rounds; i++) {
        pthread_spin_lock(&spinning);
        sink = tally(i + 1);
        pthread_spin_unlock(&spinning);
        sink = prepare(i + 1);
    }
    return unused;
}

static void *reader(void *unused)
{
    for (long i = 0; i < rounds; i++) {
        sink = alpha(i + 1);
        put(&first);
    }
    finish(&first);
    return unused;
}

static void *filter(void *unused)
{
    while (take(&first)) {
        sink = beta(3);
        put(&second);
    }
    finish(&second);
    return unused;
}

static void *writer(void *unused)
{
    while (take(&second))
        sink = gamma_(5);
    return unused;
}

int main(int count, char **words)
{
    const char *which = count > 1 ? words[1] : "apart";
    rounds = argument(count, words, 2, 5000);
    pthread_spin_init(&spinning, 0);
    void *(*apart_of[])(void *) = {apart, apart}, *(*lock_of[])(void *) = {locker, locker, locker, locker};
    void *(*spin_of[])(void *) = {spinner, spinner}, *(*pipe_of[])(void *) = {reader, filter, writer};
    struct {
        const char *name;
        int many;
        void *(**bodies)(void *);
    } all[] = {{"apart", 2, apart_of}, {"lock", 4, lock_of}, {"spin", 2, spin_of}, {"pipe", 3, pipe_of}};
    for (int shape = 0; shape < 4; shape++) {
        if (strcmp(all[shape].name, which) != 0)
            continue;
        pthread_t threads[4];
        for (int i = 0; i < all[shape].many; i++)
            pthread_create(&threads[i], NULL, all[shape].bodies[i], NULL);
        for (int i = 0; i < all[shape].many; i++)
            pthread_join(threads[i], NULL);
    }
    puts(which);
}
