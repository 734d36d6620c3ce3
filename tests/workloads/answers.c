/* A server of many threads that somebody waits for: answers SOCKET THREADS ROUNDS. One thread waits for whoever writes and
   hands them on; the others take turns at answering. An answer takes a lock, calls a function ROUNDS times that does next
   to nothing, maps memory, writes to it and gives it back. Says "ready" and serves until its standard input ends.
   answers load SOCKET CLIENTS: clients that ask without end. */
#include "common.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

enum { ROOM = 1024, BYTES = 64 << 10 };

static int epoll;
static long rounds;
static int waiting[ROOM];
static unsigned first, count;
static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some = PTHREAD_COND_INITIALIZER;
static uint64_t entries[64];

NAMED uint64_t LookUp(uint64_t key)
{
    pthread_mutex_lock(&table);
    uint64_t found = entries[key % 64] += key;
    pthread_mutex_unlock(&table);
    return found;
}

NAMED uint64_t HotStep(uint64_t seed)
{
    return burn(20, seed);
}

NAMED uint64_t Answer(uint64_t seed)
{
    for (long round = 0; round < rounds; round++)
        seed = HotStep(seed ^ LookUp(seed));
    char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) {
        memset(memory, (int)seed, BYTES);
        seed += (uint64_t)memory[BYTES - 1];
        munmap(memory, BYTES);
    }
    return seed;
}

static void *work(void *number)
{
    uint64_t seed = (uint64_t)(uintptr_t)number + 1;
    for (;;) {
        pthread_mutex_lock(&queue);
        while (count == 0)
            pthread_cond_wait(&some, &queue);
        int client = waiting[first++ % ROOM];
        count--;
        pthread_mutex_unlock(&queue);
        char question[64];
        ssize_t length = read(client, question, sizeof question);
        if (length <= 0) {
            close(client);
            continue;
        }
        seed = Answer(seed);
        char answer = (char)('a' + seed % 26);
        struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.fd = client};
        if (write(client, &answer, 1) != 1 || epoll_ctl(epoll, EPOLL_CTL_MOD, client, &event) != 0)
            close(client);
    }
    return NULL;
}

static struct sockaddr_un place(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        must(ENAMETOOLONG, path);
    strcpy(address.sun_path, path);
    return address;
}

static void *ask(void *path)
{
    struct sockaddr_un address = place(path);
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(server, (struct sockaddr *)&address, sizeof address) != 0)
        must(errno, path);
    char answer;
    struct timespec pause = {.tv_nsec = 2000000};
    while (write(server, "?", 1) == 1 && read(server, &answer, 1) == 1)
        nanosleep(&pause, NULL);
    return NULL;
}

static void *until_input_ends(void *nothing)
{
    while (getchar() != EOF) {
    }
    exit(0);
    return nothing;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc == 4 && strcmp(argv[1], "load") == 0) {
        for (long client = argument(argc, argv, 3, 1); client > 0; client--)
            must(pthread_create(&thread, NULL, ask, argv[2]), "a client");
        puts("ready");
        fflush(stdout);
        until_input_ends(NULL);
    }
    if (argc != 4) {
        fprintf(stderr, "usage: answers SOCKET THREADS ROUNDS\n");
        return 2;
    }
    rounds = argument(argc, argv, 3, 20);
    struct sockaddr_un address = place(argv[1]);
    int listening = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listening, (struct sockaddr *)&address, sizeof address) != 0 || listen(listening, 64) != 0)
        must(errno, argv[1]);
    epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listening};
    epoll_ctl(epoll, EPOLL_CTL_ADD, listening, &event);
    long threads = argument(argc, argv, 2, 50);
    for (long number = 2; number < threads; number++)
        must(pthread_create(&thread, NULL, work, (void *)(uintptr_t)number), "a thread");
    must(pthread_create(&thread, NULL, until_input_ends, NULL), "a thread");
    puts("ready");
    fflush(stdout);
    for (;;) {
        struct epoll_event events[64];
        int found = epoll_wait(epoll, events, 64, -1);
        for (int at = 0; at < found; at++) {
            int client = events[at].data.fd;
            if (client == listening) {
                client = accept(listening, NULL, NULL);
                event = (struct epoll_event){.events = EPOLLIN | EPOLLONESHOT, .data.fd = client};
                epoll_ctl(epoll, EPOLL_CTL_ADD, client, &event);
                continue;
            }
            pthread_mutex_lock(&queue);
            if (count < ROOM)
                waiting[(first + count++) % ROOM] = client;
            pthread_cond_signal(&some);
            pthread_mutex_unlock(&queue);
        }
    }
}
