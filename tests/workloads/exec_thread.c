/* A thread that does not lead its process replaces the program: all others die, and it becomes the leader. The new
   program waits until AfterExec has its probe, if WORKLOAD_WAIT is set, for at most 20 seconds.
   usage: exec_thread [path of the program to run then, else its own file] */
#include "common.h"
#include <errno.h>

static volatile uint64_t sink;

static NAMED void BeforeExec(void)
{
    sink = burn(20000, 5);
}

static NAMED void AfterExec(void)
{
    sink = burn(30000, 5);
}

static NAMED void *Worker(void *rounds)
{
    for (long i = 0; i < (long)rounds; i++)
        AfterExec();
    return NULL;
}

static const char *next;
static char own_file[4096];

static NAMED void *Replace(void *unused)
{
    for (int i = 0; i < 17; i++)
        BeforeExec();
    char *arguments[] = {"exec_thread", "--after", NULL};
    execv(next, arguments);
    must(errno, next);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc > 1 && strcmp(argv[1], "--after") == 0) {
        /* The first byte of an x86-64 breakpoint. */
        const volatile unsigned char *code = (const volatile unsigned char *)AfterExec;
        int probed = 0;
        for (int i = 0; getenv("WORKLOAD_WAIT") != NULL && i < 4000 && !(probed = *code == 0xcc); i++)
            usleep(5000);
        /* A probe counts from a moment after it is there. */
        if (probed)
            usleep(500000);
        for (int i = 0; i < 47; i++)
            AfterExec();
        must(pthread_create(&thread, NULL, Worker, (void *)13), "thread");
        must(pthread_join(thread, NULL), "join");
        printf("60 calls after exec%s\n", probed ? ", probed" : "");
        return 0;
    }
    wait_for_start();
    must(readlink("/proc/self/exe", own_file, sizeof own_file - 1) > 0 ? 0 : errno, "readlink");
    next = argc > 1 ? argv[1] : own_file;
    for (int i = 0; i < 14; i++)
        BeforeExec();
    must(pthread_create(&thread, NULL, Replace, NULL), "thread");
    for (;;)
        pause();
}
