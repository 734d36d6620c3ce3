/* Ends at once, in the way asked for.
   usage: brief [exit code 0] [or this signal 0] */
#include "common.h"
#include <signal.h>

int main(int argc, char **argv)
{
    long code = argument(argc, argv, 1, 0), signal = argument(argc, argv, 2, 0);
    puts("brief");
    fflush(stdout);
    if (signal != 0)
        raise((int)signal);
    return (int)code;
}
