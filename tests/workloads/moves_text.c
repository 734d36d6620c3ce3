/* A program that moves its own text to anonymous pages when it starts, as those do that want it on huge pages.
   usage: moves_text [rounds 2003] */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

__attribute__((noinline)) uint64_t Mixed(uint64_t x)
{
    for (int i = 0; i < 5000; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

/* Calls nothing of the program's own between copying and moving. */
static int moved(void)
{
    unsigned long from = 0, to = 0;
    char line[512], right[8];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %7s", &from, &to, right) == 3 && !strcmp(right, "r-xp") &&
            (uintptr_t)Mixed >= from && (uintptr_t)Mixed < to)
            break;
    if (!maps || fclose(maps))
        return 0;
    void *copy = mmap(0, to - from, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED)
        return 0;
    memcpy(copy, (void *)from, to - from);
    return !mprotect(copy, to - from, PROT_READ | PROT_EXEC) &&
           mremap(copy, to - from, to - from, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)from) != MAP_FAILED;
}

int main(int argc, char **argv)
{
    int done = moved(), rounds = argc > 1 ? atoi(argv[1]) : 2003;
    uint64_t sum = 1;
    for (int i = 0; i < rounds; i++)
        sum = Mixed(sum);
    printf("%d %lx\n", done, (unsigned long)sum);
    return 0;
}
