/* A server and its clients, each a process: ask.c tcp|unix CLIENTS REQUESTS MICROSECONDS FILE. One thread answers all of them,
   each answer takes so long, and every client asks again at once. FILE: the name of the Unix socket. */
#include "common.h"
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void client(int family, const struct sockaddr *address, socklen_t length, long requests)
{
    int to = socket(family, SOCK_STREAM, 0);
    if (to < 0 || connect(to, address, length))
        fail("connect");
    char byte = 'x';
    for (long i = 0; i < requests; i++)
        if (write(to, &byte, 1) != 1 || read(to, &byte, 1) != 1)
            fail("ask");
    exit(0);
}

int main(int argc, char **argv)
{
    int family = argc > 1 && !strcmp(argv[1], "unix") ? AF_UNIX : AF_INET;
    long clients = argument(argc, argv, 2, 3), requests = argument(argc, argv, 3, 200);
    long each_us = argument(argc, argv, 4, 2000);
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    struct sockaddr_in port = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    snprintf(name.sun_path, sizeof name.sun_path, "%s", argc > 5 ? argv[5] : "ask.socket");
    struct sockaddr *address = family == AF_UNIX ? (struct sockaddr *)&name : (struct sockaddr *)&port;
    socklen_t length = family == AF_UNIX ? sizeof name : sizeof port;
    int door = socket(family, SOCK_STREAM, 0);
    if (door < 0 || bind(door, address, length) || listen(door, 16) || getsockname(door, address, &length))
        fail("listen");
    for (long i = 0; i < clients; i++)
        if (!fork())
            client(family, address, length, requests);
    struct pollfd *open = calloc(clients, sizeof *open);
    for (long i = 0; i < clients; i++)
        open[i] = (struct pollfd){accept(door, NULL, NULL), POLLIN, 0};
    for (long left = clients; left > 0;) {
        if (poll(open, clients, -1) < 0)
            fail("poll");
        for (long i = 0; i < clients; i++) {
            char byte;
            if (open[i].fd < 0 || !open[i].revents)
                continue;
            if (read(open[i].fd, &byte, 1) != 1) {
                close(open[i].fd);
                open[i].fd = -1;
                left--;
                continue;
            }
            usleep(each_us);
            if (write(open[i].fd, &byte, 1) != 1)
                fail("answer");
        }
    }
    while (wait(NULL) > 0)
        ;
    return 0;
}
