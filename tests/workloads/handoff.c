/* A chain of hand-offs: one token goes round `threads` threads `handoffs` times, each holder works, then wakes the
   next. The next one is asleep before it is woken, so every hand-off is exactly one wake, and the whole run is one
   critical path: no number of CPUs makes it faster.
   usage: handoff [handoffs 997] [threads 3] [units 20000] */
#include "common.h"
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/syscall.h>

enum { MOST = 64 };

static sem_t turn[MOST];
static _Atomic pid_t tid[MOST];
static long handoffs, threads, units;
static _Atomic uint64_t result = 1;

/* The kernel's own word on whether a thread sleeps, so that the wake that follows is not lost on a running one. */
static NAMED int asleep(pid_t thread)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return 0;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    char *end = strrchr(text, ')');
    return end != NULL && end[1] == ' ' && end[2] == 'S';
}

static NAMED void HoldToken(void)
{
    result = burn((uint64_t)units, result);
}

static NAMED void PassToken(long to)
{
    while (!asleep(tid[to]))
        sched_yield();
    sem_post(&turn[to]);
}

static void *holder(void *argument)
{
    long own = (long)(intptr_t)argument;
    tid[own] = (pid_t)syscall(SYS_gettid);
    for (long round = own; round < handoffs; round += threads) {
        while (sem_wait(&turn[own]) != 0)
            ;
        HoldToken();
        if (round + 1 < handoffs)
            PassToken((own + 1) % threads);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    handoffs = argument(argc, argv, 1, 997);
    threads = argument(argc, argv, 2, 3);
    units = argument(argc, argv, 3, 20000);
    if (threads < 2 || threads > MOST || handoffs < threads)
        must(22, "handoff");
    wait_for_start();
    pthread_t handle[MOST];
    for (long i = 0; i < threads; i++)
        sem_init(&turn[i], 0, 0);
    for (long i = 0; i < threads; i++)
        must(pthread_create(&handle[i], NULL, holder, (void *)(intptr_t)i), "pthread_create");
    for (long i = 0; i < threads; i++)
        while (tid[i] == 0)
            sched_yield();
    PassToken(0);
    for (long i = 0; i < threads; i++)
        must(pthread_join(handle[i], NULL), "pthread_join");
    printf("%ld hand-offs, %016llx\n", handoffs, (unsigned long long)result);
    return 0;
}
