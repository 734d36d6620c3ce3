//! Entries and exits of running programs, by a debugger's breakpoints. At every exit the stack pointer is that of an open entry
//! of the same function. Every call ends with one exit, unless an exception unwinds it.

use super::sources::{C, CPP, OTHER_C, build};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use symbols::{ChosenFunction, ModuleFunctions, Selection, choose, functions_of};

/// Index of the function, whether it is an entry, stack pointer; in time order.
type Hits = Vec<(usize, bool, u64)>;

fn run_under_gdb(
    test: &str,
    binary: &Path,
    module: &ModuleFunctions,
    chosen: &[ChosenFunction],
) -> Option<Hits> {
    let mut script = String::from("set pagination off\nset confirm off\nset debuginfod enabled off\n");
    for (index, function) in chosen.iter().enumerate() {
        let exits = function.exit_offsets.iter().map(|&offset| (false, offset));
        for (is_entry, offset) in std::iter::once((true, function.entry_offset)).chain(exits) {
            let address = module.elf().code_address_of(offset).expect("in code");
            let text = format!("\"HIT {index} {} %lx\\n\", $rsp", u8::from(is_entry));
            writeln!(script, "break *{address:#x}\ncommands\nsilent\nprintf {text}\ncontinue\nend")
                .expect("text");
        }
    }
    script.push_str("run\n");
    let file = binary.with_extension("gdb");
    std::fs::write(&file, script).expect("script");
    let output = Command::new("gdb").args(["-nx", "-batch", "-x"]).arg(&file).arg(binary).output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            println!("SKIP {test}: no gdb: {error}");
            return None;
        }
    };
    let text = String::from_utf8_lossy(&output.stdout);
    if !text.contains("exited ") {
        println!("SKIP {test}: gdb cannot run programs here: {}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    let hit = |line: &str| {
        let mut words = line.strip_prefix("HIT ")?.split(' ');
        let (index, is_entry) = (words.next()?.parse().ok()?, words.next()? == "1");
        Some((index, is_entry, u64::from_str_radix(words.next()?, 16).ok()?))
    };
    Some(text.lines().filter_map(hit).collect())
}

/// Replays the hits and returns entries and unwound frames per function name.
fn replay(chosen: &[ChosenFunction], hits: &Hits) -> BTreeMap<String, (usize, usize)> {
    let mut stack: Vec<(usize, u64)> = Vec::new();
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for &(index, is_entry, stack_pointer) in hits {
        let name = &chosen[index].fact.name;
        // The stack grows down: a frame below the current one has ended, and so has one at the place of a new one.
        let is_gone = |top: u64| top < stack_pointer || (is_entry && top == stack_pointer);
        while let Some(&(gone, _)) = stack.last().filter(|&&(_, top)| is_gone(top)) {
            stack.pop();
            counts.entry(chosen[gone].fact.name.clone()).or_default().1 += 1;
        }
        if is_entry {
            assert!(
                stack.last().is_none_or(|&(_, top)| top > stack_pointer),
                "{name} entered in an open frame"
            );
            stack.push((index, stack_pointer));
            counts.entry(name.clone()).or_default().0 += 1;
        } else {
            assert_eq!(stack.pop(), Some((index, stack_pointer)), "exit of {name} without its entry");
        }
    }
    let left: Vec<&str> = stack.iter().map(|&(index, _)| chosen[index].fact.name.as_str()).collect();
    assert!(left.is_empty(), "never left: {left:?}");
    counts
}

fn check(
    test: &str,
    compiler: &str,
    arguments: &[&str],
    sources: &[(&str, &str)],
) -> Option<BTreeMap<String, (usize, usize)>> {
    let arguments: Vec<&str> = arguments.iter().copied().chain(["-no-pie", "-fno-pie"]).collect();
    let built = build(test, compiler, &arguments, sources)?;
    let module = functions_of(&built.binary).expect("readable");
    let mut chosen = choose(&module, &Selection::default()).chosen;
    assert!(chosen.iter().all(|function| function.unsure.is_none()), "{chosen:?}");
    chosen.retain(|function| function.fact.exits_probed);
    let hits = run_under_gdb(test, &built.binary, &module, &chosen)?;
    Some(replay(&chosen, &hits))
}

#[test]
fn exits_of_c_functions_are_reached_once_per_call() {
    for arguments in [&["-O2"][..], &["-O1", "-fno-omit-frame-pointer"], &["-O0"], &["-Os"], &["-O3"]] {
        let test = "exits_of_c_functions_are_reached_once_per_call";
        let Some(counts) = check(test, "cc", arguments, &[("main.c", C), ("other.c", OTHER_C)]) else {
            return;
        };
        for (name, calls) in [("main", 1), ("outer", 1), ("tail", 1), ("through", 1), ("table", 8)] {
            assert_eq!(counts.get(name), Some(&(calls, 0)), "{name} {arguments:?}");
        }
        // Two functions have this name.
        assert_eq!(counts["same"], (2, 0), "{arguments:?}");
        // The call tree for 5 has 15 nodes; compilers turn some of them into loops.
        let recursive = counts["recursive"];
        assert!((2..=15).contains(&recursive.0) && recursive.1 == 0, "{recursive:?} {arguments:?}");
        assert!(!counts.contains_key("never"));
    }
}

#[test]
fn functions_left_by_an_exception_reach_no_exit() {
    for arguments in [&["-O2"][..], &["-O0"], &["-Os"]] {
        let test = "functions_left_by_an_exception_reach_no_exit";
        let Some(counts) = check(test, "c++", arguments, &[("main.cpp", CPP)]) else { return };
        // 3, 10 and 17 throw.
        assert_eq!(counts["shop::risky(int)"], (20, 3), "{arguments:?}");
        assert_eq!(counts["shop::caught(int)"], (20, 0), "{arguments:?}");
        assert_eq!(counts["shop::call(shop::Base*, int)"], (1, 0), "{arguments:?}");
        assert_eq!(counts["shop::Twice::run(int)"], (1, 0), "{arguments:?}");
    }
}
