//! Names, lines and inline chains are those of llvm-symbolizer, for programs built as distributions and build systems
//! build them. The oracle always sees the unstripped program with its debug information. longpole sees the stripped
//! parts and has to find the other parts.

use super::sources::{Built, C, CPP, OTHER_C, build};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use symbols::{
    Frame, Locator, ModuleFunctions, Place, SymbolSource, demangled, functions_of, functions_with,
};

/// Addresses compared for each program.
const MOST_ADDRESSES: usize = 3000;

fn run(test: &str, program: &str, arguments: &[&str], folder: &Path) -> bool {
    match Command::new(program).args(arguments).current_dir(folder).output() {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            println!("SKIP {test}: {program}: {}", String::from_utf8_lossy(&output.stderr).trim());
            false
        }
        Err(error) => {
            println!("SKIP {test}: no {program}: {error}");
            false
        }
    }
}

/// Places in every function: its entry, its end, and some between.
fn addresses(module: &ModuleFunctions) -> Vec<u64> {
    let mut found = Vec::new();
    for function in module.functions() {
        let step = (function.size / 8).max(1);
        found.extend((0..function.size).step_by(step as usize).map(|at| function.address + at));
    }
    found.sort_unstable();
    found.dedup();
    let every = found.len().div_ceil(MOST_ADDRESSES).max(1);
    found.into_iter().step_by(every).collect()
}

/// Inline chains from llvm-symbolizer, innermost first.
fn oracle(test: &str, binary: &Path, addresses: &[u64]) -> Option<Vec<Vec<Frame>>> {
    let mut command = Command::new("llvm-symbolizer");
    command.arg(format!("--obj={}", binary.display()));
    command.args(["--inlines", "--functions=linkage", "--no-demangle", "--output-style=JSON"]);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let Ok(mut child) = child else {
        println!("SKIP {test}: no llvm-symbolizer");
        return None;
    };
    let mut stdin = child.stdin.take().expect("stdin");
    let input: String = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
    let writer = std::thread::spawn(move || std::io::Write::write_all(&mut stdin, input.as_bytes()));
    let output = child.wait_with_output().expect("output");
    writer.join().expect("joined").expect("written");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let chains: Vec<Vec<Frame>> = text
        .lines()
        .map(|line| {
            let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
            let symbols = value["Symbol"].as_array().cloned().unwrap_or_default();
            let frame = |symbol: &serde_json::Value| {
                let name = symbol["FunctionName"].as_str().unwrap_or_default();
                let file = symbol["FileName"].as_str().unwrap_or_default();
                let line = symbol["Line"].as_u64().unwrap_or_default() as u32;
                Frame {
                    function: (!name.is_empty()).then(|| demangled(name)),
                    file: (!file.is_empty()).then(|| normal(file)),
                    line: (line > 0).then_some(line),
                    column: None,
                }
            };
            symbols.iter().map(frame).collect()
        })
        .collect();
    assert_eq!(chains.len(), addresses.len(), "{test}: one answer for each address");
    Some(chains)
}

/// A path without `.` and `a/..`.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." if parts.last().is_some_and(|last| !last.is_empty() && *last != "..") => drop(parts.pop()),
            other => parts.push(other),
        }
    }
    parts.join("/")
}

/// Whether the symbol table has this name for this place: of several names, the two tools choose differently.
fn is_alias(module: &ModuleFunctions, address: u64, name: &str) -> bool {
    let start = module.covering(address).map(|function| function.address);
    let mut names = module.functions().iter().filter(|function| Some(function.address) == start);
    names.any(|function| module.name(function) == name)
}

/// Compares a module with the oracle's view of `full`; returns the number of addresses with at least two frames.
fn compare(test: &str, module: &ModuleFunctions, full: &Path) -> Option<usize> {
    let reference = functions_of(full).expect("the full program");
    let addresses = addresses(&reference);
    assert!(addresses.len() > 20, "{test}: {} addresses", addresses.len());
    let wanted = oracle(test, full, &addresses)?;
    let places: Vec<Place> = addresses.iter().map(|&address| Place::Address(address)).collect();
    let found = Locator::with(module, |locator| locator.locate(&places)).locations();
    let mut inlined = 0;
    let mut lines = 0;
    let mut wrong: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for ((address, wanted), found) in addresses.iter().zip(&wanted).zip(&found) {
        let frames = found.frames.clone().unwrap_or_default();
        let mut note = |what: &str| {
            let text = format!("{address:#x}\n  wanted {wanted:?}\n  found  {found:?}");
            wrong.entry(what.to_owned()).or_default().push(text);
        };
        let known = wanted.iter().any(|frame| frame.line.is_some());
        if !known {
            // Without debug information there: the symbol's name only. (Both tools take line 0, which compilers write, for
            // none.)
            let name = wanted.last().and_then(|frame| frame.function.clone());
            let same = name.is_none_or(|name| name == found.name || is_alias(module, *address, &name));
            if !same && found.symbol.is_ok() {
                note("symbol");
            }
            continue;
        }
        lines += 1;
        inlined += usize::from(wanted.len() > 1);
        if frames.len() != wanted.len() {
            note("length of the chain");
            continue;
        }
        for (index, (frame, wanted)) in frames.iter().zip(wanted).enumerate() {
            let last = index + 1 == frames.len();
            if frame.line.unwrap_or(0) != wanted.line.unwrap_or(0) {
                note("line");
            } else if frame.line.is_some() && frame.file.as_deref().map(normal) != wanted.file {
                note("file");
            }
            let names_differ = frame.function != wanted.function;
            // The oracle takes the outermost name from the symbol table.
            let by_symbol =
                last && wanted.function.as_ref().is_some_and(|name| is_alias(module, *address, name));
            if names_differ && !by_symbol {
                note("name");
            }
        }
    }
    for (what, texts) in &wrong {
        println!("{test}: {} × {what}, e.g. {}", texts.len(), texts[0]);
    }
    assert!(wrong.is_empty(), "{test}: {} kinds of difference", wrong.len());
    assert!(lines > 10, "{test}: only {lines} addresses with lines");
    println!("{test}: {} addresses, {lines} with lines, {inlined} of them inlined", addresses.len());
    Some(inlined)
}

/// A C++ program with inlining in several layers.
fn cpp(test: &str, arguments: &[&str]) -> Option<Built> {
    build(test, "c++", arguments, &[("main.cpp", CPP)])
}

fn c(test: &str, arguments: &[&str]) -> Option<Built> {
    build(test, "cc", arguments, &[("main.c", C), ("other.c", OTHER_C)])
}

fn path(built: &Built, name: &str) -> PathBuf {
    built.folder.path().join(name)
}

#[test]
fn c_and_cpp_programs_are_located_as_llvm_does() {
    let mut inlined = 0;
    for arguments in [
        &["-O2", "-g", "-gdwarf-5"][..],
        &["-O2", "-g", "-gdwarf-4"],
        &["-O0", "-g"],
        &["-O2", "-g", "-static-pie"],
        &["-O3", "-g", "-flto", "-ffunction-sections"],
        &["-O2", "-g", "-gz=zlib"],
        &["-O2", "-g", "-no-pie", "-fno-pie"],
    ] {
        for language in ["c", "cpp"] {
            let test = format!("{language} {}", arguments.join(" "));
            let built = if language == "c" { c(&test, arguments) } else { cpp(&test, arguments) };
            let Some(built) = built else { continue };
            let module = functions_of(&built.binary).expect("readable");
            inlined += compare(&test, &module, &built.binary).unwrap_or_default();
        }
    }
    println!("{inlined} inlined addresses");
}

#[test]
fn programs_of_other_compilers_are_located_as_llvm_does() {
    for (compiler, arguments) in
        [("clang++", &["-O2", "-g", "-gdwarf-5"][..]), ("clang++", &["-O2", "-gdwarf-4"])]
    {
        let test = format!("{compiler} {}", arguments.join(" "));
        let Some(built) = build(&test, compiler, arguments, &[("main.cpp", CPP)]) else { continue };
        let module = functions_of(&built.binary).expect("readable");
        compare(&test, &module, &built.binary);
    }
    let test = "musl, static";
    if let Some(built) = build(test, "musl-gcc", &["-O2", "-g", "-static"], &[("m.c", MUSL)]) {
        let module = functions_of(&built.binary).expect("readable");
        compare(test, &module, &built.binary);
    }
}

const MUSL: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#define KEEP __attribute__((noinline))
static inline __attribute__((always_inline)) int twice(int x) { return printf("%d", x) * 2; }
static inline __attribute__((always_inline)) int more(int x) { return twice(x + 1) + abs(x); }
KEEP int work(int x) { int y = more(x); return y + more(y); }
KEEP int loop(int n) { int sum = 0; for (int i = 0; i < n; i++) sum += work(i); return sum; }
int main(int argc, char **argv) { return loop(argc * 10) & 1; }
"#;

#[test]
fn a_debug_file_by_debug_link_is_used_if_its_checksum_is_right() {
    let test = "a_debug_file_by_debug_link_is_used_if_its_checksum_is_right";
    let Some(built) = cpp(test, &["-O2", "-g", "-Wl,--build-id=none"]) else { return };
    let folder = built.folder.path();
    for arguments in [
        &["--only-keep-debug", "program", "program.debug"][..],
        &["--strip-all", "--add-gnu-debuglink=program.debug", "program", "stripped"],
    ] {
        if !run(test, "objcopy", arguments, folder) {
            return;
        }
    }
    let stripped = path(&built, "stripped");
    let module = functions_of(&stripped).expect("readable");
    assert!(matches!(module.source(), SymbolSource::DebugFile(_)), "{:?}", module.source());
    compare(test, &module, &built.binary);

    // The same comparison with the debug file in the folder `.debug`, where debuggers look.
    std::fs::create_dir(path(&built, ".debug")).expect("folder");
    std::fs::rename(path(&built, "program.debug"), path(&built, ".debug/program.debug")).expect("moved");
    let module = functions_of(&stripped).expect("readable");
    assert!(matches!(module.source(), SymbolSource::DebugFile(_)), "{:?}", module.source());

    // With one byte changed the checksum is wrong, and the message says so.
    let changed = path(&built, ".debug/program.debug");
    let mut bytes = std::fs::read(&changed).expect("read");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&changed, bytes).expect("written");
    let module = functions_of(&stripped).expect("readable");
    assert!(!matches!(module.source(), SymbolSource::DebugFile(_)));
    assert!(module.refused().iter().any(|why| why.contains("checksum")), "{:?}", module.refused());
}

#[test]
fn a_debug_file_by_build_id_is_used_if_its_build_id_is_right() {
    let test = "a_debug_file_by_build_id_is_used_if_its_build_id_is_right";
    let Some(built) = cpp(test, &["-O2", "-g", "-Wl,--build-id=sha1"]) else { return };
    let Some(other) = c(test, &["-O2", "-g", "-Wl,--build-id=sha1"]) else { return };
    let folder = built.folder.path();
    for arguments in [
        &["--only-keep-debug", "--compress-debug-sections=zlib", "program", "full.debug"][..],
        &["--strip-all", "program", "stripped"],
    ] {
        if !run(test, "objcopy", arguments, folder) {
            return;
        }
    }
    let id = functions_of(&built.binary).expect("readable").build_id().expect("build-id").to_string();
    let debug = folder.join("symbols/.build-id").join(&id[..2]);
    std::fs::create_dir_all(&debug).expect("folder");
    let debug = debug.join(format!("{}.debug", &id[2..]));
    std::fs::rename(folder.join("full.debug"), &debug).expect("moved");
    let folders = [folder.join("symbols")];
    let stripped = path(&built, "stripped");
    let module = functions_with(&stripped, &folders).expect("readable");
    assert!(matches!(module.source(), SymbolSource::DebugFile(_)), "{:?}", module.source());
    compare(test, &module, &built.binary);

    // The debug file is another program's, under the name of this program's.
    std::fs::copy(&other.binary, &debug).expect("copied");
    let module = functions_with(&stripped, &folders).expect("readable");
    assert!(!matches!(module.source(), SymbolSource::DebugFile(_)));
    assert!(module.refused().iter().any(|why| why.contains("build-id")), "{:?}", module.refused());
}

#[test]
fn debug_information_shared_by_two_files_is_located_as_llvm_does() {
    let test = "debug_information_shared_by_two_files_is_located_as_llvm_does";
    let Some(built) = cpp(test, &["-O2", "-g", "-gdwarf-4"]) else { return };
    let folder = built.folder.path();
    for name in ["a", "b"] {
        std::fs::copy(&built.binary, folder.join(name)).expect("copied");
    }
    if !run(test, "dwz", &["-m", "common", "a", "b"], folder) {
        return;
    }
    let module = functions_of(&folder.join("a")).expect("readable");
    assert!(module.elf().section(b".gnu_debugaltlink").is_some(), "dwz has split it");
    compare(test, &module, &built.binary);
}

#[test]
fn split_debug_information_is_found_in_objects_and_packages() {
    for version in ["-gdwarf-5", "-gdwarf-4"] {
        let test = format!("split {version}");
        let arguments = ["-O2", "-g", version];
        let Some(whole) = cpp(&test, &arguments) else { return };
        let Some(built) = cpp(&test, &["-O2", "-g", version, "-gsplit-dwarf"]) else { return };
        let folder = built.folder.path();
        // The code is the same, so the oracle may read the program that is not split.
        let module = functions_of(&built.binary).expect("readable");
        if compare_moved(&test, &module, &whole.binary).is_none() {
            return;
        }
        if !run(&test, "dwp", &["-e", "program", "-o", "program.dwp"], folder) {
            continue;
        }
        let objects: Vec<_> = std::fs::read_dir(folder).expect("folder").flatten().collect();
        for object in objects.iter().filter(|entry| entry.path().extension().is_some_and(|e| e == "dwo")) {
            std::fs::remove_file(object.path()).expect("removed");
        }
        let module = functions_of(&built.binary).expect("readable");
        compare_moved(&format!("{test} in a package"), &module, &whole.binary);
        std::fs::remove_file(folder.join("program.dwp")).expect("removed");
        let module = functions_of(&built.binary).expect("readable");
        let main = module.functions().iter().find(|f| module.raw_name(f) == "main").expect("main");
        let found = Locator::with(&module, |locator| locator.locate(&[Place::Address(main.address)]));
        let location = found.locations().remove(0);
        assert_eq!(location.name, "main");
        assert_eq!(location.frames, Err(symbols::Reason::SplitDebugInformation));
    }
}

/// Like [`compare`], for a program compiled again in another folder.
fn compare_moved(test: &str, module: &ModuleFunctions, whole: &Path) -> Option<usize> {
    let reference = functions_of(whole).expect("the whole program");
    let addresses = addresses(&reference);
    let wanted = oracle(test, whole, &addresses)?;
    let places: Vec<Place> = addresses.iter().map(|&address| Place::Address(address)).collect();
    let found = Locator::with(module, |locator| locator.locate(&places)).locations();
    let mut inlined = 0;
    let last =
        |file: &Option<String>| file.as_deref().and_then(|file| file.rsplit('/').next()).map(str::to_owned);
    for ((address, wanted), found) in addresses.iter().zip(&wanted).zip(&found) {
        if wanted.iter().all(|frame| frame.line.is_none()) {
            continue;
        }
        let frames = found.frames.clone().unwrap_or_default();
        let mut frames = frames;
        if let (Some(outermost), Some(wanted)) = (frames.last_mut(), wanted.last())
            && wanted.function.as_ref() == Some(&found.name)
        {
            // The oracle takes the outermost name from the symbol table, e.g. with `[clone .cold]`.
            outermost.function.clone_from(&wanted.function);
        }
        let short = |frames: &[Frame]| -> Vec<_> {
            frames.iter().map(|f| (f.function.clone(), last(&f.file), f.line.unwrap_or(0))).collect()
        };
        assert_eq!(short(&frames), short(wanted), "{test}: {address:#x}");
        inlined += usize::from(wanted.len() > 1);
    }
    assert!(inlined > 5, "{test}: {inlined}");
    println!("{test}: {} addresses, {inlined} of them inlined", addresses.len());
    Some(inlined)
}

#[test]
fn compressed_debug_information_is_located_as_llvm_does() {
    let test = "compressed_debug_information_is_located_as_llvm_does";
    let Some(built) = cpp(test, &["-O2", "-g"]) else { return };
    for kind in ["zlib", "zlib-gnu", "zstd"] {
        let option = format!("--compress-debug-sections={kind}");
        if !run(test, "objcopy", &[&option, "program", kind], built.folder.path()) {
            continue;
        }
        let module = functions_of(&path(&built, kind)).expect("readable");
        let same = std::fs::metadata(path(&built, kind)).expect("there").len()
            < std::fs::metadata(&built.binary).expect("there").len();
        assert!(same, "{kind}: smaller");
        compare(&format!("compressed by {kind}"), &module, &built.binary);
    }
}

#[test]
fn a_stripped_program_with_a_packed_table_has_its_functions() {
    let test = "a_stripped_program_with_a_packed_table_has_its_functions";
    let Some(built) = c(test, &["-O2", "-g"]) else { return };
    let folder = built.folder.path();
    // As Fedora's find-debuginfo does it.
    for (program, arguments) in [
        (
            "objcopy",
            &["-S", "--remove-section=.gdb_index", "--remove-section=.comment", "program", "mini"][..],
        ),
        ("objcopy", &["--only-keep-debug", "program", "mini"]),
        ("strip", &["--strip-debug", "--remove-section=.comment", "mini"]),
        ("xz", &["--force", "-9", "mini"]),
        ("strip", &["--strip-all", "-o", "stripped", "program"]),
        ("objcopy", &["--add-section", ".gnu_debugdata=mini.xz", "stripped"]),
    ] {
        if !run(test, program, arguments, folder) {
            return;
        }
    }
    let full = functions_of(&built.binary).expect("readable");
    let module = functions_of(&path(&built, "stripped")).expect("readable");
    assert_eq!(*module.source(), SymbolSource::PackedTable);
    let names = |module: &ModuleFunctions| -> Vec<(u64, u64, String)> {
        module.functions().iter().map(|f| (f.address, f.size, module.raw_name(f).into_owned())).collect()
    };
    let (found, wanted) = (names(&module), names(&full));
    assert!(wanted.iter().all(|function| found.contains(function)), "{found:?}\n{wanted:?}");
}

const RUST: &str = r#"
use std::collections::BTreeMap;
mod shop {
    #[inline(never)]
    pub fn sorted(v: &mut Vec<(u32, String)>) { v.sort_by(|a, b| b.cmp(a)); v.dedup(); }
    pub trait Total { fn total(&self) -> u64; }
    impl<T: Copy + Into<u64>> Total for [T] {
        #[inline(never)]
        fn total(&self) -> u64 { self.iter().map(|&x| x.into()).filter(|x| x % 3 != 1).sum() }
    }
}
use shop::Total;
fn main() {
    let mut v: Vec<(u32, String)> = (0..100).map(|i| (i % 7, format!("{i}"))).collect();
    shop::sorted(&mut v);
    let map: BTreeMap<u32, usize> = v.iter().map(|(k, s)| (*k, s.len())).collect();
    let n: Vec<u32> = map.keys().copied().collect();
    println!("{:?} {}", map, n[..].total());
}
"#;

#[test]
fn rust_programs_are_located_as_llvm_does() {
    for arguments in [
        &["-O", "-g", "-Csymbol-mangling-version=v0"][..],
        &["-O", "-g", "-Csymbol-mangling-version=legacy", "-Zunstable-options"],
        &["-Cdebuginfo=1", "-Copt-level=3", "-Clto=fat"],
    ] {
        let test = format!("rust {}", arguments.join(" "));
        let Some(built) = build(&test, "rustc", arguments, &[("main.rs", RUST)]) else { continue };
        let module = functions_of(&built.binary).expect("readable");
        compare(&test, &module, &built.binary);
    }
}

/// Large programs that happen to be here.
#[test]
fn this_test_s_own_binary_is_located_as_llvm_does() {
    let real = ["/proc/self/exe".to_owned()];
    for binary in real {
        let module = functions_of(Path::new(&binary)).expect("readable");
        if module.elf().section(b".debug_info").is_none() {
            println!(
                "SKIP this_test_s_own_binary_is_located_as_llvm_does: {binary} has no debug information"
            );
            continue;
        }
        compare("this test", &module, &std::fs::read_link(binary).expect("link"));
    }
}
