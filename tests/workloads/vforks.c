/* main -> vforks_outer -> vforks_middle -> vforks_spawns -> vfork, whose child sleeps 2 ms. usage: vforks [times 150] */
#include "common.h"

#include <sys/wait.h>
#include <time.h>

static volatile uint64_t sink;

NAMED void vforks_spawns(void)
{
    pid_t child = vfork();
    if (child == 0) {
        struct timespec time = {0, 2000000};
        nanosleep(&time, NULL);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    sink++;
}

NAMED void vforks_middle(void)
{
    vforks_spawns();
    sink++;
}

NAMED void vforks_outer(void)
{
    vforks_middle();
    sink++;
}

int main(int argc, char **argv)
{
    long times = argument(argc, argv, 1, 150);
    wait_for_start();
    for (long i = 0; i < times; i++)
        vforks_outer();
    return 0;
}
