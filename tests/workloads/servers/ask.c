/* A load for servers whose answers end with a line END. Arguments: port, connections, seconds, the request, which each
   connection sends again and again, and perhaps a file. "#" in the request stands for a random number below 100,000. The file
   is sent before, and must make the server close that connection. Prints answers per second. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void send_request(int connection, const char *request)
{
    char text[8192];
    size_t length = 0;
    for (; *request && length < sizeof text - 16; request++) {
        if (*request == '#')
            length += (size_t)sprintf(text + length, "%d", rand() % 100000);
        else
            text[length++] = *request;
    }
    text[length++] = '\r';
    text[length++] = '\n';
    if (write(connection, text, length) != (ssize_t)length)
        exit(1);
}

static int connected(const char *port)
{
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    int one = 1, connection = socket(AF_INET, SOCK_STREAM, 0);
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(connection, (struct sockaddr *)&server, sizeof server) != 0)
        exit(1);
    return connection;
}

static void fill(const char *port, const char *file)
{
    static char text[1 << 16];
    int connection = connected(port);
    FILE *from = fopen(file, "r");
    size_t length;
    if (!from)
        exit(1);
    while ((length = fread(text, 1, sizeof text, from)) > 0)
        if (write(connection, text, length) != (ssize_t)length)
            exit(1);
    while (read(connection, text, sizeof text) > 0) {
    }
    fclose(from);
    close(connection);
}

int main(int count, char **words)
{
    if (count < 5)
        return 2;
    if (count > 5)
        fill(words[1], words[5]);
    int connections = atoi(words[2]);
    struct pollfd all[256];
    for (int at = 0; at < connections; at++) {
        all[at] = (struct pollfd){.fd = connected(words[1]), .events = POLLIN};
        send_request(all[at].fd, words[4]);
    }
    long answers = 0;
    static char text[1 << 18];
    double begin = now(), end = begin + atof(words[3]);
    while (now() < end) {
        poll(all, (nfds_t)connections, 100);
        for (int at = 0; at < connections; at++) {
            if (!(all[at].revents & POLLIN))
                continue;
            ssize_t length = read(all[at].fd, text, sizeof text);
            if (length <= 0)
                return 1;
            if (length >= 5 && memcmp(text + length - 5, "END\r\n", 5) == 0) {
                answers++;
                send_request(all[at].fd, words[4]);
            }
        }
    }
    printf("%.0f\n", answers / (now() - begin));
    return 0;
}
