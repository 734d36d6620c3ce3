/* Loads a library while it runs: calls one function of it from the first instant on, and two others so many times when
   its input says so, or ends.
   usage: loader LIBRARY [times 200]
   flags: -ldl */
#include "common.h"

#include <dlfcn.h>
#include <poll.h>

static void (*entry(void *library, const char *name))(void)
{
    void *found = dlsym(library, name);
    if (found == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    return (void (*)(void))found;
}

int main(int argc, char **argv)
{
    long times = argument(argc, argv, 2, 200);
    wait_for_start();
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 77;
    }
    void (*early)(void) = entry(library, "plugin_early");
    void (*late)(void) = entry(library, "plugin_late");
    void (*take)(void) = entry(library, "plugin_take");
    puts("loaded");
    fflush(stdout);
    struct pollfd input = { .fd = 0, .events = POLLIN };
    do
        early();
    while (poll(&input, 1, 1) == 0);
    for (long i = 0; i < times; i++) {
        late();
        take();
    }
    return 0;
}
