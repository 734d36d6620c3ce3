/* Two programs that could run on two hosts. `hosts db PORT`: answers one connection, each request after `look_up` has computed;
   ends with the connection. `hosts web PORT REQUESTS`: for each request computes in `render`, then asks the other. */
#define BURN_IN_CALLER
#include "common.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

NAMED uint64_t look_up(uint64_t seed)
{
    return burn(3000000, seed);
}

NAMED uint64_t render(uint64_t seed)
{
    return burn(1000000, seed);
}

static int db(int port)
{
    int on = 1, listening = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listening, (struct sockaddr *)&own, sizeof own) || listen(listening, 4))
        return perror("hosts db"), 1;
    int connection = accept(listening, NULL, NULL);
    uint64_t word = 1;
    while (recv(connection, &word, sizeof word, 0) == sizeof word) {
        word = look_up(word);
        if (send(connection, &word, sizeof word, 0) != sizeof word)
            return perror("hosts db"), 1;
    }
    return 0;
}

static int web(int port, long requests)
{
    int on = 1, connection = -1;
    struct sockaddr_in other = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int tries = 0; tries < 1000; tries++) {
        connection = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(connection, (struct sockaddr *)&other, sizeof other) == 0)
            break;
        close(connection);
        usleep(10000);
    }
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    uint64_t word = 1;
    for (long request = 0; request < requests; request++) {
        word = render(word) | 1;
        if (send(connection, &word, sizeof word, 0) != sizeof word || recv(connection, &word, sizeof word, 0) != sizeof word)
            return perror("hosts web"), 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    int port = (int)argument(argc, argv, 2, 7000);
    return argc > 1 && strcmp(argv[1], "db") == 0 ? db(port) : web(port, argument(argc, argv, 3, 400));
}
