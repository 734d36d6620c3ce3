/* Threads cancelled in a condition wait: the cleanup handler must find the mutex locked and leave it free.
   usage: cancel [threads 101] */
#include "common.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER, arrived = PTHREAD_COND_INITIALIZER;
static int waiting;
static long cleaned;

static NAMED void CleanUp(void *argument)
{
    (void)argument;
    cleaned++;
    pthread_mutex_unlock(&lock);
}

static NAMED void WaitForever(void)
{
    pthread_mutex_lock(&lock);
    pthread_cleanup_push(CleanUp, NULL);
    waiting = 1;
    pthread_cond_signal(&arrived);
    for (;;)
        pthread_cond_wait(&never, &lock);
    pthread_cleanup_pop(1);
}

static NAMED void *Victim(void *argument)
{
    WaitForever();
    return argument;
}

int main(int argc, char **argv)
{
    long threads = argument(argc, argv, 1, 101), cancelled = 0;
    wait_for_start();
    for (long i = 0; i < threads; i++) {
        pthread_t victim;
        waiting = 0;
        must(pthread_create(&victim, NULL, Victim, NULL), "pthread_create");
        pthread_mutex_lock(&lock);
        while (!waiting)
            pthread_cond_wait(&arrived, &lock);
        pthread_mutex_unlock(&lock);
        must(pthread_cancel(victim), "pthread_cancel");
        void *result;
        must(pthread_join(victim, &result), "pthread_join");
        cancelled += result == PTHREAD_CANCELED;
    }
    /* A mutex left locked by a cancelled thread would hang here. */
    pthread_mutex_lock(&lock);
    printf("%ld cancelled, %ld cleaned up\n", cancelled, cleaned);
    pthread_mutex_unlock(&lock);
    return cancelled == threads && cleaned == threads ? 0 : 1;
}
