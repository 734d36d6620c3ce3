/* Calls Tick() about every millisecond, N times, and writes down when (CLOCK_MONOTONIC nanoseconds, one number a line): what a
 * recording that was cut off holds can be held against it. Usage: ticks FILE N */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

__attribute__((noinline)) void Tick(FILE *file) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    fprintf(file, "%ld%09ld\n", now.tv_sec, now.tv_nsec);
}

int main(int count, char **words) {
    FILE *file = count == 3 ? fopen(words[1], "w") : NULL;
    if (!file)
        return 2;
    for (long left = atol(words[2]); left > 0; left--) {
        struct timespec pause = {0, 1000000};
        Tick(file);
        nanosleep(&pause, NULL);
    }
    if (fclose(file) != 0)
        return 3;
    puts("done");
    return 0;
}
