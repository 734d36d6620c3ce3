/* Compiled with frame pointers: shorts_leaf is too short to have one, and shorts_late has none yet while it computes. Only
   shorts_caller calls them, each for half of the time. x86-64 only. usage: shorts [milliseconds 1000]
   flags: -fno-omit-frame-pointer */
#include "common.h"

#include <time.h>

void shorts_leaf(uint64_t n);
void shorts_late(uint64_t n);
__asm__(".text\n.globl shorts_leaf\n.type shorts_leaf,@function\nshorts_leaf:\n.cfi_startproc\n1: dec %rdi\njnz 1b\nret\n"
        ".cfi_endproc\n.size shorts_leaf,.-shorts_leaf\n"
        ".globl shorts_late\n.type shorts_late,@function\nshorts_late:\n.cfi_startproc\n1: dec %rdi\njnz 1b\npush %rbp\n"
        ".cfi_def_cfa_offset 16\n.cfi_offset 6, -16\nmov %rsp, %rbp\n.cfi_def_cfa_register 6\nnop\nnop\nnop\nnop\nnop\nnop\n"
        "pop %rbp\n.cfi_def_cfa 7, 8\nret\n.cfi_endproc\n.size shorts_late,.-shorts_late\n");

NAMED void shorts_caller(uint64_t n)
{
    shorts_leaf(n);
    shorts_late(n);
    __asm__ volatile("");
}

static long now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
    wait_for_start();
    long end = now_ms() + argument(argc, argv, 1, 1000);
    while (now_ms() < end)
        shorts_caller(1000000);
    return 0;
}
