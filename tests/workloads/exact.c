/* Calls one function exactly so often, on one thread, and says so. usage: exact [calls] [wait]: with "wait" it says
   "ready" first, begins when a line comes and ends with its input. */
#include "common.h"

static volatile uint64_t sink;

NAMED void Counted(uint64_t number) { sink += number; }

int main(int argc, char **argv)
{
    long calls = argument(argc, argv, 1, 1000);
    char line[16];
    if (argc > 2) {
        puts("ready");
        fflush(stdout);
        if (fgets(line, sizeof line, stdin) == NULL)
            return 1;
    }
    for (long i = 0; i < calls; i++)
        Counted((uint64_t)i);
    printf("%ld calls\n", calls);
    fflush(stdout);
    while (argc > 2 && fgets(line, sizeof line, stdin) != NULL)
        continue;
    return 0;
}
