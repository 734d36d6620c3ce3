/* Compares what of its own file is mapped and not to be written to, code and tables, with the file, every millisecond
   for a while: a byte that is another one was put there by somebody else, as a breakpoint is.
   usage: own_text [milliseconds]
   flags: -D_GNU_SOURCE */
#include "common.h"
#include <fcntl.h>
#include <link.h>

/* As much code and as many tables as a program in whose place this one may come. */
#define FUNCTION(n)                                                                                                    \
    __attribute__((noinline, used, aligned(512))) static uint64_t place##n(uint64_t x)                                 \
    {                                                                                                                  \
        for (uint64_t i = 0; i < x; i++)                                                                               \
            x ^= (i * (n + 5)) >> 2;                                                                                   \
        return x;                                                                                                      \
    }
#define EIGHT(n)                                                                                                       \
    FUNCTION(n##0) FUNCTION(n##1) FUNCTION(n##2) FUNCTION(n##3) FUNCTION(n##4) FUNCTION(n##5) FUNCTION(n##6) FUNCTION(n##7)
EIGHT(1) EIGHT(2) EIGHT(3) EIGHT(4)
__attribute__((used)) static const char table[1 << 16] = {1, 2, 3};

static int file, wrong;

static int compare(struct dl_phdr_info *program, size_t size, void *unused)
{
    static unsigned char bytes[1 << 20];
    for (int i = 0; i < program->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &program->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || part->p_flags & PF_W || part->p_filesz > sizeof bytes)
            continue;
        if (pread(file, bytes, part->p_filesz, part->p_offset) != (ssize_t)part->p_filesz)
            continue;
        const unsigned char *mapped = (const unsigned char *)(program->dlpi_addr + part->p_vaddr);
        for (size_t at = 0; at < part->p_filesz; at++)
            if (mapped[at] != bytes[at]) {
                printf("byte %#zx is %#x, %#x in the file\n", part->p_offset + at, mapped[at], bytes[at]);
                wrong = 1;
            }
    }
    /* The first one is the program. */
    return 1;
}

int main(int argc, char **argv)
{
    long ms = argument(argc, argv, 1, 3);
    file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    must(file < 0, "own program");
    for (long i = 0; i <= ms && !wrong; i++) {
        if (i > 0)
            usleep(1000);
        dl_iterate_phdr(compare, NULL);
    }
    return wrong ? 7 : 0;
}
