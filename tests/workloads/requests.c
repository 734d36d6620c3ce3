/* A server: clients call serve() and sleep until a thread of a pool has answered. One request in a hundred is slow, all for the
   same reason: it computes more, a lock is held, it waits for the disk, many come at once, or another thread has its CPU.
   usage: requests compute|lock|disk|queue|cpu [requests 4000] [file] */
#define _GNU_SOURCE
#define BURN_IN_CALLER
#include "common.h"
#include <fcntl.h>
#include <semaphore.h>
#include <sys/prctl.h>

enum { WORKERS = 2, CLIENTS = 2, CROWD = 64, SLOW = 5000000, USUAL = 100000 };

static struct job { long number; int is_done; pthread_cond_t answered; struct job *next; } *first, **last = &first;
static long requests, reason, file;
static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER, table = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t together;
static sem_t wanted, held;
static volatile uint64_t sink;

NAMED static void render(void) { sink += burn(USUAL, 1); }
NAMED static void encrypt(void) { sink += burn(SLOW, 2); }
NAMED static void rebuild(void) { sink += burn(SLOW, 3); }
NAMED static void look_up(void) { pthread_mutex_lock(&table), sink += burn(USUAL / 10, 5), pthread_mutex_unlock(&table); }

NAMED static void store(void)
{
    static char block[1 << 20];
    for (int i = 0; i < 4; i++)
        must(pwrite(file, block, sizeof block, 0) != sizeof block || fdatasync(file) != 0, "store");
}

/* Takes the lock, or the workers' CPU, when it is asked for that. */
static void *keeper(void *unused)
{
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER, *lock = reason == 'l' ? &table : &own;
    prctl(PR_SET_NAME, "keeper");
    if (reason == 'p')
        sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
    for (;;) {
        sem_wait(&wanted);
        pthread_mutex_lock(lock);
        sem_post(&held);
        rebuild();
        pthread_mutex_unlock(lock);
    }
}

static void *worker(void *unused)
{
    prctl(PR_SET_NAME, "worker");
    for (;;) {
        pthread_mutex_lock(&queue);
        while (first == NULL)
            pthread_cond_wait(&arrived, &queue);
        struct job *job = first;
        last = (first = job->next) == NULL ? &first : last;
        pthread_mutex_unlock(&queue);
        switch (job->number % 100 == 99 ? reason : 0) {
        case 'c': encrypt(); break;
        case 'd': store(); break;
        case 'l': case 'p': sem_post(&wanted), sem_wait(&held);
        }
        look_up();
        render();
        pthread_mutex_lock(&queue);
        job->is_done = 1;
        pthread_cond_signal(&job->answered);
        pthread_mutex_unlock(&queue);
    }
}

NAMED void serve(long number)
{
    struct job job = {.number = number, .answered = PTHREAD_COND_INITIALIZER};
    pthread_mutex_lock(&queue);
    *last = &job, last = &job.next;
    pthread_cond_signal(&arrived);
    while (!job.is_done)
        pthread_cond_wait(&job.answered, &queue);
    pthread_mutex_unlock(&queue);
}

static void *client(void *own)
{
    long client = (long)own, all = requests / CLIENTS;
    prctl(PR_SET_NAME, "client");
    /* Of a crowd one comes alone, and now and then all come together. */
    for (long round = 0; round < all; round++) {
        if (reason == 'q' && round % 1000 == 999)
            pthread_barrier_wait(&together);
        else if (reason == 'q' && client > 0)
            continue;
        serve(client * all + round);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[CROWD], other;
    cpu_set_t one = {0};
    reason = argc < 2 ? 'c' : strcmp(argv[1], "cpu") == 0 ? 'p' : argv[1][0];
    requests = argument(argc, argv, 2, 4000);
    file = argc > 3 ? open(argv[3], O_RDWR | O_CREAT, 0600) : -1;
    pthread_barrier_init(&together, NULL, CROWD);
    wait_for_start();
    for (long i = 0, clients = reason == 'q' ? CROWD : CLIENTS; i < clients; i++)
        must(pthread_create(&threads[i], NULL, client, (void *)i), "client");
    CPU_SET(sched_getcpu(), &one);
    if (reason == 'p')
        sched_setaffinity(0, sizeof one, &one);
    must(pthread_create(&other, NULL, keeper, NULL), "keeper");
    for (int i = 0; i < WORKERS; i++)
        must(pthread_create(&other, NULL, worker, NULL), "worker");
    for (long i = 0, clients = reason == 'q' ? CROWD : CLIENTS; i < clients; i++)
        must(pthread_join(threads[i], NULL), "client");
    return 0;
}
