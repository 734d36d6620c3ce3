/* A waiter that sleeps in one kind of call, and a waker that ends each sleep, ROUNDS times. The waker looks whether the
   waiter is asleep before it does, so that the number of wakes is known.
   usage: waits KIND [rounds 23] [threads|processes]
   kinds: pipe eventfd socketpair unix tcp epoll requeue pi waitv timeout */
#define _GNU_SOURCE
#include "common.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/futex.h>
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

/* Until the waiter sleeps, and a little longer: it has to be off its CPU. */
static void until_asleep(void)
{
    while (atomic_load(&shared->waiter) == 0)
        nap();
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/%d/stat", atomic_load(&shared->waiter));
    for (;;) {
        FILE *file = fopen(path, "r");
        if (file == NULL)
            fail(path);
        size_t size = fread(text, 1, sizeof text - 1, file);
        fclose(file);
        text[size] = 0;
        char *after = strrchr(text, ')');
        if (after != NULL && after[2] == 'S')
            return;
        nap();
    }
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
    for (long round = 0; round < rounds; round++) {
        if (is("pi"))
            while (atomic_load(&shared->turn) <= round)
                nap();
        if (round == 0)
            atomic_store(&shared->waiter, (int)syscall(SYS_gettid));
        wait_once();
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
    } else if (!is("timeout") && write(out, &value, sizeof value) != sizeof value) {
        fail("write");
    }
}

static void waker(void)
{
    prctl(PR_SET_NAME, "waker");
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    if (is("tcp") || is("unix")) {
        int listening = out, on = 1;
        if (getsockname(listening, (struct sockaddr *)&address, &size) != 0)
            fail("getsockname");
        out = socket(is("tcp") ? AF_INET : AF_UNIX, SOCK_STREAM, 0);
        if (connect(out, (struct sockaddr *)&address, size) != 0)
            fail("connect");
        if (is("tcp"))
            setsockopt(out, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    for (long round = 0; round < rounds; round++) {
        if (is("pi")) {
            if (futex(&shared->first, FUTEX_LOCK_PI, 0, 0, NULL, 0) != 0)
                fail("FUTEX_LOCK_PI");
            atomic_fetch_add(&shared->turn, 1);
            /* Its first sleeps are naps. */
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
    if (is("pipe")) {
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
    } else if (is("tcp") || is("unix")) {
        struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        struct sockaddr_un nameless = { .sun_family = AF_UNIX };
        in = out = socket(is("tcp") ? AF_INET : AF_UNIX, SOCK_STREAM, 0);
        int failed = is("tcp") ? bind(in, (struct sockaddr *)&here, sizeof here)
                               : bind(in, (struct sockaddr *)&nameless, sizeof(sa_family_t));
        if (failed || listen(in, 1) != 0)
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
