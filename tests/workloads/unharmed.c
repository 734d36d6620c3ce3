/* Computes and checks its own results while things happen to it, as its first argument says:
   work     until its input ends; with a pause of so many microseconds after each round
   crash    a null pointer is followed when a line comes
   drop     becomes nobody, for good, when a line comes; then goes on until its input ends
   traced   a parent traces it, stops it again and again and steps through some of its instructions
   threads  ten thousand threads that work now and then
   replace  starts its own file anew when a line comes
   Ends with code 0 if all results were right. usage: unharmed WHAT [threads] [pause] */
#define _GNU_SOURCE
#include "common.h"
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

static _Atomic int stop;
static _Atomic long rounds, wrong;
static long nap_us;
/* Of work, about nanoseconds, in each of the twenty inner calls. */
static uint64_t units = 100000;

NAMED uint64_t Inner(uint64_t units, uint64_t seed) { return burn(units, seed); }

NAMED uint64_t Outer(void)
{
    uint64_t sum = 7;
    for (int i = 0; i < 20; i++)
        sum = Inner(units, sum ^ (uint64_t)i);
    return sum;
}

static void *worker(void *expected)
{
    while (!atomic_load(&stop)) {
        if (Outer() != *(uint64_t *)expected)
            atomic_fetch_add(&wrong, 1);
        atomic_fetch_add(&rounds, 1);
        if (nap_us > 0)
            usleep((useconds_t)nap_us);
    }
    return NULL;
}

static int line_comes(void)
{
    char line[64];
    return fgets(line, sizeof line, stdin) != NULL;
}

/* The parent: a debugger that is not good for anything. */
static int trace(pid_t child)
{
    int status, steps = 0;
    if (ptrace(PTRACE_SEIZE, child, 0, 0) != 0)
        return 2;
    for (long turn = 0;; turn++) {
        usleep(2000);
        if (ptrace(PTRACE_INTERRUPT, child, 0, 0) != 0 && turn == 0)
            return 2;
        if (waitpid(child, &status, 0) != child)
            return 2;
        if (WIFEXITED(status))
            return WEXITSTATUS(status);
        if (WIFSIGNALED(status))
            return 100 + WTERMSIG(status);
        for (int i = 0; i < 50 && WIFSTOPPED(status); i++, steps++) {
            int signal = WSTOPSIG(status) == SIGTRAP || status >> 16 != 0 ? 0 : WSTOPSIG(status);
            if (ptrace(PTRACE_SINGLESTEP, child, 0, signal) != 0 || waitpid(child, &status, 0) != child)
                break;
            if (WIFEXITED(status))
                return WEXITSTATUS(status);
            if (WIFSIGNALED(status))
                return 100 + WTERMSIG(status);
        }
        ptrace(PTRACE_CONT, child, 0, 0);
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "work";
    long count = argument(argc, argv, 2, strcmp(what, "threads") == 0 ? 10000 : 2);
    nap_us = argument(argc, argv, 3, 0);
    pid_t child = 0;
    if (strcmp(what, "traced") == 0) {
        child = fork();
        if (child > 0) {
            printf("ready %d\n", child);
            fflush(stdout);
            return trace(child);
        }
        usleep(50000);
    }
    if (strcmp(what, "threads") == 0) {
        nap_us = 1000000;
        units = 500;
    }
    uint64_t expected = Outer();
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    pthread_t *threads = calloc((size_t)count, sizeof *threads);
    for (long i = 0; i < count; i++)
        must(pthread_create(&threads[i], &small, worker, &expected), "pthread_create");
    if (strcmp(what, "traced") != 0) {
        printf("ready %d\n", getpid());
        fflush(stdout);
    }
    if (strcmp(what, "crash") == 0 && line_comes())
        *(volatile int *)0 = 1;
    if (strcmp(what, "drop") == 0 && line_comes()) {
        setgroups(0, NULL);
        if (setgid(65534) != 0 || setuid(65534) != 0 || setuid(0) == 0)
            return 3;
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
        puts("nobody");
        fflush(stdout);
    }
    if (strcmp(what, "replace") == 0 && line_comes()) {
        char path[4096];
        ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
        path[length > 0 ? length : 0] = '\0';
        char *gone = strstr(path, " (deleted)");
        if (gone != NULL)
            *gone = '\0';
        execl(path, path, "work", NULL);
        return 3;
    }
    struct pollfd input = {0, POLLIN, 0};
    while (strcmp(what, "traced") == 0 && poll(&input, 1, 0) == 0) {
        if (Outer() != expected)
            atomic_fetch_add(&wrong, 1);
        atomic_fetch_add(&rounds, 1);
    }
    while (line_comes())
        continue;
    atomic_store(&stop, 1);
    for (long i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    printf("%ld rounds, %ld wrong\n", atomic_load(&rounds), atomic_load(&wrong));
    return wrong || !rounds;
}
