/* The parallel quick sort of Broberg, Lundberg and Grahn 2001, section 4.1: threads are created as long as a part
   holds more than `threshold` integers; below it the recursion stays in one thread.
   usage: quicksort [rounds 1000] [size 2000000] [threshold 100000] [percent more work in ParallelQuickSort 0]
   [in RecursiveQuickSort 0]; 25 percent more, then none, is an optimization by 20 percent. */
#include "common.h"
#include <time.h>

static int *data;
static long threshold, more_parallel, more_recursive;
static volatile uint64_t sink;

static inline int64_t cpu_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000 + now.tv_nsec;
}

/* So many percent more than what this thread has computed since then. */
static inline void compute_more(long percent, int64_t since)
{
    int64_t end = cpu_time();
    end += (end - since) * percent / 100;
    while (cpu_time() < end)
        sink = burn(1000, 7);
}

struct range {
    long left, right;
};

/* Sorts around the element in the middle and returns the first index of the right part: part of its callers. */
static inline __attribute__((always_inline)) long partition(long left, long right, long *left_end)
{
    int pivot = data[left + (right - left) / 2];
    long i = left, j = right;
    while (i <= j) {
        while (data[i] < pivot)
            i++;
        while (data[j] > pivot)
            j--;
        if (i <= j) {
            int swap = data[i];
            data[i++] = data[j];
            data[j--] = swap;
        }
    }
    *left_end = j;
    return i;
}

/* The recursion proper: called about as often as there are integers. */
static NAMED void SortRange(long left, long right)
{
    if (left >= right)
        return;
    long left_end, right_start = partition(left, right, &left_end);
    SortRange(left, left_end);
    SortRange(right_start, right);
}

/* The outermost call of the recursion, a function of its own: it is called twice a leaf, so that it can be followed
   when SortRange is too hot to be. */
static NAMED void RecursiveQuickSort(long left, long right)
{
    if (left >= right)
        return;
    int64_t start = more_recursive > 0 ? cpu_time() : 0;
    long left_end, right_start = partition(left, right, &left_end);
    SortRange(left, left_end);
    SortRange(right_start, right);
    if (more_recursive > 0)
        compute_more(more_recursive, start);
}

static NAMED void *ParallelQuickSort(void *argument)
{
    struct range *range = argument;
    long left = range->left, right = range->right, left_end;
    if (left >= right)
        return NULL;
    int64_t start = more_parallel > 0 ? cpu_time() : 0;
    long right_start = partition(left, right, &left_end);
    if (more_parallel > 0)
        compute_more(more_parallel, start);
    if (right - left > threshold) {
        struct range halves[2] = {{left, left_end}, {right_start, right}};
        pthread_t threads[2];
        for (int i = 0; i < 2; i++)
            must(pthread_create(&threads[i], NULL, ParallelQuickSort, &halves[i]), "pthread_create");
        for (int i = 0; i < 2; i++)
            must(pthread_join(threads[i], NULL), "pthread_join");
    } else {
        RecursiveQuickSort(left, left_end);
        RecursiveQuickSort(right_start, right);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    long rounds = argument(argc, argv, 1, 1000);
    long size = argument(argc, argv, 2, 2000000);
    threshold = argument(argc, argv, 3, 100000);
    more_parallel = argument(argc, argv, 4, 0);
    more_recursive = argument(argc, argv, 5, 0);
    int *random = malloc(sizeof(int) * (size_t)(size + 1));
    data = malloc(sizeof(int) * (size_t)(size + 1));
    if (data == NULL || random == NULL)
        must(12, "malloc");
    uint64_t seed = 88172645463325252u;
    for (long i = 0; i < size; i++) {
        seed = burn(1, seed);
        random[i] = (int)(seed >> 33);
    }
    wait_for_start();
    for (long round = 0; round < rounds; round++) {
        memcpy(data, random, sizeof(int) * (size_t)size);
        struct range all = {0, size - 1};
        ParallelQuickSort(&all);
        for (long i = 1; i < size; i++) {
            if (data[i - 1] > data[i]) {
                fprintf(stderr, "not sorted at %ld\n", i);
                return 1;
            }
        }
    }
    printf("%ld integers sorted %ld times\n", size, rounds);
    return 0;
}
