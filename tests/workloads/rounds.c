/* A pool of two processes that computes a list of tasks in rounds. "rounds uneven ROUNDS": one process has three times the work of
 * the other in each round, not always the same one. "rounds even ROUNDS": both have the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile long sink;

__attribute__((noinline)) static void evaluate(int units)
{
    for (long i = 0; i < units * 4000000L; i++)
        sink += i;
}

int main(int argc, char **argv)
{
    int is_uneven = argc > 1 && !strcmp(argv[1], "uneven"), rounds = argc > 2 ? atoi(argv[2]) : 8;
    int tasks[2][2], done[2];
    if (pipe(done))
        return 1;
    for (int worker = 0; worker < 2; worker++) {
        if (pipe(tasks[worker]))
            return 1;
        if (fork() == 0) {
            close(tasks[worker][1]);
            for (char units; read(tasks[worker][0], &units, 1) == 1;) {
                evaluate(units);
                if (write(done[1], "", 1) != 1)
                    _exit(1);
            }
            _exit(0);
        }
        close(tasks[worker][0]);
    }
    for (int round = 0; round < rounds; round++) {
        char end, units[2] = {2, 2};
        if (is_uneven)
            units[round % 2] = 6;
        for (int worker = 0; worker < 2; worker++)
            if (write(tasks[worker][1], &units[worker], 1) != 1)
                return 1;
        for (int worker = 0; worker < 2; worker++)
            if (read(done[0], &end, 1) != 1)
                return 1;
    }
    for (int worker = 0; worker < 2; worker++)
        close(tasks[worker][1]);
    while (wait(NULL) > 0)
        ;
    return 0;
}
