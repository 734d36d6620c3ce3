// A game's main thread that moves all figures while a sound thread and a network thread do little, each at its own pace: alone
// (one), or half of them by a second thread (two). Arguments: which, frames.
#include "work.h"
#include <atomic>
#include <chrono>
#include <thread>

WORK(mix_sound, 500000)
WORK(read_packets, 700000)

static std::atomic<bool> is_over{false};
static volatile uint64_t sinks[64];

static __attribute__((noinline)) uint64_t move_figures(uint64_t state, long figures)
{
    TURNS(state, figures * 40)
    return state;
}

static void beside(uint64_t (*work)(uint64_t), int me, int pause_ms)
{
    while (!is_over) {
        sinks[me] = work(me);
        std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
    }
}

static void play(int me, long frames, long figures)
{
    for (long frame = 0; frame < frames; frame++)
        sinks[me] = move_figures(frame + 1, figures);
}

int main(int count, char **words)
{
    bool alone = count < 2 || strcmp(words[1], "one") == 0;
    long frames = argument(count, words, 2, 300);
    std::thread sound(beside, mix_sound, 16, 4), network(beside, read_packets, 32, 9), second;
    if (!alone)
        second = std::thread(play, 48, frames, 80000);
    play(0, frames, alone ? 160000 : 80000);
    if (second.joinable())
        second.join();
    is_over = true;
    sound.join();
    network.join();
    puts("played");
}
