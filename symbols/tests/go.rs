//! Programs built by Go, with and without the tables that other tools need to name functions.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use symbols::{Locator, ModuleFunctions, Parsers, Place, SymbolSource, functions_of};

const GO: &str = r#"
package main

import (
	"fmt"
	"sort"
	"strings"
)

type shop struct{ items []string }

//go:noinline
func (s *shop) add(name string) int {
	s.items = append(s.items, strings.ToUpper(name))
	return len(s.items)
}

func small(x int) int { return x*3 + 1 }

//go:noinline
func work(n int) int {
	sum := 0
	for i := 0; i < n; i++ {
		sum += small(i)
	}
	return sum
}

func main() {
	s := &shop{}
	for i := 0; i < 10; i++ {
		s.add(fmt.Sprint(i))
	}
	sort.Slice(s.items, func(i, j int) bool { return s.items[i] > s.items[j] })
	fmt.Println(work(100), s.items)
}
"#;

fn build(test: &str, folder: &Path, name: &str, arguments: &[&str]) -> bool {
    std::fs::write(folder.join("main.go"), GO).expect("source");
    std::fs::write(folder.join("go.mod"), "module example\ngo 1.18\n").expect("module");
    let mut command = Command::new("go");
    command.arg("build").args(arguments).args(["-o", name, "."]).current_dir(folder);
    command.env("GOFLAGS", "-mod=mod").env("GOTOOLCHAIN", "local").env("GOCACHE", folder.join("cache"));
    match command.env("HOME", folder).output() {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            println!("SKIP {test}: {}", String::from_utf8_lossy(&output.stderr).trim());
            false
        }
        Err(error) => {
            println!("SKIP {test}: no go: {error}");
            false
        }
    }
}

fn names(module: &ModuleFunctions) -> BTreeMap<String, u64> {
    module.functions().iter().map(|f| (module.raw_name(f).into_owned(), f.address)).collect()
}

/// `function` and `file:line` of addresses, from Go's own tool.
fn oracle(binary: &Path, addresses: &[u64]) -> Vec<(String, String)> {
    let mut command = Command::new("go");
    command.args(["tool", "addr2line"]).arg(binary).env("HOME", "/tmp");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("go tool");
    let mut stdin = child.stdin.take().expect("stdin");
    let input: String = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
    let writer = std::thread::spawn(move || std::io::Write::write_all(&mut stdin, input.as_bytes()));
    let output = child.wait_with_output().expect("output");
    writer.join().expect("joined").expect("written");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    lines.as_chunks::<2>().0.iter().map(|[name, place]| ((*name).to_owned(), (*place).to_owned())).collect()
}

#[test]
fn a_stripped_go_program_has_its_functions_and_lines() {
    let test = "a_stripped_go_program_has_its_functions_and_lines";
    let folder = tempfile::tempdir().expect("folder");
    for (kind, mode) in [("exe", "-buildmode=exe"), ("pie", "-buildmode=pie")] {
        let (whole, stripped) = (format!("whole-{kind}"), format!("stripped-{kind}"));
        if !build(test, folder.path(), &whole, &[mode, "-trimpath"])
            || !build(test, folder.path(), &stripped, &[mode, "-trimpath", "-ldflags=-s -w"])
        {
            return;
        }
        let (whole, stripped) = (folder.path().join(whole), folder.path().join(stripped));
        let full = functions_of(&whole).expect("readable");
        let module = functions_of(&stripped).expect("readable");
        assert!(module.is_go());
        assert_eq!(*module.source(), SymbolSource::GoTable, "{kind}");
        let (found, wanted) = (names(&module), names(&full));
        for name in ["main.main", "main.work", "main.(*shop).add", "fmt.Sprint", "runtime.mallocgc"] {
            assert_eq!(found.get(name), wanted.get(name), "{kind} {name}");
            assert!(found.contains_key(name), "{kind} {name}");
        }
        let addresses: Vec<u64> = module
            .functions()
            .iter()
            .step_by(7)
            .flat_map(|function| (0..3).map(|part| function.address + function.size * part / 3))
            .collect();
        let places: Vec<Place> = addresses.iter().map(|&address| Place::Address(address)).collect();
        let located = Locator::with(&module, |locator| locator.locate(&places)).locations();
        let mut compared = 0;
        for ((wanted, place), (location, address)) in
            oracle(&whole, &addresses).iter().zip(located.iter().zip(&addresses))
        {
            let frame = location.frames.as_ref().ok().and_then(|frames| frames.last().cloned());
            let Some(frame) = frame else { continue };
            // Go's tool prints `?` and line 0 for addresses that its table does not have.
            if wanted == "?" || place.ends_with(":0") || place.ends_with(":-1") || place.starts_with('?') {
                continue;
            }
            let line = format!("{}:{}", frame.file.unwrap_or_default(), frame.line.unwrap_or_default());
            assert_eq!(line, *place, "{kind} {address:#x} {wanted}");
            assert_eq!(frame.function.as_ref(), Some(wanted), "{kind} {address:#x}");
            compared += 1;
        }
        if kind == "pie" {
            // Go's own tool cannot read position-independent programs.
            println!("{kind}: {compared} of {} addresses compared", addresses.len());
            let main =
                Locator::with(&module, |locator| locator.locate(&[Place::Address(found["main.main"])]));
            let line = main.locations()[0].line().unwrap_or_default();
            assert!(line.ends_with("main.go:29"), "{line}");
            continue;
        }
        assert!(compared > 300, "{kind}: {compared} of {}", addresses.len());
    }
}
/// Go's runtime is found in a binary with debug information only. The distances are those of every version of Go on amd64.
#[test]
fn go_s_runtime_is_found_by_its_debug_information() {
    let folder = tempfile::tempdir().expect("folder");
    let runtime = |name: &str, arguments: &[&str]| {
        if !build("go runtime", folder.path(), name, arguments) {
            return None;
        }
        let path = folder.path().join(name);
        let file = std::fs::File::open(&path).expect("the program");
        Some(Parsers::here().go_runtime(&file, &path).expect("an answer"))
    };
    let Some(found) = runtime("plain", &[]) else { return };
    let found = found.expect("debug information");
    let members = found.goroutine;
    assert_eq!((members.stack, members.stack_pointer), (0, 56), "{found:?}");
    assert_eq!(members.instruction, members.stack_pointer + 8, "{found:?}");
    assert!(members.status < members.reason && members.reason < members.start, "{found:?}");
    assert_eq!(found.capacity, 8, "{found:?}");
    let stripped = runtime("stripped", &["-ldflags=-s -w"]);
    assert_eq!(stripped, Some(None));
}
