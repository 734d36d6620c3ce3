/* Verify of the Quartz paper (Anderson and Lazowska 1989, section 4): a serial start, in which two input files are read and
   their structures are written to a log, then workers that share nothing. Logging takes 2 % of the CPU time, and a quarter
   of the run on 18 CPUs, since it is done alone; it is split between two functions that print.
   usage: startup [workers 18] [units 1000000000] [log 1]; without log nothing is logged */
#include "common.h"

enum { MOST = 256, LINES = 40 };

static long workers;
static uint64_t units;
static volatile uint64_t sink;

static NAMED void PrintGate(uint64_t line)
{
    sink = burn(units / 100 / LINES, line + 1);
}

static NAMED void PrintNet(uint64_t line)
{
    sink = burn(units / 100 / LINES, line + 2);
}

static NAMED void LogStructures(void)
{
    for (uint64_t line = 0; line < LINES; line++) {
        PrintGate(line);
        PrintNet(line);
    }
}

static NAMED void ReadInput(void)
{
    sink = burn(units * 58 / 10000, 7);
}

static NAMED void VerifyPart(uint64_t part)
{
    sink = burn(units * 9742 / 10000 / (uint64_t)workers, part + 3);
}

static void *worker(void *part)
{
    VerifyPart((uint64_t)part);
    return NULL;
}

int main(int argc, char **argv)
{
    workers = argument(argc, argv, 1, 18);
    units = (uint64_t)argument(argc, argv, 2, 1000000000);
    long log = argument(argc, argv, 3, 1);
    if (workers < 1 || workers > MOST) {
        fprintf(stderr, "%s: from 1 to %d workers\n", argv[0], MOST);
        return 2;
    }
    wait_for_start();
    ReadInput();
    if (log)
        LogStructures();
    pthread_t ids[MOST];
    for (long i = 0; i < workers; i++)
        must(pthread_create(&ids[i], NULL, worker, (void *)(uintptr_t)i), "pthread_create");
    for (long i = 0; i < workers; i++)
        must(pthread_join(ids[i], NULL), "pthread_join");
    printf("%ld workers\n", workers);
    return 0;
}
