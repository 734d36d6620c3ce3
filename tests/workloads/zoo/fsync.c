/* Four threads compute and write what they have to the disk: computing leads. Arguments: rounds, folder. */
#include "work.h"
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

static long rounds;
static const char *folder;
static uint64_t results[4];

WORK(encode, 500000)

static __attribute__((noinline)) void commit_log(int file, const char *page)
{
    if (pwrite(file, page, 4096, 0) != 4096 || fsync(file) != 0)
        abort();
}

static void *writer(void *argument)
{
    long me = (long)argument;
    char path[4096], page[4096] = {0};
    snprintf(path, sizeof path, "%s/log.%ld", folder, me);
    int file = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    uint64_t state = me + 1;
    for (long i = 0; i < rounds; i++) {
        state = encode(state);
        memcpy(page, &state, sizeof state);
        commit_log(file, page);
    }
    close(file);
    unlink(path);
    results[me] = state;
    return NULL;
}

int main(int count, char **words)
{
    pthread_t threads[4];
    rounds = argument(count, words, 1, 300);
    folder = count > 2 ? words[2] : "/tmp";
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, writer, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("%lx\n", (unsigned long)(results[0] ^ results[1] ^ results[2] ^ results[3]));
}
