/* 512 functions, called one after the other, and a mutex for every one of them, a thousand calls a second or so: much that
   can have probes, and little that is hit. Runs until its standard input ends, then prints how many calls it made. */
#include "common.h"
#include <poll.h>

static volatile long made;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

#define ONE(n) NAMED void Called##n(void) { pthread_mutex_lock(&mutex); made++; pthread_mutex_unlock(&mutex); }
#define EACH8(use, n) use(n##0) use(n##1) use(n##2) use(n##3) use(n##4) use(n##5) use(n##6) use(n##7)
#define EACH64(use, n) EACH8(use, n##0) EACH8(use, n##1) EACH8(use, n##2) EACH8(use, n##3) \
    EACH8(use, n##4) EACH8(use, n##5) EACH8(use, n##6) EACH8(use, n##7)
#define EACH512(use) EACH64(use, 0) EACH64(use, 1) EACH64(use, 2) EACH64(use, 3) \
    EACH64(use, 4) EACH64(use, 5) EACH64(use, 6) EACH64(use, 7)
EACH512(ONE)

#define NAME(n) Called##n,
static void (*const all[])(void) = {EACH512(NAME)};

int main(void)
{
    struct pollfd input = {.fd = 0, .events = POLLIN};
    puts("ready");
    fflush(stdout);
    for (size_t i = 0; poll(&input, 1, 0) == 0; i++) {
        all[i % (sizeof all / sizeof *all)]();
        usleep(1000);
    }
    printf("%ld\n", made);
    return 0;
}
