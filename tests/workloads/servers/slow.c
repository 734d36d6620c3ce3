/* A slow HTTP server: a thread for each connection sleeps before each answer. Arguments: port, milliseconds. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static useconds_t pause_us;

static void *serve(void *argument)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ndone\n";
    int connection = (int)(intptr_t)argument;
    char request[8192];
    while (read(connection, request, sizeof request) > 0) {
        usleep(pause_us);
        if (write(connection, answer, sizeof answer - 1) < 0)
            break;
    }
    close(connection);
    return NULL;
}

int main(int count, char **words)
{
    if (count != 3)
        return 2;
    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(words[1]))};
    pause_us = (useconds_t)atoi(words[2]) * 1000;
    signal(SIGPIPE, SIG_IGN);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&place, sizeof place) != 0 || listen(listener, 1024) != 0)
        return 1;
    for (;;) {
        pthread_t thread;
        int connection = accept(listener, NULL, NULL);
        setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (connection >= 0 && pthread_create(&thread, NULL, serve, (void *)(intptr_t)connection) == 0)
            pthread_detach(thread);
    }
}
