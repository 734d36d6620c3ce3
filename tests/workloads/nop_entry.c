/* Functions that begin with a nop of five bytes, as compilers write them for tracing (-pg -mfentry -mnop-mcount), called by
   a process and by children that it forks. Exit code: 0 if all children end well.
   usage: nop_entry ROUNDS, which must be a prime number below 4096; with a second word it begins with a line of input. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Written down, since not every compiler has these flags. Behind the nop of the second one there is a loop. */
__asm__(".text\n"
        ".globl NopEntry\n .type NopEntry,@function\nNopEntry:\n"
        " .byte 0x0f,0x1f,0x44,0x00,0x00\n sub $24, %rsp\n mov $3000, %eax\n"
        "1: add %edi, 8(%rsp)\n dec %eax\n jnz 1b\n mov 8(%rsp), %eax\n add $24, %rsp\n ret\n"
        " .size NopEntry, . - NopEntry\n"
        ".globl NopLoop\n .type NopLoop,@function\nNopLoop:\n"
        " .byte 0x0f,0x1f,0x44,0x00,0x00\n"
        "2: lea 1(%rax,%rdi), %eax\n xor %edi, %eax\n dec %edi\n jnz 2b\n ret\n"
        " .size NopLoop, . - NopLoop\n");
int NopEntry(int x);
int NopLoop(int x);

int main(int count, char **words)
{
    int rounds = count > 1 ? atoi(words[1]) : 101, bad = 0;
    char line[16];
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    if (count > 2 && !fgets(line, sizeof line, stdin))
        return 2;
    for (int i = 0; i < rounds; i++) {
        NopEntry(i);
        NopLoop(1000);
        pid_t child = fork();
        if (child == 0) {
            NopEntry(i);
            NopLoop(1000);
            _exit(0);
        }
        int status = -1;
        waitpid(child, &status, 0);
        bad += status != 0;
    }
    printf("%d children, %d bad\n", rounds, bad);
    return bad != 0;
}
