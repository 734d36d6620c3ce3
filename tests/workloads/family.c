/* A process that starts child processes, each with a call of ChildWork.
   usage: family [children 5] [pause before a child's work, in milliseconds 10] */
#include "common.h"
#include <sys/wait.h>

static volatile uint64_t sink;

static NAMED void ChildWork(void)
{
    sink = burn(2000000, 5);
}

static NAMED void ParentWork(void)
{
    sink = burn(2000000, 5);
}

int main(int argc, char **argv)
{
    long children = argument(argc, argv, 1, 5), pause = argument(argc, argv, 2, 10), good = 0;
    wait_for_start();
    for (long i = 0; i < children; i++) {
        ParentWork();
        pid_t child = fork();
        if (child == 0) {
            usleep((useconds_t)pause * 1000);
            ChildWork();
            _exit(0);
        }
        int status = 1;
        if (child > 0 && waitpid(child, &status, 0) == child)
            good += status == 0;
    }
    printf("%ld children\n", good);
    return 0;
}
