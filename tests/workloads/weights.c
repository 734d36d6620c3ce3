/* Segments with a weight above one and below zero: the shapes of Broberg, Lundberg and Grahn 2001, Fig. 7 and Fig. 8,
   as the text describes them. Four threads compete for three CPUs for a while.

   7: Thick makes two things earlier, the end of the run and the end of After, and with that the time in which four
      threads run is shorter: on three CPUs its weight is 4/3, on two 1.
   8: Thick is not on the way to the end, but After begins earlier without it, while the fourth thread still runs: on
      three CPUs its weight is -1/3.

   usage: weights [figure 7] [units 30000000] */
#include "common.h"
#include <semaphore.h>

static sem_t after_thick, late;
static uint64_t unit;
static volatile uint64_t sink;

static void compute(double units)
{
    sink = burn((uint64_t)((double)unit * units), 19);
}

static void take(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        ;
}

static NAMED void Thick(double units)
{
    compute(units);
}

static NAMED void Rest(double units)
{
    compute(units);
}

static NAMED void After(double units)
{
    compute(units);
}

static NAMED void Beside(double units)
{
    compute(units);
}

static long figure;

static void *first(void *argument)
{
    (void)argument;
    take(&after_thick);
    After(2);
    return NULL;
}

static void *second(void *argument)
{
    (void)argument;
    Thick(figure == 7 ? 2 : 1);
    sem_post(&after_thick);
    Rest(figure == 7 ? 5 : 4);
    return NULL;
}

static void *third(void *argument)
{
    (void)argument;
    Beside(3);
    sem_post(&late);
    Beside(figure == 7 ? 2.5 : 3);
    return NULL;
}

static void *fourth(void *argument)
{
    (void)argument;
    if (figure == 7)
        take(&late);
    Beside(2);
    return NULL;
}

int main(int argc, char **argv)
{
    figure = argument(argc, argv, 1, 7);
    unit = (uint64_t)argument(argc, argv, 2, 30000000);
    if (figure != 7 && figure != 8) {
        fprintf(stderr, "%s: figure 7 or 8\n", argv[0]);
        return 2;
    }
    sem_init(&after_thick, 0, 0);
    sem_init(&late, 0, 0);
    wait_for_start();
    void *(*const bodies[])(void *) = {first, second, third, fourth};
    pthread_t ids[4];
    for (int i = 0; i < 4; i++)
        must(pthread_create(&ids[i], NULL, bodies[i], NULL), "pthread_create");
    for (int i = 0; i < 4; i++)
        must(pthread_join(ids[i], NULL), "pthread_join");
    printf("figure %ld\n", figure);
    return 0;
}
