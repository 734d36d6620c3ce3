/* A program that copies one of its functions into memory of its own and calls it there, as templates of just-in-time
   compilers and libraries that hook functions are. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

__attribute__((noinline, aligned(64))) uint64_t Template(uint64_t x)
{
    for (int i = 0; i < 5000; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

int main(void)
{
    char *memory =
        mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return 2;
    memcpy(memory, (void *)Template, 128);
    uint64_t (*copy)(uint64_t) = (uint64_t(*)(uint64_t))memory;
    uint64_t sum = Template(1);
    for (int i = 0; i < 2003; i++)
        sum = copy(sum);
    printf("%lx\n", (unsigned long)sum);
    return 0;
}
