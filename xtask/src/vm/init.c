/* The first process of a virtual machine of `./x vm`, in its initial memory file system. It loads modules, mounts the host's
   root folder read-only, runs a script there, and ends the machine. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The kernel restarts, and qemu ends because of -no-reboot: that needs no ACPI. */
static void end(void)
{
    sync();
    reboot(RB_AUTOBOOT);
    for (;;)
        pause();
}

static void must(int result, const char *what)
{
    if (result < 0) {
        printf("init: %s: %s\n", what, strerror(errno));
        fflush(stdout);
        end();
    }
}

/* Files are called 00, 01 and so on, in the order of their dependencies. */
static void load_modules(void)
{
    char name[32];
    for (int number = 0; number < 100; number++) {
        snprintf(name, sizeof name, "/modules/%02d", number);
        int file = open(name, O_RDONLY | O_CLOEXEC);
        if (file < 0)
            return;
        must((int)syscall(SYS_finit_module, file, "", 0), name);
        close(file);
    }
}

static void copy(const char *from, const char *to)
{
    char bytes[4096];
    int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    must(in, from);
    must(out, to);
    for (ssize_t length; (length = read(in, bytes, sizeof bytes)) > 0;)
        must(write(out, bytes, length) == length ? 0 : -1, to);
    close(in);
    close(out);
}

static void mount_all(void)
{
    must(mount("root", "/host", "virtiofs", MS_RDONLY, NULL), "the host's root folder");
    must(mount("proc", "/host/proc", "proc", 0, NULL), "/proc");
    must(mount("sys", "/host/sys", "sysfs", 0, NULL), "/sys");
    must(mount("dev", "/host/dev", "devtmpfs", 0, NULL), "/dev");
    must(mount("tmp", "/host/tmp", "tmpfs", 0, "mode=1777"), "/tmp");
    must(mount("run", "/host/run", "tmpfs", 0, "mode=755"), "/run");
    copy("/script", "/host/tmp/script");
    must(chdir("/host"), "/host");
    must(mount(".", "/", NULL, MS_MOVE, NULL), "the new root folder");
    must(chroot("."), "the new root folder");
    must(chdir("/"), "the new root folder");
}

int main(void)
{
    load_modules();
    mount_all();
    pid_t script = fork();
    must(script, "fork");
    if (script == 0) {
        setsid();
        execl("/bin/sh", "sh", "/tmp/script", NULL);
        _exit(127);
    }
    /* Children of processes that have ended come here. */
    for (pid_t gone; (gone = wait(NULL)) != script;)
        if (gone < 0 && errno != EINTR)
            break;
    end();
}
