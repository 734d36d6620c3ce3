// Two threads hand one token over, as an interpreter's global lock: who waits asks for it every five milliseconds. Strictly
// serial. Argument: turns of each.
#include "work.h"
#include <condition_variable>
#include <mutex>
#include <thread>

static std::mutex lock;
static std::condition_variable freed;
static bool taken = false;
static volatile bool wanted = false;
static volatile uint64_t sink;

WORK(crunch, 100000)

static void take()
{
    std::unique_lock<std::mutex> held(lock);
    while (taken)
        if (freed.wait_for(held, std::chrono::milliseconds(5)) == std::cv_status::timeout)
            wanted = true;
    taken = true;
    wanted = false;
}

static void drop()
{
    {
        std::lock_guard<std::mutex> held(lock);
        taken = false;
    }
    freed.notify_one();
    std::this_thread::yield();
}

int main(int count, char **words)
{
    long turns = argument(count, words, 1, 8000);
    auto interpreter = [=] {
        uint64_t state = 1;
        take();
        for (long i = 0; i < turns; i++) {
            state = crunch(state);
            if (wanted) {
                drop();
                take();
            }
        }
        drop();
        sink = state;
    };
    std::thread first(interpreter), second(interpreter);
    first.join();
    second.join();
    puts("done");
}
