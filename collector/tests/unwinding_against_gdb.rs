//! Stacks of stopped programs: those of gdb are compared with longpole's from the same registers and stack bytes.

use capture::target::{Process, code};
use capture::unwind::{BinaryTables, Unwinding};
use probe_abi::RawCopy;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use symbols::Parsers;
use zerocopy::FromZeros as _;

const C: &str = r#"
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#define FAR __attribute__((noinline, noclone))
static volatile int sink;
static FAR void stop(void) { printf("ready\n"); fflush(stdout); for (;;) pause(); }
static void handler(int number) { sink = number; stop(); sink++; }
static FAR int interrupted(int depth) { raise(SIGUSR1); return sink + depth; }
static FAR int leaf(int depth) { if (sink == 77) stop(); else if (sink == 78) return interrupted(depth); return depth + sink; }
static FAR int aligned(int depth) {
    char room[64] __attribute__((aligned(64)));
    memset(room, depth, sizeof room);
    int got = leaf(depth + 1);
    return got + room[depth & 63];
}
static FAR int moving(int depth) {
    char *room = alloca((size_t)depth * 16 + 48);
    memset(room, depth, (size_t)depth * 16 + 48);
    int got = aligned(depth + 1);
    return got + room[depth];
}
static int compare(const void *a, const void *b) { int got = moving(3); return (*(const int *)a > *(const int *)b) + got; }
static FAR int sorting(int depth) {
    int numbers[] = {3, 1, 2};
    qsort(numbers, 3, sizeof numbers[0], compare);
    return numbers[depth & 1];
}
static FAR int many(int a, int b, int c, int d, int e, int f, int g, int h, int depth) {
    int got = depth > 20 ? sorting(depth) : many(b, c, d, e, f, g, h, a, depth + 1);
    return got + a * b + c * d + e * f + g * h;
}
static void *thread(void *argument) { sink += many(1, 2, 3, 4, 5, 6, 7, 8, (int)(intptr_t)argument); return NULL; }
int main(int argc, char **argv) {
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    int scene = argc > 1 ? atoi(argv[1]) : 0;
    sink = scene == 1 ? 78 : 77;
    signal(SIGUSR1, handler);
    if (scene == 2) {
        pthread_t other;
        pthread_create(&other, NULL, thread, (void *)(intptr_t)argc);
        pthread_join(other, NULL);
    }
    return many(1, 2, 3, 4, 5, 6, 7, 8, argc);
}
"#;

const CPP: &str = r#"
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <sys/prctl.h>
#include <unistd.h>
#define FAR __attribute__((noinline, noclone))
static volatile int sink;
static FAR void stop() { std::puts("ready"); std::fflush(stdout); for (;;) pause(); }
struct Shape { virtual ~Shape() = default; virtual int area(int depth) const = 0; };
struct Square : Shape {
    std::map<int, std::string> names;
    FAR int area(int depth) const override {
        std::string name = names.at(1) + std::to_string(depth);
        if (depth == 0) stop();
        return (int)name.size() + sink;
    }
};
static FAR int catching(const Shape &shape, int depth) {
    try {
        if (depth == 4) throw std::runtime_error("four");
        return shape.area(0);
    } catch (const std::exception &error) {
        int got = catching(shape, depth + 1);
        return got + (int)std::string(error.what()).size();
    }
}
template <typename T> FAR T folded(const std::vector<T> &values, const std::function<T(T)> &work) {
    T sum{};
    std::for_each(values.begin(), values.end(), [&](T value) { sum += work(value); });
    return sum;
}
int main(int argc, char **argv) {
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    Square square;
    square.names = {{1, "one"}, {2, "two"}};
    auto work = [&] { return (int)folded<double>({1.5, 2.5}, [&](double value) { return catching(square, 4) + value; }); };
    if (argc > 1 && argv[1][0] == '2') {
        std::thread other([&] { sink = work(); });
        other.join();
    }
    return work();
}
"#;

/// Prints one line for each thread: registers, stack bytes, and where each frame is.
const LOOK: &str = r#"
import gdb
for thread in gdb.selected_inferior().threads():
    thread.switch()
    frame = gdb.newest_frame()
    registers = [int(frame.read_register(name)) & (2**64 - 1) for name in ("rip", "rsp", "rbp")]
    stack = b""
    while len(stack) < 16384:
        try:
            stack += bytes(gdb.selected_inferior().read_memory(registers[1] + len(stack), 64))
        except gdb.MemoryError:
            break
    # Of an interrupted function we have one more than where it was.
    places, is_interrupted = [], False
    while frame is not None and len(places) < 100:
        # gdb adds frames that are on no stack: inlined functions, and those that ended with a jump.
        if frame.type() in (gdb.NORMAL_FRAME, gdb.SIGTRAMP_FRAME):
            places.append(frame.pc() + is_interrupted)
            is_interrupted = frame.type() == gdb.SIGTRAMP_FRAME
        frame = frame.older()
    print("FRAMES", *registers, stack.hex(), *places)
"#;

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn compiled(folder: &Path, compiler: &str, name: &str, text: &str) -> Option<std::path::PathBuf> {
    let (source, binary) = (folder.join(name), folder.join(format!("{name}.out")));
    std::fs::write(&source, text).expect("written");
    let mut command = Command::new(compiler);
    command.args(["-O2", "-g", "-fomit-frame-pointer", "-pthread", "-o"]).arg(&binary).arg(&source);
    match command.output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(binary)
        }
        Err(_) => None,
    }
}

/// Compares stacks. Returns how many, and the number of their frames.
fn compare(binary: &Path, scene: &str, look: &Path) -> Option<(usize, usize)> {
    let mut child =
        Running(Command::new(binary).arg(scene).stdout(Stdio::piped()).spawn().expect("the program starts"));
    let mut line = String::new();
    BufReader::new(child.0.stdout.take().expect("its words")).read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    let pid = child.0.id();
    let gdb = Command::new("timeout")
        .args(["120", "gdb", "-nx", "-batch", "-ex", "set debuginfod enabled off"])
        .args(["-ex", "set backtrace past-main on", "-ex", "set backtrace past-entry on"])
        .args(["-p", &pid.to_string(), "-x"])
        .arg(look)
        .stdin(Stdio::null())
        .output();
    let gdb = gdb.ok()?;
    let text = String::from_utf8_lossy(&gdb.stdout).into_owned();
    let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("FRAMES ")).collect();
    if lines.is_empty() {
        println!("gdb says: {text}{}", String::from_utf8_lossy(&gdb.stderr));
        return None;
    }
    let process = Process::open(pid).expect("it waits");
    let mut binaries =
        BinaryTables::reading_with(Parsers::sandboxed(Path::new(env!("CARGO_BIN_EXE_longpole"))));
    let mut unwinding = Unwinding::default();
    unwinding.know(&code(&process).expect("its code"));
    let mut frames = 0;
    for line in &lines {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |index: usize| words[index].parse::<u64>().expect("a number");
        let mut raw = Box::new(RawCopy::new_zeroed());
        let bytes = words[3]
            .as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("digits"), 16).expect("a byte"));
        for (to, byte) in raw.bytes.iter_mut().zip(bytes) {
            *to = byte;
            raw.count += 1;
        }
        (raw.instruction_pointer, raw.stack_pointer, raw.frame_pointer) = (number(0), number(1), number(2));
        raw.from = raw.stack_pointer;
        let theirs: Vec<u64> = (4..words.len()).map(number).collect();
        let ours = unwinding.unwind(&raw, &mut binaries);
        assert_eq!(ours.frames, theirs, "{} scene {scene}: {text}", binary.display());
        assert!(ours.whole, "up to the first function");
        frames += theirs.len();
    }
    Some((lines.len(), frames))
}

#[test]
fn unwound_stacks_are_those_that_gdb_finds() {
    let test = "unwound_stacks_are_those_that_gdb_finds";
    let skip = |why: &str| {
        // An error of standard output does not matter here.
        let _ = writeln!(std::io::stdout(), "SKIP {test}: {why}");
    };
    if Command::new("gdb").arg("--version").output().is_err() {
        return skip("gdb is not installed");
    }
    let folder = tempfile::tempdir().expect("folder");
    let look = folder.path().join("look.py");
    std::fs::write(&look, LOOK).expect("written");
    for (compiler, name, text, scenes) in
        [("cc", "chain.c", C, &["0", "1", "2"][..]), ("c++", "chain.cpp", CPP, &["0", "2"][..])]
    {
        let Some(binary) = compiled(folder.path(), compiler, name, text) else {
            return skip(&format!("{compiler} is not installed"));
        };
        for scene in scenes {
            let Some((stacks, frames)) = compare(&binary, scene, &look) else {
                return skip("gdb cannot attach to a process, or has no Python");
            };
            println!("{name} scene {scene}: {stacks} stacks, {frames} frames alike");
            let least = if name == "chain.c" { 20 } else { 6 };
            assert!(frames >= least, "{frames} frames only");
        }
    }
}
