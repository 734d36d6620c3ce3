// As soak.c, with exceptions through several frames, containers and condition variables.
#include "../common.h"
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static std::atomic<bool> stop{false};
static std::atomic<long> rounds{0}, wrong{0};

struct Counted {
    std::string text;
    explicit Counted(unsigned number) : text("number " + std::to_string(number)) {}
    ~Counted() { text.clear(); }
};

NAMED unsigned Thrower(unsigned number)
{
    Counted counted(number);
    if (number % 5 == 0)
        throw std::runtime_error(counted.text);
    return number * 7u;
}

NAMED unsigned Between(unsigned number)
{
    Counted counted(number + 1);
    return Thrower(number) + static_cast<unsigned>(counted.text.size());
}

NAMED uint64_t Whole()
{
    std::map<std::string, uint64_t> sums;
    uint64_t sum = 1;
    for (unsigned i = 0; i < 300; i++) {
        try {
            sums["key " + std::to_string(i % 17)] += Between(i);
        } catch (const std::exception &error) {
            sum = sum * 31 + std::string(error.what()).size();
        }
    }
    for (const auto &[key, value] : sums)
        sum = sum * 131 + value + key.size();
    return sum;
}

int main()
{
    const uint64_t expected = Whole();
    std::mutex lock;
    std::condition_variable changed;
    int turn = 0;
    std::vector<std::thread> threads;
    for (int own = 0; own < 2; own++)
        threads.emplace_back([&, own] {
            while (!stop) {
                if (Whole() != expected)
                    wrong++;
                rounds++;
                std::unique_lock<std::mutex> held(lock);
                changed.wait_for(held, std::chrono::milliseconds(5), [&] { return turn == own || stop; });
                turn = !own;
                changed.notify_all();
            }
        });
    puts("ready");
    fflush(stdout);
    struct pollfd input = {0, POLLIN, 0};
    while (poll(&input, 1, 100) <= 0)
        continue;
    stop = true;
    changed.notify_all();
    for (auto &thread : threads)
        thread.join();
    printf("%ld rounds, %ld wrong\n", rounds.load(), wrong.load());
    return wrong || !rounds;
}
