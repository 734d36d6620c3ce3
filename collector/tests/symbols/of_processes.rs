//! Addresses of running processes: the program, libraries, deleted and replaced files, code that the program made.

use super::sources::build;
use collector::symbols::{Parsers, Reason, Resolver};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn parsers() -> Parsers {
    Parsers::sandboxed(Path::new(env!("CARGO_BIN_EXE_longpole")))
}

const SOURCE: &str = r#"
#include <stdio.h>
#include <unistd.h>
#include <stdlib.h>
#include <sys/mman.h>
__attribute__((noinline)) void here(void) { asm volatile(""); }
int main(void) {
    void *made = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("%p %p %p\n", (void *)here, (void *)malloc, made);
    fflush(stdout);
    getchar();
    return 0;
}
"#;

struct Running {
    child: Child,
    addresses: Vec<u64>,
}

impl Running {
    fn start(path: &Path) -> Running {
        let mut child =
            Command::new(path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("started");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("stdout")).read_line(&mut line).expect("line");
        let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("address");
        let addresses = line.split_whitespace().map(number).collect();
        Running { child, addresses }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn program_library_made_code_and_kernel() {
    let test = "program_library_made_code_and_kernel";
    let Some(built) = build(test, "cc", &["-O1", "-g"], &[("main.c", SOURCE)]) else { return };
    let running = Running::start(&built.binary);
    let pid = running.child.id();
    let &[here, malloc, made] = &running.addresses[..] else { panic!("{:?}", running.addresses) };
    let map = format!("/tmp/perf-{pid}.map");
    let mut file = std::fs::File::create(&map).expect("map");
    // It lies about its library, too: that is not believed.
    write!(file, "{made:x} 40 made::add /srv/app.js:3\n{malloc:x} 100 hidden\n").expect("written");
    let mut resolver = Resolver::new(parsers());
    let found = resolver.resolve(pid, &[here, malloc, made + 8, 16, 0xffff_ffff_0000_0000, malloc + 1]);
    std::fs::remove_file(&map).expect("removed");
    assert_eq!((found[0].module.as_str(), found[0].location.name.as_str()), ("program", "here"));
    assert!(found[0].location.line().is_some_and(|line| line.ends_with("main.c:6")), "{:?}", found[0]);
    assert!(found[1].module.starts_with("libc"), "{:?}", found[1]);
    assert!(found[1].location.name.contains("malloc"), "{:?}", found[1]);
    assert!(found[5].location.symbol.as_ref().is_ok_and(|hit| hit.distance == 1));
    assert_eq!(
        (found[2].module.as_str(), found[2].location.name.as_str()),
        ("[jit]", "made::add /srv/app.js:3")
    );
    assert_eq!(found[3].location.symbol, Err(Reason::NotMapped));
    assert!(found[4].location.symbol.is_err(), "the kernel has nothing there");
}

#[test]
fn a_deleted_and_replaced_program_is_still_the_one_that_runs() {
    let test = "a_deleted_and_replaced_program_is_still_the_one_that_runs";
    let Some(built) = build(test, "cc", &["-O1", "-g"], &[("main.c", SOURCE)]) else { return };
    let running = Running::start(&built.binary);
    std::fs::remove_file(&built.binary).expect("removed");
    std::fs::copy("/bin/true", &built.binary).expect("replaced");
    let mut resolver = Resolver::new(parsers());
    let found = resolver.resolve(running.child.id(), &running.addresses[..1]);
    assert_eq!(found[0].location.name, "here");
    assert!(found[0].location.line().is_some_and(|line| line.ends_with("main.c:6")), "{found:?}");
}

#[test]
fn a_map_of_somebody_else_is_refused() {
    let test = "a_map_of_somebody_else_is_refused";
    let Some(built) = build(test, "cc", &["-O1", "-g"], &[("main.c", SOURCE)]) else { return };
    let running = Running::start(&built.binary);
    let pid = running.child.id();
    let map = format!("/tmp/perf-{pid}.map");
    std::fs::write(&map, format!("{:x} 40 lie\n", running.addresses[2])).expect("written");
    std::fs::set_permissions(&map, std::os::unix::fs::PermissionsExt::from_mode(0o666)).expect("mode");
    let mut resolver = Resolver::new(parsers());
    let found = resolver.resolve(pid, &running.addresses[2..3]);
    std::fs::remove_file(&map).expect("removed");
    assert_eq!(found[0].location.symbol, Err(Reason::NotMapped));
    assert!(resolver.map_refused(pid).is_some_and(|why| why.contains("write to it")));
}

#[test]
fn kernel_functions_where_they_may_be_read() {
    let text = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let line = text.lines().find(|line| line.ends_with(" T schedule"));
    let address = line.and_then(|line| u64::from_str_radix(line.split(' ').next()?, 16).ok());
    let Some(address) = address.filter(|&address| address != 0) else {
        println!("SKIP kernel_functions_where_they_may_be_read: the kernel hides its addresses");
        return;
    };
    let found = Resolver::new(parsers()).resolve(std::process::id(), &[address + 5]);
    assert_eq!((found[0].module.as_str(), found[0].location.name.as_str()), ("vmlinux", "schedule"));
}

/// Node names the code that it makes with --perf-basic-prof.
#[test]
fn javascript_of_node() {
    let test = "javascript_of_node";
    let script = "function busy(n) { let s = 0; for (let i = 0; i < n; i++) s += i % 7; return s }\
                  for (let i = 0; i < 2000; i++) busy(10000); console.log('0x1'); setTimeout(() => {}, 100000)";
    // It leaves a log where it runs.
    let folder = tempfile::tempdir().expect("folder");
    let child = Command::new("node")
        .current_dir(folder.path())
        .args(["--perf-basic-prof", "-e", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else {
        println!("SKIP {test}: no node");
        return;
    };
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("stdout")).read_line(&mut line).expect("line");
    let pid = child.id();
    let text = std::fs::read_to_string(format!("/tmp/perf-{pid}.map")).unwrap_or_default();
    let entry = text.lines().rfind(|line| line.contains("busy")).map(str::to_owned);
    let start = entry.as_deref().and_then(|line| u64::from_str_radix(line.split(' ').next()?, 16).ok());
    let found = start.map(|start| Resolver::new(parsers()).resolve(pid, &[start + 1]));
    child.kill().expect("killed");
    child.wait().expect("ended");
    let _ = std::fs::remove_file(format!("/tmp/perf-{pid}.map"));
    let Some(found) = found else {
        println!("SKIP {test}: node made no map");
        return;
    };
    assert!(found[0].location.name.contains("busy"), "{found:?} {entry:?}");
}
