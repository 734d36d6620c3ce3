/* Jobs of two sizes that two functions of the main thread hand to two threads: OrderLarge's take three times as long as
   OrderSmall's. How they are handed over is the first argument; a thread always waits before there is a job.
   usage: submit condition|semaphore|futex|pipe|socket|event|io_uring [jobs 201] [units 600000] */
#define _GNU_SOURCE
#include "common.h"
#include <errno.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

enum { THREADS = 2, MOST = 1024 };

static enum { CONDITION, SEMAPHORE, FUTEX, PIPE, SOCKET, EVENT, IO_URING } how;
static uint64_t units;
static volatile uint64_t sink;
static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static sem_t count;
static int ends[2];
static long jobs[MOST];
static _Atomic uint32_t put, taken, word;

static NAMED void Work(long size)
{
    sink = burn(units * (uint64_t)size, 29);
}

static NAMED void Prepare(void)
{
    sink = burn(units * 3, 31);
}

/* A ring of its own for each thread that waits: it asks for one read at a time. */
struct ring {
    int fd;
    _Atomic uint32_t *sq_tail, *cq_head, *cq_tail;
    uint32_t *array, sq_mask, cq_mask;
    struct io_uring_sqe *requests;
    struct io_uring_cqe *answers;
};

static void ring_open(struct ring *ring)
{
    struct io_uring_params p;
    memset(&p, 0, sizeof p);
    ring->fd = (int)syscall(SYS_io_uring_setup, 4, &p);
    if (ring->fd < 0) {
        perror("io_uring_setup");
        exit(77);
    }
    size_t submit = p.sq_off.array + p.sq_entries * sizeof(uint32_t);
    size_t complete = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
    int shared = MAP_SHARED | MAP_POPULATE;
    char *sq = mmap(NULL, submit, PROT_READ | PROT_WRITE, shared, ring->fd, IORING_OFF_SQ_RING);
    char *cq = mmap(NULL, complete, PROT_READ | PROT_WRITE, shared, ring->fd, IORING_OFF_CQ_RING);
    ring->requests = mmap(NULL, p.sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE, shared, ring->fd,
                          IORING_OFF_SQES);
    ring->sq_tail = (void *)(sq + p.sq_off.tail);
    ring->sq_mask = *(uint32_t *)(sq + p.sq_off.ring_mask);
    ring->array = (void *)(sq + p.sq_off.array);
    ring->cq_head = (void *)(cq + p.cq_off.head);
    ring->cq_tail = (void *)(cq + p.cq_off.tail);
    ring->cq_mask = *(uint32_t *)(cq + p.cq_off.ring_mask);
    ring->answers = (void *)(cq + p.cq_off.cqes);
}

static long ring_read(struct ring *ring)
{
    uint64_t job = 0;
    uint32_t tail = *ring->sq_tail, place = tail & ring->sq_mask;
    struct io_uring_sqe *request = &ring->requests[place];
    memset(request, 0, sizeof *request);
    request->opcode = IORING_OP_READ;
    request->fd = ends[0];
    request->addr = (uint64_t)(uintptr_t)&job;
    request->len = sizeof job;
    ring->array[place] = place;
    atomic_store(ring->sq_tail, tail + 1);
    unsigned submit = 1;
    while (atomic_load(ring->cq_tail) == *ring->cq_head) {
        if (syscall(SYS_io_uring_enter, ring->fd, submit, 1, IORING_ENTER_GETEVENTS, NULL, 0) >= 0)
            submit = 0;
        else if (errno != EINTR)
            exit(2);
    }
    atomic_fetch_add(ring->cq_head, 1);
    return (long)job;
}

static void hand_over(long job)
{
    uint64_t bytes = (uint64_t)job;
    switch (how) {
    case CONDITION:
        pthread_mutex_lock(&queue);
        jobs[put++ % MOST] = job;
        pthread_cond_signal(&filled);
        pthread_mutex_unlock(&queue);
        break;
    case SEMAPHORE:
    case FUTEX:
    case EVENT:
        pthread_mutex_lock(&queue);
        jobs[put++ % MOST] = job;
        pthread_mutex_unlock(&queue);
        if (how == SEMAPHORE) {
            sem_post(&count);
        } else if (how == FUTEX) {
            word++;
            syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        } else {
            uint64_t one = 1;
            must(write(ends[1], &one, sizeof one) != sizeof one, "write");
        }
        break;
    default:
        must(write(ends[1], &bytes, sizeof bytes) != sizeof bytes, "write");
    }
}

static long take_from_queue(void)
{
    pthread_mutex_lock(&queue);
    long job = put == taken ? -1 : jobs[taken++ % MOST];
    pthread_mutex_unlock(&queue);
    return job;
}

static long take(struct ring *ring)
{
    long job = 0;
    switch (how) {
    case CONDITION:
        pthread_mutex_lock(&queue);
        while (put == taken)
            pthread_cond_wait(&filled, &queue);
        job = jobs[taken++ % MOST];
        pthread_mutex_unlock(&queue);
        return job;
    case SEMAPHORE:
        while (sem_wait(&count) != 0)
            ;
        return take_from_queue();
    case FUTEX:
        for (;;) {
            uint32_t seen = word;
            if ((job = take_from_queue()) >= 0)
                return job;
            syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
        }
    case EVENT: {
        uint64_t one;
        must(read(ends[0], &one, sizeof one) != sizeof one, "read");
        return take_from_queue();
    }
    case IO_URING:
        return ring_read(ring);
    default:
        must(read(ends[0], &job, sizeof job) != sizeof job, "read");
        return job;
    }
}

static void *worker(void *nothing)
{
    (void)nothing;
    struct ring ring;
    if (how == IO_URING)
        ring_open(&ring);
    for (long size; (size = take(&ring)) != 0;)
        Work(size);
    return NULL;
}

static NAMED void OrderSmall(void)
{
    hand_over(1);
}

static NAMED void OrderLarge(void)
{
    hand_over(3);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"condition", "semaphore", "futex", "pipe", "socket", "event", "io_uring"};
    for (how = CONDITION; argc > 1 && strcmp(argv[1], names[how]) != 0;)
        if (++how > IO_URING)
            return 2;
    long rounds = argument(argc, argv, 2, 201);
    units = (uint64_t)argument(argc, argv, 3, 600000);
    must(sem_init(&count, 0, 0), "sem_init");
    if (how == SOCKET)
        must(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), "socketpair");
    else if (how == EVENT)
        ends[0] = ends[1] = eventfd(0, EFD_SEMAPHORE);
    else
        must(pipe(ends), "pipe");
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++)
        must(pthread_create(&threads[t], NULL, worker, NULL), "pthread_create");
    for (long round = 0; round < rounds; round++) {
        Prepare();
        if (round % 2 == 0)
            OrderSmall();
        else
            OrderLarge();
    }
    for (int t = 0; t < THREADS; t++)
        hand_over(0);
    for (int t = 0; t < THREADS; t++)
        must(pthread_join(threads[t], NULL), "pthread_join");
    printf("%ld jobs\n", rounds);
    return 0;
}
