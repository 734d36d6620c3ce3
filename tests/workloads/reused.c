/* Code at one address that is two functions, one after the other: reused_first a quarter of the time, reused_second the rest.
   It is told as a jitdump in the current folder (HOW dump) or in /tmp/perf-PID.map (map). HOW move: reused_first moves to
   another address after a quarter and is all of it. x86-64 only. usage: reused HOW [milliseconds 1600] */
#include "common.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>

/* mov ecx,100000; 1: dec ecx; jnz 1b; ret */
static const unsigned char body[] = {0xb9, 0xa0, 0x86, 0x01, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0xc3};

static FILE *map, *dump;

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void put(uint64_t number, int bytes)
{
    fwrite(&number, bytes, 1, dump);
}

static void head(int kind, uint64_t bytes)
{
    put(kind, 4), put(bytes, 4), put(now_ns(), 8), put(getpid(), 4), put(getpid(), 4);
}

static void load(const char *name, void *at)
{
    if (map != NULL) {
        fprintf(map, "%lx %zx %s\n", (unsigned long)at, sizeof body, name);
        fflush(map);
        return;
    }
    head(0, 16 + 40 + strlen(name) + 1 + sizeof body);
    put((uint64_t)at, 8), put((uint64_t)at, 8), put(sizeof body, 8), put(1, 8);
    fwrite(name, strlen(name) + 1, 1, dump), fwrite(body, sizeof body, 1, dump);
    fflush(dump);
}

static void move(void *from, void *to)
{
    head(1, 16 + 48);
    put((uint64_t)to, 8), put((uint64_t)from, 8), put((uint64_t)to, 8), put(sizeof body, 8), put(1, 8);
    fflush(dump);
}

static void run(void *code, uint64_t ns)
{
    uint64_t end = now_ns() + ns;
    while (now_ns() < end)
        ((void (*)(void))code)();
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "dump";
    uint64_t quarter = argument(argc, argv, 2, 1600) * 250000ull;
    char path[64], *code = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int is_map = strcmp(how, "map") == 0;
    snprintf(path, sizeof path, is_map ? "/tmp/perf-%d.map" : "jit-%d.dump", (int)getpid());
    FILE *file = fopen(path, "w+");
    if (code == MAP_FAILED || file == NULL)
        exit(3);
    *(is_map ? &map : &dump) = file;
    if (!is_map) {
        put(0x4a695444, 4), put(1, 4), put(40, 4), put(62, 4), put(0, 4), put(getpid(), 4), put(now_ns(), 8), put(0, 8);
        fflush(dump);
        /* How whoever watches finds it. */
        mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0);
    }
    memcpy(code, body, sizeof body);
    load("reused_first", code);
    run(code, quarter);
    if (strcmp(how, "move") == 0) {
        memcpy(code + 4096, body, sizeof body);
        move(code, code + 4096);
        memset(code, 0xcc, sizeof body);
        run(code + 4096, 3 * quarter);
    } else {
        load("reused_second", code);
        run(code, 3 * quarter);
    }
    return 0;
}
