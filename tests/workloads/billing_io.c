/* The skeleton of Ericsson's billing gateway with I/O: Broberg, Lundberg and Grahn 1999, section 5.2, Fig. 7. Socket
   receivers get chunks of integers from another process, write each to a file and force it to the disk. A sorter each
   reads the file, puts the integers into a binary tree, converts them to floating point and back while it walks through
   the tree again and again, and stores odd and even ones in a file each, forced to the disk. Two consumers each read
   those and drop them. Meanwhile requests for hot billing come in: each makes a new thread that does the same without
   the disk, and answers.
   usage: billing_io [lines 8] [integers in a chunk 16384] [walks 24] [chunks 2] [requests 5] [folder /tmp] */
#include "common.h"
#include <fcntl.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { MOST = 16, HOT = 1280 };

struct node {
    struct node *left, *right;
    int value;
};

static long lines, integers, walks, chunks, requests;
static char folder[256];
static int sockets[MOST][2], hot[2];
static sem_t stored[MOST], sorted[MOST][2];
static volatile double sink;

static void all(ssize_t (*move)(int, void *, size_t), int file, void *bytes, size_t length)
{
    for (size_t done = 0; done < length;) {
        ssize_t moved = move(file, (char *)bytes + done, length - done);
        if (moved <= 0) {
            fprintf(stderr, "input or output failed\n");
            exit(1);
        }
        done += (size_t)moved;
    }
}

static ssize_t put(int file, void *bytes, size_t length)
{
    return write(file, bytes, length);
}

static ssize_t get(int file, void *bytes, size_t length)
{
    return read(file, bytes, length);
}

static int open_file(const char *kind, long line, long chunk, int flags)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s-%ld-%ld", folder, kind, line, chunk);
    int file = open(path, flags, 0600);
    if (file < 0) {
        perror(path);
        exit(1);
    }
    if ((flags & O_CREAT) == 0)
        unlink(path);
    return file;
}

static NAMED void Store(const char *kind, long line, long chunk, int *values, long count)
{
    int file = open_file(kind, line, chunk, O_CREAT | O_RDWR);
    all(put, file, values, (size_t)count * sizeof(int));
    fsync(file);
    close(file);
}

static NAMED void Load(const char *kind, long line, long chunk, int *values, long *count)
{
    int file = open_file(kind, line, chunk, O_RDONLY);
    off_t size = lseek(file, 0, SEEK_END);
    lseek(file, 0, SEEK_SET);
    *count = size / (off_t)sizeof(int);
    all(get, file, values, (size_t)size);
    close(file);
}

static void walk(struct node *node)
{
    if (node == NULL)
        return;
    walk(node->left);
    double converted = (double)node->value;
    sink = converted;
    node->value = (int)converted;
    walk(node->right);
}

static NAMED void Convert(int *values, long count)
{
    struct node *nodes = calloc((size_t)count + 1, sizeof *nodes), *root = NULL;
    for (long i = 0; i < count; i++) {
        struct node **place = &root;
        while (*place != NULL)
            place = values[i] < (*place)->value ? &(*place)->left : &(*place)->right;
        nodes[i].value = values[i];
        *place = &nodes[i];
    }
    for (long i = 0; i < walks; i++)
        walk(root);
    free(nodes);
}

static void take(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        ;
}

static void *receiver(void *argument)
{
    long line = (long)argument;
    int *values = malloc((size_t)integers * sizeof(int));
    for (long chunk = 0; chunk < chunks; chunk++) {
        all(get, sockets[line][0], values, (size_t)integers * sizeof(int));
        Store("in", line, chunk, values, integers);
        sem_post(&stored[line]);
    }
    free(values);
    return NULL;
}

static void *sorter(void *argument)
{
    long line = (long)argument;
    int *values = malloc((size_t)integers * sizeof(int)), *half = malloc((size_t)integers * sizeof(int));
    for (long chunk = 0; chunk < chunks; chunk++) {
        long count;
        take(&stored[line]);
        Load("in", line, chunk, values, &count);
        Convert(values, count);
        for (int odd = 0; odd < 2; odd++) {
            long kept = 0;
            for (long i = 0; i < count; i++)
                if ((values[i] & 1) == odd)
                    half[kept++] = values[i];
            Store(odd ? "odd" : "even", line, chunk, half, kept);
            sem_post(&sorted[line][odd]);
        }
    }
    free(values);
    free(half);
    return NULL;
}

static void *consumer(void *argument)
{
    long line = (long)argument / 2, odd = (long)argument % 2;
    int *values = malloc((size_t)integers * sizeof(int));
    for (long chunk = 0; chunk < chunks; chunk++) {
        long count;
        take(&sorted[line][odd]);
        Load(odd ? "odd" : "even", line, chunk, values, &count);
    }
    free(values);
    return NULL;
}

static void *hot_billing(void *argument)
{
    int *values = argument;
    Convert(values, HOT);
    all(put, hot[0], values, HOT * sizeof(int));
    free(values);
    return NULL;
}

/* Whoever sends: another process, so that it is not part of what is looked at. */
static void feed(void)
{
    int *values = malloc((size_t)(integers > HOT ? integers : HOT) * sizeof(int));
    uint64_t seed = 88172645463325252u;
    for (long i = 0; i < (integers > HOT ? integers : HOT); i++) {
        seed = burn(1, seed);
        values[i] = (int)(seed >> 33);
    }
    for (long chunk = 0; chunk < chunks; chunk++) {
        for (long line = 0; line < lines; line++)
            all(put, sockets[line][1], values, (size_t)integers * sizeof(int));
        for (long i = 0; i < requests / chunks + (chunk < requests % chunks); i++) {
            all(put, hot[1], values, HOT * sizeof(int));
            all(get, hot[1], values, HOT * sizeof(int));
        }
    }
    exit(0);
}

int main(int argc, char **argv)
{
    lines = argument(argc, argv, 1, 8);
    integers = argument(argc, argv, 2, 16384);
    walks = argument(argc, argv, 3, 24);
    chunks = argument(argc, argv, 4, 2);
    requests = argument(argc, argv, 5, 5);
    if (lines < 1 || lines > MOST || chunks < 1 || integers < 1) {
        fprintf(stderr, "%s: from 1 to %d lines, at least one chunk of one integer\n", argv[0], MOST);
        return 2;
    }
    snprintf(folder, sizeof folder, "%s/billing-XXXXXX", argc > 6 ? argv[6] : "/tmp");
    if (mkdtemp(folder) == NULL) {
        perror(folder);
        return 1;
    }
    for (long line = 0; line < lines; line++) {
        must(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets[line]), "socketpair");
        sem_init(&stored[line], 0, 0);
        sem_init(&sorted[line][0], 0, 0);
        sem_init(&sorted[line][1], 0, 0);
    }
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, hot), "socketpair");
    wait_for_start();
    pid_t feeder = fork();
    if (feeder == 0)
        feed();
    pthread_t ids[4 * MOST], answering[64];
    int count = 0;
    for (long line = 0; line < lines; line++) {
        must(pthread_create(&ids[count++], NULL, receiver, (void *)line), "pthread_create");
        must(pthread_create(&ids[count++], NULL, sorter, (void *)line), "pthread_create");
    }
    for (long i = 0; i < 2 * lines; i++)
        must(pthread_create(&ids[count++], NULL, consumer, (void *)i), "pthread_create");
    if (requests > 64)
        requests = 64;
    for (long i = 0; i < requests; i++) {
        int *values = malloc(HOT * sizeof(int));
        all(get, hot[0], values, HOT * sizeof(int));
        must(pthread_create(&answering[i], NULL, hot_billing, values), "pthread_create");
    }
    for (long i = 0; i < requests; i++)
        must(pthread_join(answering[i], NULL), "pthread_join");
    for (int i = 0; i < count; i++)
        must(pthread_join(ids[i], NULL), "pthread_join");
    int status;
    waitpid(feeder, &status, 0);
    rmdir(folder);
    printf("%ld chunks through %d threads, %ld requests\n", lines * chunks, count, requests);
    return 0;
}
