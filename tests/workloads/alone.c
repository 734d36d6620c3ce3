/* alone.c: a thread that is alone in its process and does nothing but take mutexes; then a second one comes, and both
 * take another mutex so often that it can be counted.
 *
 *   alone PAIRS LATER [shared]
 *
 * PAIRS pairs of operations on `early` alone, as many in a child process, which are not this process's; then LATER pairs on
 * `late` in each of two threads. With "shared", `early` may be shared with other processes. It prints how many operations
 * on mutexes it has made. */
#include "common.h"

#include <sys/wait.h>

pthread_mutex_t early;
pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t late = PTHREAD_MUTEX_INITIALIZER;
static long later;

static void *together(void *argument)
{
    for (long i = 0; i < later; i++) {
        pthread_mutex_lock(&late);
        pthread_mutex_unlock(&late);
        if (i % 64 == 0)
            usleep(100);
    }
    return argument;
}

int main(int count, char **arguments)
{
    long pairs = count > 1 ? atol(arguments[1]) : 1000;
    later = count > 2 ? atol(arguments[2]) : 1000;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    if (count > 3)
        pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&early, &attributes);
    /* Taken before its operations are left out, given back in between. */
    pthread_mutex_lock(&held);
    for (long i = 0; i < pairs; i++) {
        pthread_mutex_lock(&early);
        pthread_mutex_unlock(&early);
    }
    /* It has its parent's memory, and what its parent's thread knows of itself. */
    pid_t child = fork();
    if (child == 0) {
        for (long i = 0; i < pairs; i++) {
            pthread_mutex_lock(&early);
            pthread_mutex_unlock(&early);
        }
        _exit(0);
    }
    waitpid(child, NULL, 0);
    pthread_mutex_unlock(&held);
    pthread_t other;
    pthread_create(&other, NULL, together, NULL);
    together(NULL);
    pthread_join(other, NULL);
    printf("operations %ld\n", 2 + 2 * pairs + 4 * later);
    return 0;
}
