/* A program that makes code while it runs, and tells of it in one of the ways of just-in-time compilers. "jit SECONDS HOW":
 * made_hot computes three times as long as made_cold. HOW is map (/tmp/perf-PID.map, at once), late (the same, at the
 * end), open (the same, writable for everybody), or dump (jitdump in the current folder, with lines). x86-64 only. */
#include "common.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

/* push rbp; mov rbp, rsp; mov rax, rdi; 1: dec rax; jnz 1b; pop rbp; ret */
static const unsigned char body[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8, 0x48, 0xff, 0xc8, 0x75, 0xfb, 0x5d, 0xc3};
typedef void (*made)(unsigned long rounds);

static char map_path[64];

static void write_map(const char *code, int open_to_all)
{
    FILE *map = fopen(map_path, "w");
    if (map == NULL)
        exit(3);
    fprintf(map, "%lx %zx made_hot\n%lx %zx made_cold\n", (long)code, sizeof body, (long)code + 64, sizeof body);
    fclose(map);
    chmod(map_path, open_to_all ? 0666 : 0644);
}

static void put(FILE *file, uint64_t number, int bytes)
{
    fwrite(&number, bytes, 1, file);
}

static void put_code(FILE *dump, const char *code, const char *name, int line)
{
    /* Lines: one for all of it. Then the code. */
    put(dump, 2, 4), put(dump, 16 + 16 + 16 + sizeof "made.toy", 4), put(dump, 0, 8);
    put(dump, (uint64_t)code, 8), put(dump, 1, 8);
    put(dump, (uint64_t)code, 8), put(dump, line, 4), put(dump, 0, 4), fwrite("made.toy", sizeof "made.toy", 1, dump);
    put(dump, 0, 4), put(dump, 16 + 40 + strlen(name) + 1 + sizeof body, 4), put(dump, 0, 8);
    put(dump, getpid(), 4), put(dump, getpid(), 4), put(dump, (uint64_t)code, 8), put(dump, (uint64_t)code, 8);
    put(dump, sizeof body, 8), put(dump, line, 8), fwrite(name, strlen(name) + 1, 1, dump), fwrite(body, sizeof body, 1, dump);
}

static void write_dump(const char *code)
{
    char path[64];
    snprintf(path, sizeof path, "jit-%d.dump", (int)getpid());
    FILE *dump = fopen(path, "w+");
    if (dump == NULL)
        exit(3);
    put(dump, 0x4a695444, 4), put(dump, 1, 4), put(dump, 40, 4), put(dump, 62, 4), put(dump, 0, 4), put(dump, getpid(), 4);
    put(dump, 0, 8), put(dump, 0, 8);
    put_code(dump, code, "made_hot", 7);
    put_code(dump, code + 64, "made_cold", 9);
    fflush(dump);
    /* How whoever watches finds it. */
    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0);
}

int main(int argc, char **argv)
{
    const char *how = argc > 2 ? argv[2] : "map";
    char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED)
        exit(3);
    memcpy(code, body, sizeof body);
    memcpy(code + 64, body, sizeof body);
    snprintf(map_path, sizeof map_path, "/tmp/perf-%d.map", (int)getpid());
    if (strcmp(how, "dump") == 0)
        write_dump(code);
    else if (strcmp(how, "late") != 0)
        write_map(code, strcmp(how, "open") == 0);
    wait_for_start();
    time_t end = time(NULL) + argument(argc, argv, 1, 2);
    while (time(NULL) < end) {
        ((made)code)(3000000);
        ((made)(code + 64))(1000000);
    }
    if (strcmp(how, "late") == 0)
        write_map(code, 0);
    return 0;
}
