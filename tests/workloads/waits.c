/* A waiter that sleeps in one kind of call, and a waker that ends each sleep, ROUNDS times. The waker looks whether the
   waiter is asleep before it does, so that the number of wakes is known.
   usage: waits KIND [rounds 23] [threads|processes]
   kinds: pipe eventfd socketpair unix tcp epoll requeue pi waitv timeout terminal ring accept connect
   ends with 77 where the kernel has no io_uring for it */
#define _GNU_SOURCE
#include "common.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

struct word_of_list {
    uint64_t value, address;
    uint32_t flags, reserved;
};

static struct shared {
    atomic_int waiter; /* its thread id, once it lives */
    atomic_int turn, taken;
    uint32_t first, second;
} *shared;

static long rounds;
static int in, out;
static const char *kind;

static struct {
    int fd;
    unsigned *to_do, *list, *done, *done_head;
    struct io_uring_sqe *entries;
} ring;

static void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(2);
}

static int is(const char *name)
{
    return strcmp(kind, name) == 0;
}

static long futex(uint32_t *word, int operation, uint32_t value, uintptr_t fourth, uint32_t *other, uint32_t sixth)
{
    return syscall(SYS_futex, word, operation, value, fourth, other, sixth);
}

static void nap(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
}

/* What a file of the waiter in /proc says. */
static int read_of_waiter(const char *name, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", atomic_load(&shared->waiter), name);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return 0;
    text[fread(text, 1, size - 1, file)] = 0;
    fclose(file);
    return 1;
}

/* Until the waiter sleeps and is off its CPU: a thread says that it sleeps a moment before it does, and one that is woken
   in that moment has not slept. */
static void until_asleep(void)
{
    while (atomic_load(&shared->waiter) == 0)
        nap();
    for (;; nap()) {
        char text[256];
        if (!read_of_waiter("stat", text, sizeof text))
            fail("/proc/PID/stat");
        char *after = strrchr(text, ')');
        if (after == NULL || after[2] != 'S')
            continue;
        /* The kernel looks whether it is off its CPU before it tells in which call it is. */
        if (!read_of_waiter("syscall", text, sizeof text)) {
            nap();
            return;
        }
        if (strncmp(text, "running", 7) == 0)
            continue;
        /* The naps in which it asks whether it is its turn are not what it is woken from. */
        long call = strtol(text, NULL, 10);
        if (call != SYS_nanosleep && call != SYS_clock_nanosleep)
            return;
    }
}

static int by_name(void)
{
    return is("tcp") || is("unix") || is("accept") || is("connect");
}

static int connected(int family)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    if (getsockname(out, (struct sockaddr *)&address, &size) != 0)
        fail("getsockname");
    int end = socket(family, SOCK_STREAM, 0);
    if (connect(end, (struct sockaddr *)&address, size) != 0)
        fail("connect");
    return end;
}

/* By hand: the library is not everywhere. Private to whoever waits. */
static void make_ring(void)
{
    struct io_uring_params how = { 0 };
    ring.fd = (int)syscall(SYS_io_uring_setup, 1, &how);
    if (ring.fd < 0) {
        perror("io_uring_setup");
        exit(77);
    }
    size_t size = how.sq_off.array + how.sq_entries * sizeof(unsigned);
    char *sq = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_SQ_RING);
    size = how.cq_off.cqes + how.cq_entries * sizeof(struct io_uring_cqe);
    char *cq = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_CQ_RING);
    ring.entries = mmap(NULL, sizeof *ring.entries, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_SQES);
    if (sq == MAP_FAILED || cq == MAP_FAILED || ring.entries == MAP_FAILED)
        fail("mmap");
    ring.to_do = (unsigned *)(sq + how.sq_off.tail);
    ring.list = (unsigned *)(sq + how.sq_off.array);
    ring.done_head = (unsigned *)(cq + how.cq_off.head);
    ring.done = (unsigned *)(cq + how.cq_off.tail);
}

static void read_by_ring(uint64_t *value)
{
    *ring.entries = (struct io_uring_sqe){ .opcode = IORING_OP_READ, .fd = in, .addr = (uintptr_t)value,
                                           .len = sizeof *value, .off = (uint64_t)-1 };
    ring.list[0] = 0;
    __atomic_fetch_add(ring.to_do, 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, ring.fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
        fail("io_uring_enter");
    __atomic_store_n(ring.done_head, __atomic_load_n(ring.done, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
}

NAMED static void wait_once(void)
{
    uint64_t value;
    struct epoll_event event;
    struct timespec limit = { .tv_nsec = 3000000 };
    if (is("epoll")) {
        if (epoll_wait(in, &event, 1, -1) != 1 || read(event.data.fd, &value, sizeof value) != sizeof value)
            fail("epoll_wait");
    } else if (is("requeue")) {
        if (futex(&shared->first, FUTEX_WAIT, 0, 0, NULL, 0) != 0)
            fail("FUTEX_WAIT");
    } else if (is("timeout")) {
        if (futex(&shared->first, FUTEX_WAIT, 0, (uintptr_t)&limit, NULL, 0) == 0 || errno != ETIMEDOUT)
            fail("FUTEX_WAIT");
    } else if (is("pi")) {
        if (futex(&shared->first, FUTEX_LOCK_PI, 0, 0, NULL, 0) != 0)
            fail("FUTEX_LOCK_PI");
        if (futex(&shared->first, FUTEX_UNLOCK_PI, 0, 0, NULL, 0) != 0)
            fail("FUTEX_UNLOCK_PI");
        atomic_fetch_add(&shared->taken, 1);
    } else if (is("waitv")) {
        struct word_of_list words[2] = { { 0, (uintptr_t)&shared->first, 2, 0 },
                                         { 0, (uintptr_t)&shared->second, 2, 0 } };
        if (syscall(SYS_futex_waitv, words, 2, 0, NULL, 0) != 1)
            fail("futex_waitv");
    } else if (is("accept")) {
        close(accept(in, NULL, NULL));
    } else if (is("connect")) {
        close(connected(AF_UNIX));
    } else if (is("ring")) {
        read_by_ring(&value);
    } else if (read(in, &value, sizeof value) != sizeof value) {
        fail("read");
    }
}

static void waiter(void)
{
    prctl(PR_SET_NAME, "waiter");
    if (is("tcp") || is("unix")) {
        in = accept(in, NULL, NULL);
        if (in < 0)
            fail("accept");
    }
    if (is("ring"))
        make_ring();
    /* One connection may wait to be accepted without anybody waiting for that. */
    if (is("connect"))
        close(connected(AF_UNIX));
    for (long round = 0; round < rounds; round++) {
        if (is("pi"))
            while (atomic_load(&shared->turn) <= round)
                nap();
        if (round == 0)
            atomic_store(&shared->waiter, (int)syscall(SYS_gettid));
        wait_once();
        if (is("terminal"))
            atomic_fetch_add(&shared->taken, 1);
    }
}

NAMED static void wake_once(long round)
{
    uint64_t value = 1;
    if (is("requeue")) {
        if (futex(&shared->first, FUTEX_CMP_REQUEUE, 0, 1, &shared->second, 0) != 1)
            fail("FUTEX_CMP_REQUEUE");
        nap();
        if (futex(&shared->second, FUTEX_WAKE, 1, 0, NULL, 0) != 1)
            fail("FUTEX_WAKE");
    } else if (is("pi")) {
        if (futex(&shared->first, FUTEX_UNLOCK_PI, 0, 0, NULL, 0) != 0)
            fail("FUTEX_UNLOCK_PI");
        while (atomic_load(&shared->taken) <= round)
            nap();
    } else if (is("waitv")) {
        if (futex(&shared->second, FUTEX_WAKE, 1, 0, NULL, 0) != 1)
            fail("FUTEX_WAKE");
    } else if (is("accept")) {
        close(connected(AF_UNIX));
    } else if (is("connect")) {
        close(accept(in, NULL, NULL));
    } else if (!is("timeout") && write(out, &value, sizeof value) != sizeof value) {
        fail("write");
    }
    /* Another thread of the kernel passes it on, some time later. */
    while (is("terminal") && atomic_load(&shared->taken) <= round)
        nap();
}

static void waker(void)
{
    prctl(PR_SET_NAME, "waker");
    int on = 1;
    if (is("tcp") || is("unix"))
        out = connected(is("tcp") ? AF_INET : AF_UNIX);
    if (is("tcp"))
        setsockopt(out, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    for (long round = 0; round < rounds; round++) {
        if (is("pi")) {
            if (futex(&shared->first, FUTEX_LOCK_PI, 0, 0, NULL, 0) != 0)
                fail("FUTEX_LOCK_PI");
            atomic_fetch_add(&shared->turn, 1);
            /* Its first sleeps are naps, and not every kernel tells them from others. */
            for (int i = 0; i < 20; i++)
                nap();
        }
        if (!is("timeout"))
            until_asleep();
        wake_once(round);
    }
}

static void prepare(void)
{
    int ends[2];
    if (is("pipe") || is("ring")) {
        if (pipe(ends) != 0)
            fail("pipe");
        in = ends[0];
        out = ends[1];
    } else if (is("eventfd")) {
        in = out = eventfd(0, 0);
    } else if (is("epoll")) {
        struct epoll_event event = { .events = EPOLLIN };
        out = event.data.fd = eventfd(0, 0);
        in = epoll_create1(0);
        if (epoll_ctl(in, EPOLL_CTL_ADD, out, &event) != 0)
            fail("epoll_ctl");
    } else if (is("socketpair")) {
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
            fail("socketpair");
        in = ends[0];
        out = ends[1];
    } else if (is("terminal")) {
        struct termios as_it_comes;
        out = posix_openpt(O_RDWR | O_NOCTTY);
        if (out < 0 || grantpt(out) != 0 || unlockpt(out) != 0)
            fail("posix_openpt");
        in = open(ptsname(out), O_RDWR | O_NOCTTY);
        if (in < 0 || tcgetattr(in, &as_it_comes) != 0)
            fail("terminal");
        cfmakeraw(&as_it_comes);
        as_it_comes.c_cc[VMIN] = sizeof(uint64_t);
        tcsetattr(in, TCSANOW, &as_it_comes);
    } else if (by_name()) {
        struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        struct sockaddr_un nameless = { .sun_family = AF_UNIX };
        in = out = socket(is("tcp") ? AF_INET : AF_UNIX, SOCK_STREAM, 0);
        int failed = is("tcp") ? bind(in, (struct sockaddr *)&here, sizeof here)
                               : bind(in, (struct sockaddr *)&nameless, sizeof(sa_family_t));
        if (failed || listen(in, is("connect") ? 0 : 1) != 0)
            fail("listen");
    }
}

static void *run(void *function)
{
    ((void (*)(void))function)();
    return NULL;
}

int main(int argc, char **argv)
{
    kind = argc > 1 ? argv[1] : "pipe";
    rounds = argument(argc, argv, 2, 23);
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    prepare();
    wait_for_start();
    printf("%p %p\n", (void *)&shared->first, (void *)&shared->second);
    fflush(stdout);
    if (argc > 3 && strcmp(argv[3], "processes") == 0) {
        pid_t child = fork();
        if (child == 0) {
            waiter();
            _exit(0);
        }
        waker();
        int status;
        waitpid(child, &status, 0);
        return status != 0;
    }
    pthread_t threads[2];
    must(pthread_create(&threads[0], NULL, run, (void *)waiter), "pthread_create");
    must(pthread_create(&threads[1], NULL, run, (void *)waker), "pthread_create");
    must(pthread_join(threads[0], NULL), "pthread_join");
    must(pthread_join(threads[1], NULL), "pthread_join");
    return 0;
}
