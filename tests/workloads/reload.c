/* Two libraries, one after the other at the same addresses, each with a function that takes half of the time.
   usage: reload LIBRARY FUNCTION LIBRARY FUNCTION [milliseconds each 700]
   flags: -ldl */
#include "common.h"

#include <dlfcn.h>
#include <time.h>

static long now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
    wait_for_start();
    void *before = NULL;
    for (int i = 1; i <= 3 && argc > 4; i += 2) {
        void *library = dlopen(argv[i], RTLD_NOW);
        if (library == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            return 77;
        }
        void *found = dlsym(library, argv[i + 1]);
        if (before != NULL)
            printf("%s\n", found == before ? "at the same address" : "elsewhere");
        before = found;
        long end = now_ms() + argument(argc, argv, 5, 700);
        while (now_ms() < end)
            ((void (*)(void))found)();
        dlclose(library);
    }
    return 0;
}
