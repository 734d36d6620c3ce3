/* Functions of which the one with the most CPU time is not the one to improve, on two CPUs.
   side: Front (70) and Back (30) one after the other, beside Side (80): less of Side gains nothing.
   twins: Prepare (40), then Left (100) and Right (96) side by side: less of one of them gains next to nothing.
   branches: Long (40) beside five threads with Short (10 each): Long goes on alone.
   usage: rivals [shape 0: side, 1: twins, 2: branches] [units of one 1000000] [percent of the first function 100]
   [of the second 100] [of the third 100] */
#include "common.h"

enum { SHORTS = 5 };

static uint64_t units, percent[3];
static volatile uint64_t sink[8];

#define FUNCTION(name, number, size) \
    static NAMED void *name(void *place) \
    { \
        sink[(uintptr_t)place] = burn((size) * units * percent[number] / 100, (uintptr_t)place + 3); \
        return NULL; \
    }

FUNCTION(Front, 0, 70)
FUNCTION(Back, 1, 30)
FUNCTION(Side, 2, 80)
FUNCTION(Prepare, 0, 40)
FUNCTION(Left, 1, 100)
FUNCTION(Right, 2, 96)
FUNCTION(Long, 0, 40)
FUNCTION(Short, 1, 10)

static pthread_t started(void *(*function)(void *), uintptr_t place)
{
    pthread_t thread;
    must(pthread_create(&thread, NULL, function, (void *)place), "pthread_create");
    return thread;
}

int main(int argc, char **argv)
{
    long shape = argument(argc, argv, 1, 0);
    units = (uint64_t)argument(argc, argv, 2, 1000000);
    for (int i = 0; i < 3; i++)
        percent[i] = (uint64_t)argument(argc, argv, 3 + i, 100);
    wait_for_start();
    pthread_t threads[SHORTS + 1];
    int count = 0;
    if (shape == 0) {
        threads[count++] = started(Side, 1);
        Front(NULL);
        Back(NULL);
    } else if (shape == 1) {
        Prepare(NULL);
        threads[count++] = started(Left, 1);
        threads[count++] = started(Right, 2);
    } else {
        for (int i = 0; i < SHORTS; i++)
            threads[count++] = started(Short, (uintptr_t)i + 1);
        threads[count++] = started(Long, 0);
    }
    for (int i = 0; i < count; i++)
        must(pthread_join(threads[i], NULL), "pthread_join");
    printf("shape %ld\n", shape);
    return 0;
}
