/* Reads a file past the kernel's cache, and puts what it has written on the disk, ROUNDS times each.
   usage: disk FILE [rounds 20]
   ends with 77 where the file lies on something that is no disk */
#define _GNU_SOURCE
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/vfs.h>

/* Long enough for a disk that a thread is off its CPU before it is done. */
#define BLOCK (1 << 20)
#define TMPFS 0x01021994

static void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(errno == EINVAL || errno == EOPNOTSUPP ? 77 : 2);
}

NAMED static void read_one(int file, char *block, long round)
{
    if (pread(file, block, BLOCK, round * BLOCK) != BLOCK)
        fail("pread");
}

NAMED static void write_one(int file, const char *block, long round)
{
    if (pwrite(file, block, BLOCK, round * BLOCK) != BLOCK)
        fail("pwrite");
    if (fsync(file) != 0)
        fail("fsync");
}

int main(int argc, char **argv)
{
    long rounds = argument(argc, argv, 2, 20);
    struct statfs system;
    void *block;
    int file = argc > 1 ? open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600) : -1;
    if (file < 0 || posix_memalign(&block, 4096, BLOCK) != 0)
        fail("open");
    if (fstatfs(file, &system) == 0 && system.f_type == TMPFS) {
        fputs("it lies in memory\n", stderr);
        return 77;
    }
    memset(block, 'x', BLOCK);
    for (long round = 0; round < rounds; round++)
        write_one(file, block, round);
    int direct = open(argv[1], O_RDONLY | O_DIRECT);
    if (direct < 0)
        fail("open");
    for (long round = 0; round < rounds; round++)
        read_one(direct, block, round);
    return 0;
}
