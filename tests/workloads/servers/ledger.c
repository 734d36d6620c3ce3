/* An HTTP server around SQLite: a thread for each connection books one line for each request. Arguments: port, file, journal
   mode, value of synchronous, what all threads share (nothing or connection), and loops of work inside and before the
   transaction. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char **words;
static sqlite3 *shared;
static volatile unsigned sink;

static void check_order(int loops)
{
    unsigned value = 7;
    for (int at = 0; at < loops; at++)
        value = value * 1103515245u + 12345u;
    sink = value;
}

static sqlite3 *open_ledger(void)
{
    sqlite3 *ledger;
    char set[200];
    if (sqlite3_open(words[2], &ledger) != SQLITE_OK)
        exit(1);
    sqlite3_busy_timeout(ledger, 10000);
    snprintf(set, sizeof set, "PRAGMA journal_mode=%s; PRAGMA synchronous=%s", words[3], words[4]);
    if (sqlite3_exec(ledger, set, NULL, NULL, NULL) != SQLITE_OK)
        exit(1);
    return ledger;
}

static void look_up(sqlite3 *ledger)
{
    sqlite3_exec(ledger, "SELECT sum(amount) FROM lines WHERE id > 0", NULL, NULL, NULL);
}

static void book(sqlite3 *ledger)
{
    check_order(atoi(words[7]));
    sqlite3_exec(ledger, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    check_order(atoi(words[6]));
    sqlite3_exec(ledger, "UPDATE total SET amount = amount + 1", NULL, NULL, NULL);
    if (sqlite3_exec(ledger, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
        fprintf(stderr, "%s\n", sqlite3_errmsg(ledger));
}

static void *serve(void *argument)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ndone\n";
    int connection = (int)(intptr_t)argument;
    char request[8192];
    sqlite3 *ledger = shared ? shared : open_ledger();
    while (read(connection, request, sizeof request) > 0) {
        if (strncmp(request, "GET /sum", 8) == 0)
            look_up(ledger);
        else
            book(ledger);
        if (write(connection, answer, sizeof answer - 1) < 0)
            break;
    }
    close(connection);
    if (!shared)
        sqlite3_close(ledger);
    return NULL;
}

int main(int count, char **arguments)
{
    words = arguments;
    if (count != 8)
        return 2;
    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(words[1]))};
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    signal(SIGPIPE, SIG_IGN);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    sqlite3 *first = open_ledger();
    sqlite3_exec(first,
                 "CREATE TABLE total (amount INT); INSERT INTO total VALUES (0); CREATE TABLE lines (id INTEGER PRIMARY KEY,"
                 "amount INT); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)"
                 "INSERT INTO lines SELECT i, i FROM n",
                 NULL, NULL, NULL);
    shared = strcmp(words[5], "connection") == 0 ? first : NULL;
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
