/* Four threads that the scheduler is to treat differently: one is nice to the others, one stays on the last CPU that the
   process may use, two do neither. They carry their names.
   usage: placed [units 20000000] */
#define _GNU_SOURCE
#include "common.h"
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static uint64_t units;
static volatile uint64_t sink;

static NAMED void Work(void)
{
    sink = burn(units, 3);
}

static void *gentle(void *argument)
{
    (void)argument;
    if (setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 7) != 0)
        must(1, "setpriority");
    Work();
    return NULL;
}

static void *pinned(void *argument)
{
    (void)argument;
    cpu_set_t set, last;
    must(pthread_getaffinity_np(pthread_self(), sizeof set, &set), "pthread_getaffinity_np");
    CPU_ZERO(&last);
    for (int cpu = CPU_SETSIZE - 1; cpu >= 0; cpu--)
        if (CPU_ISSET(cpu, &set)) {
            CPU_SET(cpu, &last);
            printf("%d\n", cpu);
            break;
        }
    must(pthread_setaffinity_np(pthread_self(), sizeof last, &last), "pthread_setaffinity_np");
    Work();
    return NULL;
}

static void *plain(void *argument)
{
    (void)argument;
    Work();
    return NULL;
}

int main(int argc, char **argv)
{
    units = (uint64_t)argument(argc, argv, 1, 20000000);
    wait_for_start();
    static void *(*const roles[])(void *) = {gentle, pinned, plain, plain};
    static const char *const names[] = {"gentle", "pinned", "plain", "plain"};
    pthread_t ids[4];
    for (int i = 0; i < 4; i++) {
        must(pthread_create(&ids[i], NULL, roles[i], NULL), "pthread_create");
        must(pthread_setname_np(ids[i], names[i]), "pthread_setname_np");
    }
    for (int i = 0; i < 4; i++)
        must(pthread_join(ids[i], NULL), "pthread_join");
    return 0;
}
