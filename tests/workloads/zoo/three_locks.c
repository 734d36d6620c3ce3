/* Four threads with three locks, which they have half, a fifth and a twentieth of their time. Argument: rounds. */
#include "work.h"
#include <pthread.h>

static long rounds;
static volatile uint64_t sink;
static pthread_mutex_t wide = PTHREAD_MUTEX_INITIALIZER, middle = PTHREAD_MUTEX_INITIALIZER,
                       narrow = PTHREAD_MUTEX_INITIALIZER;

WORK(apart, 25000)
WORK(under_wide, 50000)
WORK(under_middle, 20000)
WORK(under_narrow, 5000)

#define HAVE(lock)                                                         \
    static __attribute__((noinline)) void have_##lock(uint64_t round)      \
    {                                                                      \
        pthread_mutex_lock(&lock);                                         \
        sink = under_##lock(round);                                        \
        pthread_mutex_unlock(&lock);                                       \
    }

HAVE(wide)
HAVE(middle)
HAVE(narrow)

static void *work(void *unused)
{
    for (long round = 1; round <= rounds; round++) {
        have_wide(round);
        have_narrow(round);
        have_middle(round);
        sink = apart(round);
    }
    return unused;
}

int main(int count, char **words)
{
    rounds = argument(count, words, 1, 5000);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    puts("three");
}
