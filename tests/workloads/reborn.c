/* Ids that are given again. The kernel gives a number again when it has come round; here it is told to.
   usage: reborn
     A thread calls FirstLife 7 times and ends; then one with the same thread id calls SecondLife 11 times.
     A child process calls ChildOne 3 times and ends; then one with the same process id calls ChildTwo 5 times.
     Children wait until they have probes, for at most 20 seconds.
   usage: reborn heir
     Makes a child and says its process id; with the next line of standard input it goes on working for a while.
   usage: reborn stranger PID
     Makes a child with this process id, which works for half a second. Says "took PID".
   usage: reborn successor
     Says "ready", reads a process id, makes a child with it at once that calls ChildOne 3 times, and says "took PID".
   Ends with code 3 and says why where it may not choose ids. */
#define _GNU_SOURCE
#include "common.h"
#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static volatile uint64_t sink;

static NAMED void FirstLife(void)
{
    sink = burn(50000, 5);
}

static NAMED void SecondLife(void)
{
    sink = burn(50000, 7);
}

static NAMED void ChildOne(void)
{
    sink = burn(50000, 9);
}

static NAMED void ChildTwo(void)
{
    sink = burn(50000, 11);
}

static void cannot(const char *what)
{
    printf("cannot choose ids: %s: %s\n", what, strerror(errno));
    fflush(stdout);
    exit(3);
}

static void until_probed(const void *function)
{
    /* The first byte of an x86-64 breakpoint. */
    const volatile unsigned char *code = (const volatile unsigned char *)function;
    for (int i = 0; i < 4000 && *code != 0xcc; i++)
        usleep(5000);
    /* A probe counts from a moment after it is there; a child may have inherited the byte, and gets its own
       probes when it has lived for 200 ms. */
    usleep(700000);
}

static pid_t first_tid;

static NAMED void *First(void *unused)
{
    prctl(PR_SET_NAME, "first life");
    first_tid = (pid_t)syscall(SYS_gettid);
    for (int i = 0; i < 7; i++)
        FirstLife();
    return unused;
}

static NAMED void *Second(void *unused)
{
    if ((pid_t)syscall(SYS_gettid) != first_tid)
        return unused;
    prctl(PR_SET_NAME, "second life");
    for (int i = 0; i < 11; i++)
        SecondLife();
    return (void *)1;
}

/* The next number that is given is this one, unless somebody else on the machine is faster. */
static void next_is(pid_t id)
{
    FILE *last = fopen("/proc/sys/kernel/ns_last_pid", "w");
    if (last == NULL)
        cannot("ns_last_pid");
    fprintf(last, "%d", (int)id - 1);
    if (fclose(last) != 0)
        cannot("ns_last_pid");
}

/* As fork, with this process id. */
static pid_t fork_as(pid_t id)
{
    struct clone_args arguments = {.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&id, .set_tid_size = 1};
    for (int i = 0; i < 1000; i++) {
        pid_t child = (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
        if (child >= 0 || errno != EEXIST)
            return child;
        usleep(1000);
    }
    return -1;
}

static void reap(pid_t child)
{
    int status = 1;
    if (waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "child %d ended with %d\n", (int)child, status);
        exit(2);
    }
}

static int stranger(pid_t id)
{
    pid_t child = fork_as(id);
    if (child < 0)
        cannot("clone3");
    if (child == 0) {
        prctl(PR_SET_NAME, "stranger");
        for (int i = 0; i < 500; i++) {
            ChildTwo();
            usleep(1000);
        }
        _exit(0);
    }
    printf("took %d\n", (int)child);
    fflush(stdout);
    reap(child);
    return 0;
}

static int heir(void)
{
    pid_t child = fork();
    if (child == 0) {
        ChildOne();
        _exit(0);
    }
    reap(child);
    printf("gone %d\n", (int)child);
    fflush(stdout);
    char line[16];
    if (fgets(line, sizeof line, stdin) != NULL)
        FirstLife();
    return 0;
}

static int successor(void)
{
    printf("ready\n");
    fflush(stdout);
    char line[16];
    if (fgets(line, sizeof line, stdin) == NULL)
        return 1;
    pid_t child = fork_as((pid_t)atoi(line));
    if (child < 0)
        cannot("clone3");
    if (child == 0) {
        until_probed((const void *)ChildOne);
        for (int i = 0; i < 3; i++)
            ChildOne();
        _exit(0);
    }
    printf("took %d\n", (int)child);
    fflush(stdout);
    reap(child);
    return 0;
}

int main(int argc, char **argv)
{
    wait_for_start();
    if (argc > 1 && strcmp(argv[1], "successor") == 0)
        return successor();
    if (argc > 2 && strcmp(argv[1], "stranger") == 0)
        return stranger((pid_t)argument(argc, argv, 2, 0));
    if (argc > 1 && strcmp(argv[1], "heir") == 0)
        return heir();
    pthread_t thread;
    must(pthread_create(&thread, NULL, First, NULL), "thread");
    must(pthread_join(thread, NULL), "join");
    void *same = NULL;
    int tries = 0;
    for (; same == NULL && tries < 500; tries++) {
        next_is(first_tid);
        must(pthread_create(&thread, NULL, Second, NULL), "thread");
        must(pthread_join(thread, &same), "join");
    }
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_NAME, "child one");
        until_probed((const void *)ChildOne);
        for (int i = 0; i < 3; i++)
            ChildOne();
        _exit(0);
    }
    reap(child);
    pid_t again = fork_as(child);
    if (again < 0)
        cannot("clone3");
    if (again == 0) {
        prctl(PR_SET_NAME, "child two");
        until_probed((const void *)ChildTwo);
        for (int i = 0; i < 5; i++)
            ChildTwo();
        _exit(0);
    }
    reap(again);
    printf("thread %s after %d tries, process %s\n", same == NULL ? "another" : "reborn", tries,
           again == child ? "reborn" : "another");
    return 0;
}
