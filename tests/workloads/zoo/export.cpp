// Two threads, each of which exports a table to a file: with a flush behind each line (endl), or without (newline).
// Arguments: which, rows, folder.
#include "work.h"
#include <fstream>
#include <string>
#include <thread>
#include <unistd.h>

WORK(price, 400)

static __attribute__((noinline)) void end_row(std::ofstream &file, bool flushes)
{
    if (flushes)
        file << std::endl;
    else
        file << '\n';
}

static void export_table(const std::string &path, long rows, bool flushes)
{
    std::ofstream file(path);
    uint64_t state = 7;
    for (long i = 0; i < rows; i++) {
        state = price(state);
        file << i << ';' << state % 10007 << ";item " << i % 97;
        end_row(file, flushes);
    }
}

int main(int count, char **words)
{
    bool flushes = count < 2 || strcmp(words[1], "endl") == 0;
    long rows = argument(count, words, 2, 600000);
    std::string folder = count > 3 ? words[3] : "/tmp", first = folder + "/table.1", second = folder + "/table.2";
    std::thread other([&] { export_table(first, rows, flushes); });
    export_table(second, rows, flushes);
    other.join();
    unlink(first.c_str());
    unlink(second.c_str());
    puts("exported");
}
