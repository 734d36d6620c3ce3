/* Two threads that fill a buffer again and again: "fresh" gives it back to the kernel each time and asks for it again, "kept" uses the
   same one. Rounds. */
#include "common.h"
#include <sys/mman.h>

enum { THREADS = 2, PAGE = 4096, PAGES = 64 };

static int fresh;
static long rounds;

NAMED void fill(char *buffer)
{
    for (size_t page = 0; page < PAGES; page++)
        buffer[page * PAGE] = 1;
}

static char *buffer_of(void)
{
    void *buffer = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffer == MAP_FAILED)
        abort();
    return buffer;
}

static void *work(void *number)
{
    uint64_t seed = (size_t)number + 1;
    char *kept = buffer_of();
    for (long i = 0; i < rounds; i++) {
        char *buffer = fresh ? buffer_of() : kept;
        fill(buffer);
        seed = burn(2000, seed);
        if (fresh)
            munmap(buffer, PAGES * PAGE);
    }
    return (void *)(size_t)seed;
}

int main(int number, char **words)
{
    if (number < 3)
        return 2;
    fresh = !strcmp(words[1], "fresh");
    rounds = atol(words[2]);
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
