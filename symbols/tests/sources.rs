//! Small programs for tests of symbols, and how to compile them.

use std::path::PathBuf;
use std::process::Command;

/// Tail calls, a switch, recursion, aliases, an IFUNC, equal names.
pub const C: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#define KEEP __attribute__((noinline, noclone, noipa))
volatile int sink;
KEEP int leaf(int x) { sink += x; return sink * 3; }
static inline __attribute__((always_inline)) int inlined(int x) { return leaf(x) + 1; }
KEEP int outer(int x) {
    int y = inlined(x);
    return y + leaf(y);
}
KEEP int tail(int x) { sink = x; return leaf(x + 1); }
KEEP int through(int (*f)(int), int x) { sink += x; return f(x); }
KEEP void never(int x) { printf("%d\n", x); exit(x); }
KEEP int recursive(int n) { return n < 2 ? leaf(n) : recursive(n - 1) + recursive(n - 2); }
KEEP int stub(void) { return 7; }
KEEP int table(int x) {
    switch (x) {
        case 0: return leaf(1) + 2; case 1: sink = 5; return leaf(3); case 2: return sink * 7;
        case 3: sink++; return 9; case 4: return leaf(sink); case 5: return sink / 3; case 6: sink = 1; return 4;
        case 7: return leaf(8) * leaf(9); default: return 0;
    }
}
int also_leaf(int) __attribute__((alias("leaf")));
static int chosen(int x) { return x; }
static int (*resolver(void))(int) { return chosen; }
int indirect(int) __attribute__((ifunc("resolver")));
KEEP static int same(int x) { sink = x; return x * 11 + sink; }
int other(int);
int main(int argc, char **argv) {
    int r = outer(argc) + tail(argc) + through(leaf, 3) + recursive(5) + stub() + same(argc) + other(argc);
    for (int i = 0; i < 8; i++) r += table(i);
    if (argc > 100) never(r);
    return (r + indirect(1)) & 1;
}
"#;

/// The second file of [`C`].
pub const OTHER_C: &str = r#"
volatile int other_sink;
__attribute__((noinline, noclone, noipa)) static int same(int x) { other_sink = x; return x * 13 + other_sink; }
int other(int x) { return same(x) + 1; }
"#;

/// Exceptions, destructors, a virtual call in tail position, templates.
pub const CPP: &str = r#"
#include <stdexcept>
#include <vector>
#include <string>
#define KEEP __attribute__((noinline, noclone, noipa))
volatile int sink;
struct Guard { int n; KEEP explicit Guard(int n) : n(n) { sink += n; } KEEP ~Guard() { sink -= n; } };
namespace shop {
struct Base { virtual int run(int) = 0; virtual ~Base() {} };
struct Twice : Base { KEEP int run(int x) override { return 2 * x + sink; } };
KEEP int call(Base *b, int x) { sink = x; return b->run(x + 1); }
KEEP int risky(int x) { Guard g(x); if (x % 7 == 3) throw std::runtime_error("seven"); return x + sink; }
KEEP int caught(int x) {
    Guard g(1);
    try { return risky(x); } catch (std::exception &e) { sink++; return -1; }
}
template <typename T> KEEP T sum(const std::vector<T> &v) { T t = T(); for (auto &x : v) t += x; return t; }
}
int main(int argc, char **) {
    shop::Twice twice;
    std::vector<int> numbers{1, 2, argc};
    std::vector<std::string> words{"a", "b"};
    int r = shop::call(&twice, argc) + shop::sum(numbers) + (int)shop::sum(words).size();
    for (int i = 0; i < 20; i++) r += shop::caught(i);
    return r & 1;
}
"#;

/// A compiled program and its folder.
pub struct Built {
    /// The folder, with the sources; removed when dropped.
    pub folder: tempfile::TempDir,
    /// The program.
    pub binary: PathBuf,
}

/// Compiles a program, or prints why it cannot be compiled.
pub fn build(test: &str, compiler: &str, arguments: &[&str], sources: &[(&str, &str)]) -> Option<Built> {
    let folder = tempfile::tempdir().expect("folder");
    let binary = folder.path().join("program");
    let mut command = Command::new(compiler);
    command.args(arguments).arg("-o").arg(&binary).current_dir(folder.path());
    for (name, text) in sources {
        std::fs::write(folder.path().join(name), text).expect("source");
        command.arg(name);
    }
    match command.output() {
        Ok(output) if output.status.success() => Some(Built { folder, binary }),
        Ok(output) => {
            println!("SKIP {test}: {compiler}: {}", String::from_utf8_lossy(&output.stderr));
            None
        }
        Err(error) => {
            println!("SKIP {test}: no {compiler}: {error}");
            None
        }
    }
}
