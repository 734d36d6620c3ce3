/* A program that copies one of its functions into memory of its own and calls it there, as templates of just-in-time
   compilers and libraries that hook functions are, patches another one, or compares its code with its file, as modules of
   cryptography do. WAY: the way in which it does. With HOOK the copying is left to a library (hooks.c). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LENGTH = 4096, ANONYMOUS = MAP_PRIVATE | MAP_ANONYMOUS };

__attribute__((noinline, aligned(64))) uint64_t Template(uint64_t x)
{
    for (int i = 0; i < 5000; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

__attribute__((noinline, aligned(64))) uint64_t Patched(uint64_t x)
{
    for (int i = 0; i < 3; i++)
        x = x * 3 + (x >> 7);
    return x;
}

static void *anonymous(void)
{
#if WAY == 1
    /* Through a pointer, with a protection that is reckoned. */
    void *(*volatile map)(void *, size_t, int, int, int, off_t) = mmap;
    return map(0, LENGTH, getpid() ? 7 : 3, ANONYMOUS, -1, 0);
#elif WAY == 2
    return (void *)syscall(SYS_mmap, 0, LENGTH, 7, ANONYMOUS, -1, 0);
#elif WAY == 3
    long result;
    register long flags __asm__("r10") = ANONYMOUS, file __asm__("r8") = -1, offset __asm__("r9") = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"((long)SYS_mmap), "D"(0L), "S"((long)LENGTH), "d"(7L), "r"(flags), "r"(file), "r"(offset)
                     : "rcx", "r11", "memory");
    return (void *)result;
#elif WAY == 6
    /* All memory can be executed from now on. */
    personality(personality(0xffffffff) | READ_IMPLIES_EXEC);
    return mmap(0, LENGTH, PROT_READ | PROT_WRITE, ANONYMOUS, -1, 0);
#elif WAY == 7
    int shared = shmget(IPC_PRIVATE, LENGTH, IPC_CREAT | 0700);
    void *memory = shmat(shared, 0, SHM_EXEC);
    shmctl(shared, IPC_RMID, 0);
    return memory;
#else
    return mmap(0, LENGTH, PROT_READ | PROT_WRITE | PROT_EXEC, ANONYMOUS, -1, 0);
#endif
}

extern void *hooked(const void *function, size_t length);

static char *copied(void)
{
#ifdef HOOK
    return hooked((void *)Template, 128);
#elif WAY == 4
    /* A file in memory that is mapped to be executed. */
    int file = memfd_create("copy", 0);
    if (file < 0 || write(file, (void *)Template, 128) != 128)
        return MAP_FAILED;
    return mmap(0, LENGTH, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
#else
    char *memory = anonymous();
    if (memory != MAP_FAILED)
        memcpy(memory, (void *)Template, 128);
    return memory;
#endif
}

#if WAY == 8
extern char __executable_start;

/* Whether the code of Template and Patched is what the file has there. */
static int is_whole(void)
{
    static unsigned char bytes[1 << 20];
    int file = open("/proc/self/exe", O_RDONLY);
    ssize_t length = read(file, bytes, sizeof bytes);
    close(file);
    const void *functions[] = {(void *)Template, (void *)Patched};
    for (int i = 0; i < 2; i++) {
        size_t offset = (const char *)functions[i] - &__executable_start;
        if (length < 0 || (size_t)length < offset + 64 || memcmp(bytes + offset, functions[i], 64))
            return 0;
    }
    return 1;
}
#endif

int main(void)
{
    uint64_t sum = Template(1);
#if WAY == 8
    for (int i = 0; i < 500; i++) {
        sum = Template(sum) + Patched(sum);
        if (!is_whole())
            return 3;
        usleep(1000);
    }
#elif WAY == 5
    /* `mov $7, %eax; ret` over a function and back, past all protections. */
    unsigned char code[] = {0xb8, 7, 0, 0, 0, 0xc3}, saved[sizeof code];
    memcpy(saved, (void *)Patched, sizeof saved);
    int file = open("/proc/self/mem", O_RDWR);
    for (int i = 0; i < 100; i++) {
        const unsigned char *bytes = i & 1 ? saved : code;
        if (pwrite(file, bytes, sizeof code, (off_t)(uintptr_t)Patched) != sizeof code)
            return 2;
        sum = sum * 31 + Patched(sum) + *(unsigned char *)Patched;
        usleep(2000);
    }
#else
    char *memory = copied();
    if (memory == MAP_FAILED)
        return 2;
    /* For one who attaches: until the end of its input. */
    if (getenv("WAIT"))
        getchar();
    uint64_t (*copy)(uint64_t) = (uint64_t(*)(uint64_t))memory;
    for (int i = 0; i < 2003; i++)
        sum = copy(sum);
#endif
    printf("%lx\n", (unsigned long)sum);
    return 0;
}
