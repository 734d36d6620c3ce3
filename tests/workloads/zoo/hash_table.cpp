// Four threads count words in a table with one lock, and compute the hash under it. Arguments: records, threads.
#include "work.h"
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

static std::mutex table_mutex;
static std::unordered_map<uint64_t, long> table;

WORK(parse_record, 12000)
WORK(expensive_hash, 20000)

static __attribute__((noinline)) void update_table(uint64_t word)
{
    std::lock_guard<std::mutex> held(table_mutex);
    table[expensive_hash(word) % 1000]++;
}

int main(int count, char **words)
{
    long records = argument(count, words, 1, 20000), many = argument(count, words, 2, 4);
    std::vector<std::thread> threads;
    for (long me = 0; me < many; me++)
        threads.emplace_back([=] {
            uint64_t word = me + 1;
            for (long i = 0; i < records; i++) {
                word = parse_record(word);
                update_table(word);
            }
        });
    for (auto &thread : threads)
        thread.join();
    printf("%zu\n", table.size());
}
