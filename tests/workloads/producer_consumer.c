/* coz's producer-consumer, rebuilt: items go through a short queue. Consuming one takes ten units for every seven of
   producing one, so on two CPUs Consume can gain 30 % before Produce limits the run.
   usage: producer_consumer [items 211] [units 40000] [percent of Produce 100] [percent of Consume 100] */
#include "common.h"

enum { ROOM = 8 };

static uint64_t units, produce_percent, consume_percent;
static volatile uint64_t sink[2];
static long queue[ROOM];
static int filled, first;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER, less = PTHREAD_COND_INITIALIZER;

static NAMED void Produce(void)
{
    sink[0] = burn(7 * units * produce_percent / 100, 7);
}

static NAMED void Consume(long item)
{
    sink[1] = burn(10 * units * consume_percent / 100, (uint64_t)item | 1);
}

static void *consumer(void *argument)
{
    for (long left = *(long *)argument; left > 0; left--) {
        must(pthread_mutex_lock(&lock), "pthread_mutex_lock");
        while (filled == 0)
            must(pthread_cond_wait(&more, &lock), "pthread_cond_wait");
        long item = queue[first];
        first = (first + 1) % ROOM;
        filled--;
        must(pthread_cond_signal(&less), "pthread_cond_signal");
        must(pthread_mutex_unlock(&lock), "pthread_mutex_unlock");
        Consume(item);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    long items = argument(argc, argv, 1, 211);
    units = (uint64_t)argument(argc, argv, 2, 40000);
    produce_percent = (uint64_t)argument(argc, argv, 3, 100);
    consume_percent = (uint64_t)argument(argc, argv, 4, 100);
    wait_for_start();
    pthread_t thread;
    must(pthread_create(&thread, NULL, consumer, &items), "pthread_create");
    for (long item = 0; item < items; item++) {
        Produce();
        must(pthread_mutex_lock(&lock), "pthread_mutex_lock");
        while (filled == ROOM)
            must(pthread_cond_wait(&less, &lock), "pthread_cond_wait");
        queue[(first + filled) % ROOM] = item;
        filled++;
        must(pthread_cond_signal(&more), "pthread_cond_signal");
        must(pthread_mutex_unlock(&lock), "pthread_mutex_unlock");
    }
    must(pthread_join(thread, NULL), "pthread_join");
    printf("%ld items\n", items);
    return 0;
}
