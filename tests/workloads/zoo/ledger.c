/* Five sevenths of the work under a spin lock of pthread's (pthread), a loop that yields (yield), or one that only asks
   (pause). Arguments: which, rounds, threads. */
#include "work.h"
#include <pthread.h>
#include <sched.h>

static pthread_spinlock_t spinning;
static volatile int taken;
static int way;
static long rounds;
static uint64_t ledger = 1;
static volatile uint64_t sink;

WORK(update_ledger, 50000)
WORK(private_work, 20000)

static __attribute__((noinline)) void enter(void)
{
    if (way == 0)
        pthread_spin_lock(&spinning);
    else
        while (__sync_lock_test_and_set(&taken, 1)) {
            if (way == 1)
                sched_yield();
            else
                __builtin_ia32_pause();
        }
}

static __attribute__((noinline)) void leave(void)
{
    if (way == 0)
        pthread_spin_unlock(&spinning);
    else
        __sync_lock_release(&taken);
}

static void *clerk(void *argument)
{
    uint64_t state = (uint64_t)argument + 1;
    for (long i = 0; i < rounds; i++) {
        state = private_work(state);
        enter();
        ledger = update_ledger(ledger);
        leave();
    }
    sink = state;
    return NULL;
}

int main(int count, char **words)
{
    const char *name = count > 1 ? words[1] : "pthread";
    way = strcmp(name, "pthread") == 0 ? 0 : strcmp(name, "yield") == 0 ? 1 : 2;
    rounds = argument(count, words, 2, 8000);
    long many = argument(count, words, 3, 2);
    pthread_t threads[16];
    pthread_spin_init(&spinning, 0);
    for (long i = 0; i < many; i++)
        pthread_create(&threads[i], NULL, clerk, (void *)i);
    for (long i = 0; i < many; i++)
        pthread_join(threads[i], NULL);
    printf("%lx\n", (unsigned long)ledger);
}
