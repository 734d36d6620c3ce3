// Workers that take letters from a queue and deliver each to a server, which answers after two milliseconds: all letters are there
// from the start (full), or one thread writes them as it goes, which takes longest (slow). Arguments: which, workers, letters.
#include "work.h"
#include <condition_variable>
#include <mutex>
#include <poll.h>
#include <queue>
#include <thread>
#include <vector>

WORK(write_letter, 2500000)
WORK(seal, 100000)

static std::mutex mailbox;
static std::condition_variable posted;
static std::queue<long> letters;
static bool is_over;
static volatile uint64_t sink;

static void post(long letter, bool last)
{
    std::lock_guard<std::mutex> guard(mailbox);
    letters.push(letter);
    is_over = last;
    posted.notify_one();
}

static void deliver()
{
    for (;;) {
        std::unique_lock<std::mutex> guard(mailbox);
        posted.wait(guard, [] { return is_over || !letters.empty(); });
        if (letters.empty())
            break;
        long letter = letters.front();
        letters.pop();
        guard.unlock();
        sink = seal(letter + 1);
        poll(nullptr, 0, 2);
    }
    posted.notify_all();
}

int main(int count, char **words)
{
    bool slow = count > 1 && strcmp(words[1], "slow") == 0;
    long workers = argument(count, words, 2, 3), many = argument(count, words, 3, 2000);
    std::vector<std::thread> all;
    for (long i = 0; i < workers; i++)
        all.emplace_back(deliver);
    for (long i = 0; i < many; i++)
        post(slow ? write_letter(i + 1) : i, i + 1 == many);
    for (auto &thread : all)
        thread.join();
    puts("delivered");
}
