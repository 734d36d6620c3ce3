/* A storm of processes, as make, configure and shells make it: one after the other, each runs this program anew, works
   for a moment and ends.
   usage: storm [processes 200]
     Says how many microseconds that took.
   usage: storm task
     What each of them does. */
#include "common.h"
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;

static NAMED void ChildTask(void)
{
    sink = burn(1000, 5);
}

/* One child; whether it ended as it should. */
static __attribute__((noinline)) int run_one(void)
{
    pid_t child = vfork();
    if (child == 0) {
        execl("/proc/self/exe", "storm", "task", (char *)NULL);
        _exit(127);
    }
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "task") == 0) {
        for (int i = 0; i < 50; i++)
            ChildTask();
        return 0;
    }
    long processes = argument(argc, argv, 1, 200);
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (long i = 0; i < processes; i++) {
        if (!run_one())
            return 1;
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    printf("%ld\n", (to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000);
    return 0;
}
