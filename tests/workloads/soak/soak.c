/* Computes the same again and again on three threads, with locks, calls of calls and a timer's signals, and compares:
   a register, a flag or a signal that somebody else changed would show. Ends well when its input ends. */
#define _GNU_SOURCE
#include "../common.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>

enum { THREADS = 3, LENGTH = 4096 };
static _Atomic int stop;
static _Atomic long rounds, wrong, ticks;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t table[256];

NAMED uint64_t Mix(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g)
{
    return (a ^ (b << 7 | b >> 57)) * 0x9e3779b97f4a7c15u + c + (d ^ e) * 31 + f - g;
}

NAMED double Fraction(double x, double y) { return x * 0.75 + y / 3.0 + (x > y ? 1.0 : -1.0); }

NAMED uint64_t Deep(int depth, uint64_t seed)
{
    volatile char frame[64];
    frame[depth & 63] = (char)seed;
    uint64_t below = depth > 0 ? Deep(depth - 1, seed * 3 + (uint64_t)depth) : seed;
    return below ^ (uint64_t)frame[depth & 63];
}

NAMED uint64_t Whole(void)
{
    uint64_t sum = 1;
    double fraction = 0.5;
    for (uint64_t i = 0; i < LENGTH; i++) {
        sum = Mix(sum, i, table[i & 255], i * 3, sum >> 5, i + 9, sum & 7);
        fraction = Fraction(fraction, (double)(sum & 1023));
        if ((i & 511) == 0) {
            sum ^= Deep(30, i);
            pthread_mutex_lock(&lock);
            table[256 - 1] ^= 0;
            pthread_mutex_unlock(&lock);
        }
    }
    return sum ^ (uint64_t)(int64_t)fraction;
}

static void *worker(void *expected)
{
    while (!atomic_load(&stop)) {
        errno = 4242;
        if (Whole() != *(uint64_t *)expected || errno != 4242)
            atomic_fetch_add(&wrong, 1);
        atomic_fetch_add(&rounds, 1);
    }
    return NULL;
}

static void tick(int signal)
{
    (void)signal;
    atomic_fetch_add(&ticks, 1);
}

int main(void)
{
    for (uint64_t i = 0; i < 256; i++)
        table[i] = i * 0x2545f4914f6cdd1du;
    uint64_t expected = Whole();
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval every = {{0, 5000}, {0, 5000}};
    setitimer(ITIMER_REAL, &every, NULL);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        must(pthread_create(&threads[i], NULL, worker, &expected), "pthread_create");
    puts("ready");
    fflush(stdout);
    struct pollfd input = {0, POLLIN, 0};
    while (poll(&input, 1, 100) <= 0)
        continue;
    atomic_store(&stop, 1);
    for (int i = 0; i < THREADS; i++)
        must(pthread_join(threads[i], NULL), "pthread_join");
    printf("%ld rounds, %ld wrong\n", atomic_load(&rounds), atomic_load(&wrong));
    return wrong || !rounds || !ticks;
}
