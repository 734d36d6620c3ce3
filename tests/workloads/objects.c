/* Objects of every kind of name: a global lock, members of a global table and
   of a structure in a structure, 8 locks on the heap that are initialized
   on one line, 3 more without initialization function, and one that dies and is born again at its address.
   usage: objects [rounds 11] */
#include "common.h"

struct bucket {
    long count;
    pthread_mutex_t lock;
};

pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static struct bucket table[4];
static struct {
    long count;
    struct {
        char waiting[24];
        pthread_mutex_t mutex;
    } queue;
} pool;
static pthread_rwlock_t config_lock = PTHREAD_RWLOCK_INITIALIZER;

NAMED static void use(pthread_mutex_t *lock)
{
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
}

int main(int argc, char **argv)
{
    long rounds = argument(argc, argv, 1, 11);
    wait_for_start();
    struct bucket *heap = calloc(8, sizeof *heap);
    pthread_mutex_t *plain = calloc(3, sizeof *plain);
    for (int i = 0; i < 8; i++)
        pthread_mutex_init(&heap[i].lock, NULL); /* the line of the heap */
    for (long round = 0; round < rounds; round++) {
        pthread_mutex_lock(&queue_lock);
        pthread_mutex_unlock(&queue_lock);
        use(&table[2].lock);
        use(&pool.queue.mutex);
        for (int i = 0; i < 8; i++)
            use(&heap[i].lock);
        for (int i = 0; i < 3; i++) {
            pthread_mutex_lock(&plain[i]); /* the line of the plain ones */
            pthread_mutex_unlock(&plain[i]);
        }
        pthread_rwlock_rdlock(&config_lock);
        pthread_rwlock_unlock(&config_lock);
    }
    for (int life = 0; life < 2; life++) {
        pthread_mutex_init(&table[3].lock, NULL);
        use(&table[3].lock);
        pthread_mutex_destroy(&table[3].lock);
    }
    printf("%ld rounds\n", rounds);
    return 0;
}
