/* Four threads: "map" maps a buffer, touches its pages and unmaps it, again and again; "own" computes in memory of its own. Rounds. */
#include "common.h"
#include <sys/mman.h>

enum { THREADS = 4, PAGE = 4096, PAGES = 16 };

static int maps;
static long rounds;

NAMED void touch(char *buffer)
{
    for (size_t page = 0; page < PAGES; page++)
        buffer[page * PAGE] = 1;
}

NAMED void churn(void)
{
    char *buffer = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffer == MAP_FAILED)
        abort();
    touch(buffer);
    munmap(buffer, PAGES * PAGE);
}

static void *work(void *number)
{
    uint64_t seed = (size_t)number + 1;
    for (long i = 0; i < rounds; i++) {
        if (maps)
            churn();
        else
            seed = burn(20000, seed);
    }
    return (void *)(size_t)seed;
}

int main(int number, char **words)
{
    if (number < 3)
        return 2;
    maps = !strcmp(words[1], "map");
    rounds = atol(words[2]);
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
