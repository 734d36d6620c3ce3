/* Two symbols of functions where no function starts: over a table of constants in the text, and inside a function. */
#include <stdio.h>
#include <time.h>

__asm__(".text\n.p2align 6\n.globl ConstantTable\n.type ConstantTable, @function\n"
        "ConstantTable:\n"
        ".byte 0x55, 0x48, 0x89, 0xe5, 0x41, 0x57, 0x41, 0x56, 0x53, 0x5b, 0x41, 0x5e, 0x41, 0x5f, 0x5d, 0xc3\n"
        ".size ConstantTable, 16\n");
extern const unsigned char ConstantTable[];

__attribute__((noinline)) unsigned Steady(unsigned x)
{
    for (int i = 0; i < 1000; i++)
        x = x * 1664525u + 1013904223u;
    return x;
}

/* Two bytes into the ten of an instruction with a constant. */
unsigned long Whole(void);
__asm__(".text\n.p2align 6\n.globl Whole\n.type Whole, @function\n"
        "Whole:\n.cfi_startproc\nmovabs $0x1122334455667788, %rax\nret\n.cfi_endproc\n.size Whole, .-Whole\n"
        ".globl Wrong\n.type Wrong, @function\n.set Wrong, Whole + 2\n.size Wrong, 9\n");

int main(void)
{
    unsigned long sum = 0;
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 16; i++)
            sum = sum * 31 + ConstantTable[i];
        sum += Whole() + Steady(round);
        nanosleep(&(struct timespec){0, 2000000}, 0);
    }
    printf("%lx\n", sum);
    return 0;
}
