/* The program of the README: four threads parse rows and put them into one registry, whose lock they hold while they compute a
   row's digest. On one CPU nobody notices; on two the lock limits it.
   usage: store [threads 4] [rows of a thread 6000] [registries 1] [units of a parse 14000] [of a digest 25000]
   flags: -DBURN_IN_CALLER */
#include "common.h"

static struct registry {
    pthread_mutex_t gate;
    uint64_t digests, rows;
} registry = {.gate = PTHREAD_MUTEX_INITIALIZER}, more[63];

static uint64_t rows, registries, parse_units, digest_units;

static struct registry *registry_of(uint64_t row)
{
    uint64_t which = row % registries;
    return which == 0 ? &registry : &more[which - 1];
}

static NAMED uint64_t parse_row(uint64_t row)
{
    return burn(parse_units, row + 1);
}

static NAMED uint64_t digest_row(uint64_t parsed)
{
    return burn(digest_units, parsed | 1);
}

static NAMED void store_row(struct registry *into, uint64_t parsed)
{
    pthread_mutex_lock(&into->gate);
    into->digests ^= digest_row(parsed);
    into->rows++;
    pthread_mutex_unlock(&into->gate);
}

static void *worker(void *first)
{
    for (uint64_t row = (uint64_t)first; row < (uint64_t)first + rows; row++)
        store_row(registry_of(row), parse_row(row));
    return NULL;
}

int main(int argc, char **argv)
{
    long threads = argument(argc, argv, 1, 4);
    rows = (uint64_t)argument(argc, argv, 2, 6000);
    registries = (uint64_t)argument(argc, argv, 3, 1);
    parse_units = (uint64_t)argument(argc, argv, 4, 14000);
    digest_units = (uint64_t)argument(argc, argv, 5, 25000);
    if (threads < 1 || threads > 256 || registries < 1 || registries > 64) {
        fprintf(stderr, "store: 1 to 256 threads, 1 to 64 registries\n");
        return 2;
    }
    for (int i = 0; i < 63; i++)
        must(pthread_mutex_init(&more[i].gate, NULL), "pthread_mutex_init");
    wait_for_start();
    pthread_t workers[256];
    for (long i = 0; i < threads; i++)
        must(pthread_create(&workers[i], NULL, worker, (void *)(i * (long)rows)), "pthread_create");
    for (long i = 0; i < threads; i++)
        must(pthread_join(workers[i], NULL), "pthread_join");
    for (int i = 0; i < 63; i++) {
        registry.rows += more[i].rows;
        registry.digests ^= more[i].digests;
    }
    printf("%llu rows, digest %016llx\n", (unsigned long long)registry.rows, (unsigned long long)registry.digests);
    return 0;
}
