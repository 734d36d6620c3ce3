/* Functions and locks with long names: overloads, a namespace, a template, and mutexes inside of variables, one of them at
 * the very start. "names ROUNDS" takes each mutex so often in each of two threads. */
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <pthread.h>
#include <thread>

struct work {
    pthread_mutex_t first;
    long rounds;
    pthread_mutex_t second;
};
struct work work = {PTHREAD_MUTEX_INITIALIZER, 0, PTHREAD_MUTEX_INITIALIZER};

namespace shop {
struct Cart {
    std::mutex lock;
    long sum;
};
Cart carts[3];
__attribute__((noinline)) void update_table(volatile long *sum)
{
    for (int i = 0; i < 2000; i++)
        *sum += i;
}
__attribute__((noinline)) void update_index(volatile long *sum)
{
    for (int i = 0; i < 1000; i++)
        *sum += i;
}
template <typename T> __attribute__((noipa)) T totals(volatile T *sum)
{
    for (int i = 0; i < 500; i++)
        *sum += i;
    return *sum;
}
} // namespace shop

static void run(long rounds)
{
    for (long i = 0; i < rounds; i++) {
        pthread_mutex_lock(&work.first);
        shop::update_table(&work.rounds);
        pthread_mutex_unlock(&work.first);
        pthread_mutex_lock(&work.second);
        pthread_mutex_unlock(&work.second);
        std::lock_guard<std::mutex> guard(shop::carts[1].lock);
        shop::update_index(&shop::carts[1].sum);
        shop::totals(&shop::carts[1].sum);
    }
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1;
    std::thread one(run, rounds), two(run, rounds);
    one.join();
    two.join();
    printf("%ld\n", work.rounds);
    return 0;
}
