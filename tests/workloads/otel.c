/* Requests whose traces the threads publish as OpenTelemetry's thread context (OTEP 4947). Two workers take orders from a queue, and a
   courier delivers them: so each trace is in two threads, one after the other. An order computes for 1 ms and sleeps for 1 ms twice; one in
   ten sleeps 30 ms more, in `settle`. Each has two spans. Workers change the pointer to their records, the courier marks his as invalid.
   usage: otel [orders 200] [library]
   -DLIBRARY: only the variable, for a library. -DLINKED: the variable is in a library that is linked. -DLOADED: in one that is loaded later. */
#define BURN_IN_CALLER
#include "common.h"
#include <dlfcn.h>
#include <poll.h>
#include <sys/timerfd.h>

typedef struct {
    uint8_t trace[16], span[8], valid, flags;
    uint16_t attributes;
} Record;
_Static_assert(sizeof(Record) == 28, "as the specification has it");

#if defined(LIBRARY) || !defined(LINKED) && !defined(LOADED)
#ifdef BIG
/* More than the room that glibc has for libraries which come later. */
__thread char fill[1 << 16] = {1};
#endif
__attribute__((visibility("default"))) __thread Record *volatile otel_thread_ctx_v1;
void publish(Record *record) { otel_thread_ctx_v1 = record; }
#elif defined(LINKED)
void publish(Record *record);
#else
static void (*publish)(Record *);
#endif

#ifndef LIBRARY
enum { MOST = 4096, WORKERS = 2 };

/* Orders, or what the workers made of them. */
typedef struct {
    pthread_mutex_t gate;
    pthread_cond_t more;
    long orders[MOST], count, taken;
    int closed;
} Queue;

static Queue shop = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER};
static Queue packed = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER};
static volatile uint64_t sink;
/* Nothing comes from the pipe. */
static int silent[2], timer;

static void put(Queue *queue, long order)
{
    pthread_mutex_lock(&queue->gate);
    queue->orders[queue->count++] = order;
    pthread_cond_signal(&queue->more);
    pthread_mutex_unlock(&queue->gate);
}

static void close_queue(Queue *queue)
{
    pthread_mutex_lock(&queue->gate);
    queue->closed = 1;
    pthread_cond_broadcast(&queue->more);
    pthread_mutex_unlock(&queue->gate);
}

/* -1: there will be no more. */
static long take(Queue *queue)
{
    pthread_mutex_lock(&queue->gate);
    while (queue->taken == queue->count && !queue->closed)
        pthread_cond_wait(&queue->more, &queue->gate);
    long order = queue->taken < queue->count ? queue->orders[queue->taken++] : -1;
    pthread_mutex_unlock(&queue->gate);
    return order;
}


static void fill_in(Record *record, long order, uint8_t span)
{
    memset(record, 0, sizeof *record);
    memcpy(record->trace, "order", 5);
    record->trace[14] = order >> 8;
    record->trace[15] = order;
    record->span[7] = span;
    record->flags = 1;
}

/* Each sleeps in a call of its own, by which its sleeps are known without a sample of each. */
NAMED static void pack(void) { sink += burn(1000000, 1); usleep(1000); }
NAMED static void settle(void) { poll(&(struct pollfd){.fd = silent[0], .events = POLLIN}, 1, 30); sink++; }
NAMED static void deliver(void)
{
    uint64_t times;
    timerfd_settime(timer, 0, &(struct itimerspec){.it_value = {0, 1000000}}, NULL);
    sink += read(timer, &times, sizeof times);
}

static void *worker(void *unused)
{
    Record whole, part;
    for (long order; (order = take(&shop)) >= 0;) {
        fill_in(&whole, order, 1);
        fill_in(&part, order, 2);
        whole.valid = part.valid = 1;
        publish(&whole);
        pack();
        publish(&part);
        if (order % 10 == 9)
            settle();
        publish(NULL);
        put(&packed, order);
    }
    return NULL;
}

static void *courier(void *unused)
{
    static Record own;
    publish(&own);
    for (long order; (order = take(&packed)) >= 0;) {
        fill_in(&own, order, 3);
        __atomic_store_n(&own.valid, 1, __ATOMIC_RELEASE);
        deliver();
        __atomic_store_n(&own.valid, 0, __ATOMIC_RELEASE);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    long orders = argument(argc, argv, 1, 200);
    must(orders > MOST ? 22 : 0, "orders");
#ifdef LOADED
    void *library = argc > 2 ? dlopen(argv[2], RTLD_NOW) : NULL;
    publish = library == NULL ? NULL : (void (*)(Record *))dlsym(library, "publish");
    must(publish == NULL ? 2 : 0, "the library");
#endif
    timer = timerfd_create(CLOCK_MONOTONIC, 0);
    must(pipe(silent) != 0 || timer < 0 ? 24 : 0, "descriptors");
    /* A tracer finds the variable of a library some milliseconds after it is loaded. */
    usleep(200000);
    pthread_t workers[WORKERS], last;
    must(pthread_create(&last, NULL, courier, NULL), "pthread_create");
    for (int i = 0; i < WORKERS; i++)
        must(pthread_create(&workers[i], NULL, worker, NULL), "pthread_create");
    wait_for_start();
    for (long order = 0; order < orders; order++)
        put(&shop, order);
    close_queue(&shop);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    close_queue(&packed);
    pthread_join(last, NULL);
    return 0;
}
#endif
