/* Eight threads that thumb pictures and store them in a remote service, which takes three milliseconds; a semaphore lets some of
   them in at a time. Arguments: how many, pictures of each thread. flags: -std=c++20 */
#include "work.h"
#include <chrono>
#include <semaphore>
#include <thread>
#include <vector>

WORK(make_thumb, 400000)

static std::counting_semaphore<8> uploads(0);
static volatile uint64_t sink;

static __attribute__((noinline)) void upload()
{
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
}

static void work(long pictures)
{
    for (long i = 0; i < pictures; i++) {
        sink = make_thumb(i + 1);
        uploads.acquire();
        upload();
        uploads.release();
    }
}

int main(int count, char **words)
{
    uploads.release(argument(count, words, 1, 2));
    long pictures = argument(count, words, 2, 200);
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; i++)
        threads.emplace_back(work, pictures);
    for (auto &thread : threads)
        thread.join();
    puts("stored");
}
