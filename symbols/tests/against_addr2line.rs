//! Every answer out of the small indexes of units is the one that addr2line gives from the whole of them.

use super::sources::{C, CPP, OTHER_C, build};
use std::path::Path;
use std::process::Command;
use symbols::{Locator, ModuleFunctions, Place, functions_of};

/// Addresses compared for each program.
const MOST_ADDRESSES: usize = 40_000;

/// Places in every function, and between them, where nothing is.
fn places(module: &ModuleFunctions) -> Vec<Place> {
    let mut found = Vec::new();
    for function in module.functions() {
        let step = (function.size / 16).max(1);
        let until = function.size + 3;
        found.extend((0..until).step_by(step as usize).map(|at| function.address.saturating_add(at)));
    }
    found.sort_unstable();
    found.dedup();
    let every = found.len().div_ceil(MOST_ADDRESSES).max(1);
    found.into_iter().step_by(every).map(Place::Address).collect()
}

/// Compares; returns the number of places with lines, of those with inlined calls, and for how many addr2line
/// was asked.
fn compare(test: &str, binary: &Path) -> (usize, usize, usize) {
    let module = functions_of(binary).expect("readable");
    let places = places(&module);
    assert!(places.len() > 50, "{test}: {} places", places.len());
    let wanted = Locator::with(&module, |locator| {
        locator.give_indexes_up();
        let wanted = locator.locate(&places).locations();
        assert_eq!(locator.asked_addr2line() > 0, locator.no_lines().is_none());
        wanted
    });
    let (found, mixed, asked) = Locator::with(&module, |locator| {
        let found = locator.locate(&places).locations();
        let asked = locator.asked_addr2line();
        // In another order, and one at a time: what is kept from one address to the next changes nothing.
        let mixed: Vec<usize> = (0..2000).map(|number| number * 7919 % places.len()).collect();
        let mixed: Vec<_> = mixed
            .into_iter()
            .map(|at| (at, locator.locate(&places[at..=at]).locations().remove(0)))
            .collect();
        (found, mixed, asked)
    });
    let (mut lines, mut inlined) = (0, 0);
    for ((place, wanted), found) in places.iter().zip(&wanted).zip(&found) {
        assert_eq!(found, wanted, "{test}: {place:x?}");
        let frames = found.frames.as_ref().map_or(0, Vec::len);
        lines += usize::from(frames > 0);
        inlined += usize::from(frames > 1);
    }
    for (at, found) in mixed {
        assert_eq!(found, wanted[at], "{test}: {:x?}, asked alone", places[at]);
    }
    println!(
        "{test}: {} places, {lines} with lines, {inlined} of them inlined, addr2line asked for {asked}",
        places.len()
    );
    (lines, inlined, asked)
}

#[test]
fn programs_of_many_kinds() {
    for (compiler, arguments) in [
        ("c++", &["-O2", "-g", "-gdwarf-5"][..]),
        ("c++", &["-O2", "-g", "-gdwarf-4", "-fno-pie", "-no-pie"]),
        ("c++", &["-O2", "-g", "-gdwarf-3", "-gstrict-dwarf"]),
        ("c++", &["-O2", "-g", "-gdwarf-5", "-gdwarf64"]),
        ("c++", &["-O0", "-g"]),
        ("c++", &["-O3", "-g", "-flto", "-ffunction-sections", "-Wl,--gc-sections"]),
        ("c++", &["-O2", "-g1", "-fdebug-types-section"]),
        ("c++", &["-O2", "-g", "-gz=zlib", "-static"]),
        ("clang++", &["-O2", "-g"]),
        ("clang++", &["-O2", "-gdwarf-4", "-gline-tables-only"]),
        ("clang++", &["-O3", "-g", "-ffunction-sections", "-fdebug-types-section"]),
    ] {
        let test = format!("{compiler} {}", arguments.join(" "));
        let Some(built) = build(&test, compiler, arguments, &[("main.cpp", CPP)]) else { continue };
        let (lines, inlined, asked) = compare(&test, &built.binary);
        assert!(lines > 20 && asked == 0, "{test}: {lines}, {asked}");
        assert!(inlined > 0 || arguments.contains(&"-O0"), "{test}");
    }
    let sources = [("main.c", C), ("other.c", OTHER_C)];
    if let Some(built) = build("c", "cc", &["-O2", "-g"], &sources) {
        assert_eq!(compare("c", &built.binary).2, 0);
    }
    // Split off: addr2line reads the parts.
    if let Some(built) = build("split", "c++", &["-O2", "-g", "-gsplit-dwarf"], &[("main.cpp", CPP)]) {
        let (lines, _, asked) = compare("split", &built.binary);
        assert!(lines > 20 && asked > 20, "{lines}, {asked}");
    }
}

#[test]
fn what_two_programs_have_in_common() {
    let test = "what_two_programs_have_in_common";
    let Some(built) = build(test, "c++", &["-O2", "-g", "-gdwarf-4"], &[("main.cpp", CPP)]) else { return };
    let folder = built.folder.path();
    for name in ["a", "b", "alone"] {
        std::fs::copy(&built.binary, folder.join(name)).expect("copied");
    }
    for arguments in [&["-m", "common", "a", "b"][..], &["alone"]] {
        match Command::new("dwz").args(arguments).current_dir(folder).status() {
            Ok(status) if status.success() => {}
            _ => return println!("SKIP {test}: no dwz"),
        }
    }
    for name in ["a", "alone"] {
        let (lines, inlined, asked) = compare(name, &folder.join(name));
        assert!(lines > 20 && inlined > 0 && asked == 0, "{name}: {lines}, {inlined}, {asked}");
    }
}

/// This test itself, with the whole of longpole in it: some hundred units of Rust, and C.
#[test]
fn this_program() {
    let (lines, inlined, asked) = compare("this test", Path::new("/proc/self/exe"));
    if lines == 0 {
        return println!("SKIP this_program: no debug information");
    }
    assert!(lines > 10_000 && inlined > 1000 && asked == 0, "{lines}, {inlined}, {asked}");
}
