/* A library that copies code to memory which it makes executable, as those do that put hooks into functions. */
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

void *hooked(const void *function, size_t length)
{
    void *memory = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED)
        memcpy(memory, function, length);
    return memory;
}
