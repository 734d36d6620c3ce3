/* Comes to a stop: `abba` two threads with each other's locks, `again` a thread that takes its own lock again; with a second
 * word it ends itself by a signal after a second. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
static pthread_mutex_t accounts = PTHREAD_MUTEX_INITIALIZER, journal = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static void *transfer(void *arg) {
    pthread_mutex_lock(&accounts);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&journal);
    return arg;
}
static void *audit(void *arg) {
    pthread_mutex_lock(&journal);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&accounts);
    return arg;
}
static void *again(void *arg) {
    pthread_mutex_lock(&accounts);
    pthread_mutex_lock(&accounts);
    return arg;
}
static void *ends(void *arg) { sleep(1); kill(getpid(), SIGTERM); return arg; }
int main(int count, char **words) {
    pthread_t first, second, third;
    pthread_barrier_init(&both, 0, 2);
    if (count > 2) pthread_create(&third, 0, ends, 0);
    pthread_create(&first, 0, strcmp(words[1], "again") ? transfer : again, 0);
    if (strcmp(words[1], "again")) pthread_create(&second, 0, audit, 0);
    pthread_join(first, 0);
}
