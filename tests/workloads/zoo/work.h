/* Work that no compiler leaves out: a turn takes about a nanosecond, and no memory. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No function, which would have a share of its own where it is inlined. Each number of turns once in a program: compilers merge
   functions that are the same. */
#define TURNS(state, turns)                       \
    for (long left = (turns); left > 0; left--) { \
        state ^= state << 13;                     \
        state ^= state >> 7;                      \
        state ^= state << 17;                     \
    }

#define WORK(name, turns)                                          \
    static __attribute__((noinline)) uint64_t name(uint64_t state) \
    {                                                              \
        TURNS(state, turns)                                        \
        return state;                                              \
    }

static inline long argument(int count, char **words, int at, long otherwise)
{
    return count > at ? atol(words[at]) : otherwise;
}
