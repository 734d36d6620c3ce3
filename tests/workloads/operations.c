/* Every synchronization function of a C library, each called a known number of times with a known outcome, on objects that
 * are global variables, from functions with names. `operations gate` waits for a byte on standard input first. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define TIMES(n, what) for (int i = 0; i < (n); i++) { what; }
#define IS(what, expected) do { int got = (what); if (got != (expected)) fail(#what, got); } while (0)
#define NAMED __attribute__((noinline, noclone))

pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER, checked, recursive, robust, waited = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t condition = PTHREAD_COND_INITIALIZER, made;
pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER, made_rwlock;
pthread_barrier_t barrier;
pthread_spinlock_t spin;
sem_t semaphore, handler_semaphore;
pthread_once_t once[7];
once_flag flag = ONCE_FLAG_INIT;
mtx_t c11_mutex;
cnd_t c11_condition;
static volatile int ready, ran;
static const struct timespec past = {1, 0};

static void fail(const char *what, int got) {
    fprintf(stderr, "%s gave %d\n", what, got);
    _exit(1);
}

/* What an initialization does is its own. */
NAMED static void initialize(void) {
    ran++;
    pthread_mutex_lock(&plain);
    pthread_mutex_unlock(&plain);
}
NAMED static void initialize_nothing(void) { ran++; }

NAMED static void mutexes(void) {
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
    TIMES(2, IS(pthread_mutex_init(&checked, &kind), 0));
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    IS(pthread_mutex_init(&recursive, &kind), 0);
    TIMES(101, pthread_mutex_lock(&plain); pthread_mutex_unlock(&plain));
    TIMES(3, IS(pthread_mutex_lock(&recursive), 0));
    TIMES(3, IS(pthread_mutex_unlock(&recursive), 0));
    IS(pthread_mutex_trylock(&plain), 0);
    TIMES(4, IS(pthread_mutex_trylock(&plain), EBUSY));
    IS(pthread_mutex_lock(&checked), 0);
    TIMES(11, IS(pthread_mutex_lock(&checked), EDEADLK));
    IS(pthread_mutex_unlock(&checked), 0);
    TIMES(2, IS(pthread_mutex_unlock(&checked), EPERM));
    TIMES(13, IS(pthread_mutex_timedlock(&plain, &past), ETIMEDOUT));
#ifdef __GLIBC__
    TIMES(7, IS(pthread_mutex_clocklock(&plain, CLOCK_MONOTONIC, &past), ETIMEDOUT));
#endif
    IS(pthread_mutex_unlock(&plain), 0);
    IS(pthread_mutex_destroy(&recursive), 0);
}

NAMED static void conditions(void) {
    IS(pthread_cond_init(&made, 0), 0);
    pthread_mutex_lock(&waited);
    TIMES(17, IS(pthread_cond_timedwait(&made, &waited, &past), ETIMEDOUT));
#ifdef __GLIBC__
    TIMES(5, IS(pthread_cond_clockwait(&made, &waited, CLOCK_MONOTONIC, &past), ETIMEDOUT));
#endif
    pthread_mutex_unlock(&waited);
    TIMES(19, pthread_cond_signal(&condition));
    TIMES(23, pthread_cond_broadcast(&condition));
    IS(pthread_cond_destroy(&made), 0);
}

NAMED static void *waits_for_word(void *word) {
    pthread_mutex_lock(&waited);
    ready = 1;
    while (ready == 1) pthread_cond_wait(&condition, &waited);
    pthread_mutex_unlock(&waited);
    return word;
}

/* Whoever sees `ready` under the mutex knows that the other one waits: one wait, one signal. */
NAMED static void hand_over(void) {
    pthread_t thread;
    ready = 0;
    IS(pthread_create(&thread, 0, waits_for_word, 0), 0);
    while (!ready) usleep(1000);
    pthread_mutex_lock(&waited);
    ready = 2;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&waited);
    IS(pthread_join(thread, 0), 0);
}

NAMED static void read_write_locks(void) {
    IS(pthread_rwlock_init(&made_rwlock, 0), 0);
    IS(pthread_rwlock_destroy(&made_rwlock), 0);
    TIMES(31, IS(pthread_rwlock_rdlock(&rwlock), 0));
    TIMES(3, IS(pthread_rwlock_tryrdlock(&rwlock), 0));
    TIMES(37, IS(pthread_rwlock_trywrlock(&rwlock), EBUSY));
    TIMES(2, IS(pthread_rwlock_timedwrlock(&rwlock, &past), ETIMEDOUT));
    TIMES(31 + 3, IS(pthread_rwlock_unlock(&rwlock), 0));
    IS(pthread_rwlock_wrlock(&rwlock), 0);
#ifdef __GLIBC__
    TIMES(41, IS(pthread_rwlock_timedrdlock(&rwlock, &past), EDEADLK));
    TIMES(3, IS(pthread_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC, &past), EDEADLK));
    TIMES(3, IS(pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &past), EDEADLK));
#endif
    IS(pthread_rwlock_unlock(&rwlock), 0);
}

NAMED static void *meets(void *argument) {
    TIMES(29, pthread_barrier_wait(&barrier));
    return argument;
}

NAMED static void barriers(void) {
    pthread_t thread;
    IS(pthread_barrier_init(&barrier, 0, 2), 0);
    IS(pthread_create(&thread, 0, meets, 0), 0);
    meets(0);
    IS(pthread_join(thread, 0), 0);
    IS(pthread_barrier_destroy(&barrier), 0);
}

NAMED static void spin_locks(void) {
    pthread_spin_init(&spin, 0);
    TIMES(43, pthread_spin_lock(&spin); pthread_spin_unlock(&spin));
    IS(pthread_spin_trylock(&spin), 0);
    IS(pthread_spin_trylock(&spin), EBUSY);
    pthread_spin_destroy(&spin);
}

NAMED static void on_signal(int number) {
    (void)number;
    sem_post(&handler_semaphore);
}

/* A handler comes in while the thread is inside of sem_wait, which goes on afterwards. */
NAMED static void *waits_through_a_signal(void *argument) {
    ready = 1;
    while (sem_wait(&semaphore) != 0 && errno == EINTR) {}
    return argument;
}

NAMED static void semaphores(void) {
    IS(sem_init(&semaphore, 0, 5), 0);
    TIMES(5, IS(sem_wait(&semaphore), 0));
    TIMES(47, IS(sem_trywait(&semaphore), -1); IS(errno, EAGAIN));
    TIMES(3, IS(sem_timedwait(&semaphore, &past), -1); IS(errno, ETIMEDOUT));
#ifdef __GLIBC__
    TIMES(2, IS(sem_clockwait(&semaphore, CLOCK_MONOTONIC, &past), -1));
#endif
    TIMES(53, IS(sem_post(&semaphore), 0));
    TIMES(53, IS(sem_wait(&semaphore), 0));
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, 0);
    IS(sem_init(&handler_semaphore, 0, 0), 0);
    pthread_t thread;
    ready = 0;
    IS(pthread_create(&thread, 0, waits_through_a_signal, 0), 0);
    while (!ready) usleep(1000);
    usleep(20000);
    pthread_kill(thread, SIGUSR1);
    IS(sem_wait(&handler_semaphore), 0);
    IS(sem_post(&semaphore), 0);
    IS(pthread_join(thread, 0), 0);
    IS(sem_destroy(&semaphore), 0);
    char name[64];
    snprintf(name, sizeof name, "/longpole-operations-%d", getpid());
    sem_t *named = sem_open(name, O_CREAT, 0600, 3);
    if (named == SEM_FAILED) fail("sem_open", errno);
    TIMES(3, IS(sem_wait(named), 0));
    IS(sem_close(named), 0);
    sem_unlink(name);
    if (sem_open(name, 0, 0, 0) != SEM_FAILED) fail("sem_open", 0);
}

NAMED static void onces(void) {
    TIMES(7 * 3, pthread_once(&once[i % 7], i == 3 ? initialize : initialize_nothing));
    TIMES(5, call_once(&flag, initialize_nothing));
    IS(ran, 8);
}

NAMED static void *nothing(void *argument) { return argument; }
NAMED static void *leaves(void *argument) { pthread_exit(argument); }
NAMED static int c11_thread(void *argument) { thrd_exit(argument != 0); }
NAMED static int c11_detached(void *argument) {
    ready = 1;
    thrd_exit(argument != 0);
}
NAMED static void *is_cancelled(void *argument) {
    pthread_mutex_lock(&waited);
    ready = 1;
    /* Never comes back: it is left by cancellation. */
    pthread_cleanup_push((void (*)(void *))pthread_mutex_unlock, &waited);
    for (;;) pthread_cond_wait(&condition, &waited);
    pthread_cleanup_pop(0);
    return argument;
}

NAMED static void threads(void) {
    pthread_t thread;
    TIMES(20, pthread_create(&thread, 0, i % 2 ? nothing : leaves, 0); IS(pthread_join(thread, 0), 0));
    IS(pthread_create(&thread, 0, nothing, 0), 0);
    IS(pthread_detach(thread), 0);
    ready = 0;
    IS(pthread_create(&thread, 0, is_cancelled, 0), 0);
    while (!ready) usleep(1000);
    usleep(20000);
    IS(pthread_tryjoin_np(thread, 0), EBUSY);
    pthread_cancel(thread);
    IS(pthread_join(thread, 0), 0);
}

NAMED static void c11(void) {
    thrd_t thread;
    IS(mtx_init(&c11_mutex, mtx_timed), thrd_success);
    TIMES(3, IS(mtx_lock(&c11_mutex), thrd_success); IS(mtx_unlock(&c11_mutex), thrd_success));
    IS(mtx_trylock(&c11_mutex), thrd_success);
    IS(mtx_timedlock(&c11_mutex, &past), thrd_timedout);
    IS(mtx_trylock(&c11_mutex), thrd_busy);
    IS(cnd_init(&c11_condition), thrd_success);
    TIMES(2, IS(cnd_timedwait(&c11_condition, &c11_mutex, &past), thrd_timedout));
    TIMES(4, IS(cnd_signal(&c11_condition), thrd_success));
    TIMES(6, IS(cnd_broadcast(&c11_condition), thrd_success));
    IS(mtx_unlock(&c11_mutex), thrd_success);
    cnd_destroy(&c11_condition);
    mtx_destroy(&c11_mutex);
    int result;
    IS(thrd_create(&thread, c11_thread, &result), thrd_success);
    IS(thrd_join(thread, &result), thrd_success);
    ready = 0;
    IS(thrd_create(&thread, c11_detached, 0), thrd_success);
    IS(thrd_detach(thread), thrd_success);
    while (!ready) usleep(1000);
    /* It has nothing left to do but to end. */
    usleep(50000);
}

int main(int count, char **words) {
    if (count > 1 && !strcmp(words[1], "gate")) {
        puts("up");
        fflush(stdout);
        if (getchar() == EOF) return 2;
    }
    mutexes();
    conditions();
    hand_over();
    read_write_locks();
    barriers();
    spin_locks();
    semaphores();
    onces();
    threads();
    c11();
    puts("done");
    return 0;
}
