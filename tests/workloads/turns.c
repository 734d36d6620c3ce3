/* Two threads that compute and take turns in a lock. Arguments: rounds; exit code.
   flags: -O1 */
#include "common.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile long sink;
static long rounds;

NAMED void compute(void)
{
    for (long i = 0; i < 200000; i++)
        sink += i;
}

NAMED void locked(void)
{
    pthread_mutex_lock(&lock);
    compute();
    pthread_mutex_unlock(&lock);
}

NAMED void *work(void *arg)
{
    for (long i = 0; i < rounds; i++) {
        compute();
        locked();
    }
    return arg;
}

int main(int count, char **words)
{
    rounds = count > 1 ? atol(words[1]) : 97;
    puts("started");
    fflush(stdout);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    return count > 2 ? atoi(words[2]) : 0;
}
