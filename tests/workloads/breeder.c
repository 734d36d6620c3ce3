/* Starts children, which sleep for a while and then run another program; says how many did not end well. Its functions are
   spread over some pages: breakpoints at their places in a wrong file hit something there.
   usage: breeder COUNT fork|vfork|spawn|turns LEAST_MS MOST_MS AT_ONCE PROGRAM [ARGUMENT]
          children of fork and vfork sleep for so many milliseconds first; turns: by each of the three in turns
          breeder MS: works for so long, and ends well */
#include "common.h"
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static volatile uint64_t sink;

#define FUNCTION(n)                                                                                                    \
    static NAMED __attribute__((aligned(512))) void Place##n(uint64_t x)                                               \
    {                                                                                                                  \
        for (uint64_t i = 0; i < x; i++)                                                                               \
            sink += (sink ^ (i * (n + 3))) >> 3;                                                                       \
    }
#define EIGHT(n)                                                                                                       \
    FUNCTION(n##0) FUNCTION(n##1) FUNCTION(n##2) FUNCTION(n##3) FUNCTION(n##4) FUNCTION(n##5) FUNCTION(n##6) FUNCTION(n##7)
EIGHT(1) EIGHT(2) EIGHT(3) EIGHT(4)

#define CALLS(n) Place##n##0, Place##n##1, Place##n##2, Place##n##3, Place##n##4, Place##n##5, Place##n##6, Place##n##7
static void (*const places[])(uint64_t) = {CALLS(1), CALLS(2), CALLS(3), CALLS(4)};
#define PLACES (int)(sizeof places / sizeof *places)

static NAMED pid_t Start(int number, char how, int least_ms, int most_ms, char **words)
{
    /* The same in every run. */
    useconds_t us = least_ms * 1000 + (uint32_t)number * 2654435761u % ((uint32_t)(most_ms - least_ms) * 1000 + 1);
    pid_t pid;
    if (how == 't')
        how = "fvs"[number % 3];
    if (how == 's') {
        must(posix_spawn(&pid, words[0], NULL, NULL, words, environ), words[0]);
        return pid;
    }
    pid = how == 'v' ? vfork() : fork();
    if (pid == 0) {
        if (us)
            usleep(us);
        execv(words[0], words);
        _exit(9);
    }
    must(pid < 0, "fork");
    return pid;
}

static NAMED int Reap(void)
{
    int status;
    pid_t pid = wait(&status);
    must(pid < 0, "wait");
    if (status != 0)
        printf("child %d: status %x\n", pid, status);
    return status != 0;
}

int main(int argc, char **argv)
{
    if (argc == 2) {
        for (long ms = argument(argc, argv, 1, 0); ms > 0; ms--) {
            places[ms % PLACES](100000);
            usleep(1000);
        }
        return 0;
    }
    if (argc < 7)
        return 2;
    int count = argument(argc, argv, 1, 0), least_ms = argument(argc, argv, 3, 0), most_ms = argument(argc, argv, 4, 0);
    int at_once = argument(argc, argv, 5, 1), alive = 0, bad = 0;
    for (int number = 0; number < count; number++) {
        if (alive == at_once) {
            bad += Reap();
            alive--;
        }
        Start(number, argv[2][0], least_ms, most_ms, argv + 6);
        alive++;
        places[number % PLACES](1000);
    }
    while (alive-- > 0)
        bad += Reap();
    printf("%d children, %d bad\n", count, bad);
    return bad != 0;
}
