/* Has a child that ended and is never reaped; prints the child's PID, then waits for standard input to end. */
#include "common.h"
#include <sys/wait.h>

int main(void)
{
    pid_t child = fork();
    if (child < 0)
        return 1;
    if (child == 0)
        _exit(0);
    siginfo_t gone;
    /* Seen dead, but left unreaped. */
    if (waitid(P_PID, (id_t)child, &gone, WEXITED | WNOWAIT) != 0)
        return 1;
    printf("%d\n", (int)child);
    fflush(stdout);
    while (getchar() != EOF)
        ;
    return 0;
}
