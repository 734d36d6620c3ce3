// One produces, one consumes and takes four times as long. Argument: items.
#include "work.h"
#include <condition_variable>
#include <mutex>
#include <queue>
#include <thread>

static struct {
    std::mutex lock;
    std::condition_variable filled, emptied;
    std::queue<uint64_t> items;
    bool over = false;
} queue;

WORK(produce_item, 50000)
WORK(compress_item, 200000)

int main(int count, char **words)
{
    long items = argument(count, words, 1, 10000);
    uint64_t sum = 0;
    std::thread producer([=] {
        for (long i = 0; i < items; i++) {
            uint64_t item = produce_item(i + 1);
            std::unique_lock<std::mutex> held(queue.lock);
            queue.emptied.wait(held, [] { return queue.items.size() < 16; });
            queue.items.push(item);
            queue.filled.notify_one();
        }
        std::lock_guard<std::mutex> held(queue.lock);
        queue.over = true;
        queue.filled.notify_all();
    });
    std::thread consumer([&] {
        for (;;) {
            uint64_t item;
            {
                std::unique_lock<std::mutex> held(queue.lock);
                queue.filled.wait(held, [] { return queue.over || !queue.items.empty(); });
                if (queue.items.empty())
                    return;
                item = queue.items.front();
                queue.items.pop();
                queue.emptied.notify_one();
            }
            sum ^= compress_item(item);
        }
    });
    producer.join();
    consumer.join();
    printf("%lx\n", static_cast<unsigned long>(sum));
}
