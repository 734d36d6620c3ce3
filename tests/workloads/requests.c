/* A server: clients call serve() and sleep until a thread of a pool has answered. One request in a hundred is slow, all for the
   same reason: it computes more, a lock is held, it waits for the disk, many come at once, or another thread has its CPU.
   usage: requests compute|lock|disk|queue|cpu [requests 4000] [file] */
#define _GNU_SOURCE
#include "common.h"

#include <fcntl.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/prctl.h>

enum { WORKERS = 2, CLIENTS = 2, CROWD = 16, SLOW = 5000000, USUAL = 100000 };

struct job {
    long number;
    int is_done;
    pthread_cond_t answered;
    struct job *next;
};

static char reason;
static long requests;
static int file;
static struct job *first, **last = &first;
static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER, table = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t together;
static sem_t wanted, held;
static volatile uint64_t sink;

NAMED static void render(void) { sink += burn(USUAL, 1); }
NAMED static void encrypt(void) { sink += burn(SLOW, 2); }
NAMED static void rebuild(void) { sink += burn(SLOW, 3); }

NAMED static void store(long number)
{
    if (pwrite(file, &number, sizeof number, 0) != sizeof number || fdatasync(file) != 0)
        abort();
}

NAMED static void look_up(void)
{
    pthread_mutex_lock(&table);
    sink += burn(USUAL / 10, 5);
    pthread_mutex_unlock(&table);
}

/* Takes the lock, or the workers' CPU, when it is asked for that. */
static void *keeper(void *unused)
{
    struct sched_param most = {.sched_priority = 1};
    prctl(PR_SET_NAME, "keeper");
    if (reason == 'p')
        sched_setscheduler(0, SCHED_FIFO, &most);
    for (;;) {
        sem_wait(&wanted);
        if (reason == 'l')
            pthread_mutex_lock(&table);
        sem_post(&held);
        rebuild();
        if (reason == 'l')
            pthread_mutex_unlock(&table);
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
        if ((first = job->next) == NULL)
            last = &first;
        pthread_mutex_unlock(&queue);
        int is_slow = job->number % 100 == 99;
        if (is_slow && reason == 'c')
            encrypt();
        if (is_slow && reason == 'd')
            store(job->number);
        if (is_slow && (reason == 'l' || reason == 'p')) {
            sem_post(&wanted);
            sem_wait(&held);
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
    *last = &job;
    last = &job.next;
    pthread_cond_signal(&arrived);
    while (!job.is_done)
        pthread_cond_wait(&job.answered, &queue);
    pthread_mutex_unlock(&queue);
}

/* Of a crowd one comes alone, and now and then all come together. */
static void *client(void *own)
{
    long client = (long)own, all = reason == 'q' ? requests : requests / CLIENTS;
    prctl(PR_SET_NAME, "client");
    for (long round = 0; round < all; round++) {
        int is_crowded = reason == 'q' && round % 1000 == 999;
        if (is_crowded)
            pthread_barrier_wait(&together);
        if (is_crowded || reason != 'q' || client == 0)
            serve(client * all + round);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[CROWD], other;
    cpu_set_t cpus;
    reason = argc < 2 ? 'c' : strcmp(argv[1], "cpu") == 0 ? 'p' : argv[1][0];
    requests = argument(argc, argv, 2, 4000);
    if (reason == 'd' && (argc < 4 || (file = open(argv[3], O_RDWR | O_CREAT, 0600)) < 0))
        return 2;
    pthread_barrier_init(&together, NULL, CROWD);
    wait_for_start();
    for (long i = 0; i < (reason == 'q' ? CROWD : CLIENTS); i++)
        must(pthread_create(&threads[i], NULL, client, (void *)i), "client");
    sched_getaffinity(0, sizeof cpus, &cpus);
    for (int cpu = 0, found = 0; reason == 'p' && cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &cpus) && found++ > 0)
            CPU_CLR(cpu, &cpus);
    sched_setaffinity(0, sizeof cpus, &cpus);
    must(pthread_create(&other, NULL, keeper, NULL), "keeper");
    for (int i = 0; i < WORKERS; i++)
        must(pthread_create(&other, NULL, worker, NULL), "worker");
    for (int i = 0; i < (reason == 'q' ? CROWD : CLIENTS); i++)
        must(pthread_join(threads[i], NULL), "client");
    return 0;
}
