/* Asks the kernel for the smallest BPF map: exit code 0 if it is granted, else the reason on standard output. A
   second opinion on what `longpole doctor` says, by which the live tests decide whether they can run. */
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
    union bpf_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.map_type = BPF_MAP_TYPE_RINGBUF;
    attributes.max_entries = 4096;
    if (syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof attributes) >= 0)
        return 0;
    printf("%s\n", strerror(errno));
    return 1;
}
