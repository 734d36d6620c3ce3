//! Tests of recorded programs that start other programs.

use crate::locks::support::{c, record_in};
use longpole_tests::skip_unless_live;

/// A program that calls exec functions with invalid arguments. The kernel must answer with errors and not with a
/// signal.
const NONSENSE: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
extern char **environ;
static void say(const char *what, int result) { printf("%s %d %s\n", what, result, strerror(errno)); fflush(stdout); errno = 0; }
int main(void) {
    char *words[] = {"x", 0}, *bad = (char *)8, *list[] = {"A=1", bad, 0};
    char **lists = (char **)8, **own = environ;
    /* The last bytes before memory that is not there. */
    long page = sysconf(_SC_PAGESIZE);
    char *edge = mmap(0, 2 * page, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) + page;
    munmap(edge, page);
    memcpy(edge - 4, "LD_P", 4);
    char *cut[] = {edge - 4, 0}, **open_ended = (char **)edge - 1;
    *open_ended = "B=2";
    pid_t pid;
    say("no path", execve(0, words, environ));
    say("bad path", execve(bad, words, environ));
    say("bad list", execve("/nonexistent/x", words, lists));
    say("bad list of a program", execve("/bin/true", words, lists));
    say("bad entry", execve("/bin/true", words, list));
    say("list without an end", execve("/bin/true", words, open_ended));
    memcpy(edge - 4, "LD_P", 4);
    say("text without an end", execve("/bin/true", words, cut));
    say("no list", execve("/nonexistent/x", words, 0));
    say("execv", execv(bad, words));
    say("execl", execl(bad, "x", (char *)0));
    say("fexecve", fexecve(0, words, lists));
    say("execveat", execveat(AT_FDCWD, bad, words, environ, 0));
    say("posix_spawn", posix_spawn(&pid, bad, 0, 0, words, environ));
    say("posix_spawn", posix_spawn(&pid, "/bin/true", 0, 0, words, lists));
    environ = lists;
    say("bad own list", execv("/bin/true", words));
    say("bad own list", execl("/bin/true", "x", (char *)0));
    environ = list;
    say("bad own entry", execvp("/bin/true", words));
    environ = 0;
    say("no own list", execv("/nonexistent/x", words));
    environ = own;
    execlp("sh", "sh", "-c", "echo the end; exit 19", (char *)0);
    return 1;
}
"#;

/// The kernel has to read the arguments for the library. If the library read them itself, the program would end by
/// SIGSEGV.
#[test]
fn invalid_arguments_of_exec_are_an_error_and_no_signal() {
    let program = skip_unless_live!(c(NONSENSE));
    let path = program.path.to_string_lossy().into_owned();
    let alone = program.alone(&[]);
    let recorded = record_in(program.folder.path(), &["--children"], &[&path], &[]);
    let text = alone.stdout.as_str();
    assert!(text.matches("Bad address").count() >= 12 && text.ends_with("the end\n"), "{text}");
    assert_eq!(recorded.text(19), text);
    let said = &recorded.ended.stderr;
    assert!(!said.contains("signal") && !said.contains("preload"), "{said}");
}
