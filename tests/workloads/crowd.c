/* Threads that all end at once: crowd THREADS. Each sleeps and counts until standard input has a line or ends; then all
   end, and the program with them. Says "ready" when all are there. */
#include "common.h"

#include <stdatomic.h>
#include <time.h>

static atomic_int over;
static atomic_long counted;

NAMED void Tick(void)
{
    counted++;
}

static void *live(void *unused)
{
    (void)unused;
    while (!over) {
        Tick();
        nanosleep(&(struct timespec){ .tv_nsec = 100 * 1000 * 1000 }, NULL);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    long threads = argument(argc, argv, 1, 1000);
    pthread_t *all = calloc((size_t)threads, sizeof *all);
    pthread_attr_t small;
    pthread_attr_init(&small);
    must(pthread_attr_setstacksize(&small, 64 << 10), "pthread_attr_setstacksize");
    for (long thread = 0; thread < threads; thread++)
        must(pthread_create(&all[thread], &small, live, NULL), "pthread_create");
    puts("ready");
    fflush(stdout);
    getchar();
    over = 1;
    for (long thread = 0; thread < threads; thread++)
        pthread_join(all[thread], NULL);
    printf("%d\n", counted >= threads);
    return 0;
}
