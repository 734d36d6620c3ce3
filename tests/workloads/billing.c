/* The skeleton of Ericsson's billing gateway without I/O: Broberg, Lundberg and Grahn 2001, section 4.3, Fig. 17. Two
   Readers get three packets each; each feeds a Sorter, which feeds two Writers. Writer is worth most on one and two
   CPUs, Sorter on more, and Reader more than Writer from four on (their Fig. 18).
   usage: billing [units of a sort 20000000] [percent of Reader's work 100] [of Sorter's 100] [of Writer's 100] */
#include "common.h"
#include <semaphore.h>

enum { LINES = 2, PACKETS = 3, WRITERS = 2 };

static sem_t to_sorter[LINES], to_writer[LINES][WRITERS];
static uint64_t read_units, sort_units, write_units;
static volatile uint64_t sink;

/* The two lines differ by a few percent, as real ones do: two that end at the same instant would leave nothing to gain
   from either alone. */
static uint64_t share(uint64_t units, long line, long less_percent)
{
    return units * (uint64_t)(100 - line * less_percent) / 100;
}

static NAMED void Reader(long line)
{
    sink = burn(share(read_units, line, 4), 3);
}

static NAMED void Sorter(long line)
{
    sink = burn(share(sort_units, line, 3), 5);
}

static NAMED void Writer(long line, long writer)
{
    sink = burn(share(write_units, line * WRITERS + writer, 2), 7);
}

static void take(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        ;
}

static void *reader(void *argument)
{
    long line = (long)argument;
    for (int packet = 0; packet < PACKETS; packet++) {
        Reader(line);
        sem_post(&to_sorter[line]);
    }
    return NULL;
}

static void *sorter(void *argument)
{
    long line = (long)argument;
    for (int packet = 0; packet < PACKETS; packet++) {
        take(&to_sorter[line]);
        Sorter(line);
        for (int writer = 0; writer < WRITERS; writer++)
            sem_post(&to_writer[line][writer]);
    }
    return NULL;
}

static void *writer(void *argument)
{
    long line = (long)argument / WRITERS, writer = (long)argument % WRITERS;
    for (int packet = 0; packet < PACKETS; packet++) {
        take(&to_writer[line][writer]);
        Writer(line, writer);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    uint64_t units = (uint64_t)argument(argc, argv, 1, 20000000);
    read_units = units * 75 / 100 * (uint64_t)argument(argc, argv, 2, 100) / 100;
    sort_units = units * (uint64_t)argument(argc, argv, 3, 100) / 100;
    write_units = units * 64 / 100 * (uint64_t)argument(argc, argv, 4, 100) / 100;
    for (int line = 0; line < LINES; line++) {
        sem_init(&to_sorter[line], 0, 0);
        for (int writer = 0; writer < WRITERS; writer++)
            sem_init(&to_writer[line][writer], 0, 0);
    }
    wait_for_start();
    pthread_t ids[LINES * (2 + WRITERS)];
    int count = 0;
    for (long line = 0; line < LINES; line++) {
        must(pthread_create(&ids[count++], NULL, reader, (void *)line), "pthread_create");
        must(pthread_create(&ids[count++], NULL, sorter, (void *)line), "pthread_create");
    }
    for (long i = 0; i < LINES * WRITERS; i++)
        must(pthread_create(&ids[count++], NULL, writer, (void *)i), "pthread_create");
    for (int i = 0; i < count; i++)
        must(pthread_join(ids[i], NULL), "pthread_join");
    printf("%d packets through %d threads\n", LINES * PACKETS, count);
    return 0;
}
