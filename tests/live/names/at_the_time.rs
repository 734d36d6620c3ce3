//! Names and callers must be those of the code at the time of a sample. Addresses are used again for other code, code
//! moves, signals interrupt, and return addresses are in registers. The recordings have samples and no probes.

use longpole_tests::{Longpole, Recorded, binary, skip, skip_unless_built, skip_unless_live, workload};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const OPTIONS: [&str; 4] = ["--interpose", "auto", "--overhead", "none"];

/// The stacks of all samples as names of functions, innermost first.
fn stacks(file: &Path) -> Vec<Vec<String>> {
    let program = Longpole::export(file).0;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let at = |all: &[Value], number: &Value| {
        let number = number.as_u64().and_then(|number| usize::try_from(number).ok())?;
        all.get(number).cloned()
    };
    let all = &program["samples"];
    let (places, stacks) = (list(&all["places"]), list(&all["stacks"]));
    let name = |place: &Value| Some(at(&places, place)?["function"].as_str()?.to_owned());
    let names = |stack: Value| list(&stack).iter().filter_map(name).collect();
    list(&all["threads"])
        .iter()
        .flat_map(list)
        .map(|sample| at(&stacks, &sample[1]).map(names).unwrap_or_default())
        .collect()
}

/// Of the stacks whose first name is `innermost`: how many continue with `callers`, and how many there are.
fn followed(stacks: &[Vec<String>], innermost: &str, callers: &[&str]) -> (usize, usize) {
    let begins = |stack: &&Vec<String>| stack.first().is_some_and(|name| name.contains(innermost));
    let of_it: Vec<_> = stacks.iter().filter(begins).collect();
    let goes_on = |stack: &&&Vec<String>| {
        let mut rest = stack.iter().skip(1);
        callers.iter().all(|caller| rest.next().is_some_and(|name| name.contains(caller)))
    };
    (of_it.iter().filter(goes_on).count(), of_it.len())
}

/// Checks that the first of two functions has this share of the samples in both.
#[track_caller]
fn assert_share(file: &Path, [first, second]: [&str; 2], share: f64) {
    let stacks = stacks(file);
    let count = |name: &str| followed(&stacks, name, &[]).1 as f64;
    let (first, second) = (count(first), count(second));
    let all = stacks.len() as f64;
    assert!(first + second > 0.9 * all && all > 100.0, "{first} and {second} of {all}");
    let found = first / (first + second);
    assert!((found - share).abs() < 0.1, "{found:.3} instead of {share}: {first} and {second}");
}

fn only_x86_64() -> bool {
    cfg!(target_arch = "x86_64")
}

/// One library is loaded at the address of another one. Each must get only the time in which it was loaded, which is
/// half of all.
#[test]
fn a_library_loaded_in_the_place_of_another_keeps_its_own_functions() {
    let program = skip_unless_live!("reload.c");
    let library = |name: &str, factor: u32| -> Result<PathBuf, workload::Problem> {
        let text = format!(
            "static volatile unsigned long sink;\nvoid {name}(void) {{ unsigned long x = sink; \
             for (long i = 0; i < 200000; i++) x = x * {factor} + i; sink = x; }}\n"
        );
        workload::compile_text(&format!("lib{name}.so"), "cc", &["-O1", "-g", "-shared", "-fPIC"], &text)
    };
    let first = skip_unless_built!(library("reload_first", 3));
    let second = skip_unless_built!(library("reload_second", 5));
    let [first, second] = [first, second].map(|library| library.display().to_string());
    let arguments = [first.as_str(), "reload_first", second.as_str(), "reload_second"];
    let recorded = Recorded::good(&OPTIONS, &program, &arguments);
    if recorded.ended.stdout.contains("elsewhere") {
        skip!("the libraries were loaded at different addresses");
    }
    assert_share(&recorded.file, ["reload_first", "reload_second"], 0.5);
}

/// A function that is generated at the place of another one must get only its own time. A function that moves must keep
/// its name for the old place.
#[test]
fn jit_code_in_the_place_of_other_code_has_its_own_name() {
    let program = skip_unless_live!("reused.c");
    if !only_x86_64() {
        skip!("its code is for x86-64");
    }
    let folder = tempfile::tempdir().expect("folder");
    for (how, share) in [("dump", 0.25), ("move", 1.0), ("map", 0.25)] {
        let file = folder.path().join(format!("{how}.lp"));
        let mut call = Longpole::with(["record", "-o"]).and(&file);
        call.command().current_dir(folder.path()).args(OPTIONS).arg("--").arg(&program).arg(how);
        let said = call.ok().stderr;
        let number =
            said.split_once("(pid ").and_then(|(_, rest)| rest.split_once(')')).map(|(number, _)| number);
        let _ = std::fs::remove_file(format!("/tmp/perf-{}.map", number.unwrap_or_default()));
        assert_share(&file, ["reused_first", "reused_second"], share);
    }
}

/// A signal interrupts a function at its first instruction. The caller must be that function, and not the function
/// before it in memory.
#[test]
fn a_function_interrupted_at_its_first_instruction_is_the_caller() {
    let program = skip_unless_live!("interrupted.c");
    if !only_x86_64() {
        skip!("its code is for x86-64");
    }
    let recorded = Recorded::good(&OPTIONS, &program, &[]);
    let stacks = stacks(&recorded.file);
    let through = |name: &str| stacks.iter().filter(|stack| stack.iter().any(|own| own == name)).count();
    let (wrong, right) = (through("just_before"), through("its_victim"));
    assert!(wrong == 0 && right > 50, "{wrong} and {right}");
    let callers: Vec<_> =
        stacks.iter().filter_map(|stack| stack.windows(2).find(|two| two[0] == "its_victim")).collect();
    assert!(callers.iter().all(|two| two[1] == "calls_victim") && callers.len() > 50, "{callers:?}");
}

/// glibc's vfork removes its return address from the stack before the system call. Stacks must not end there.
#[test]
fn callers_of_vfork_are_on_its_stacks() {
    let program = skip_unless_live!("vforks.c");
    // How many samples are taken during the call depends on chance and on the machine.
    let recorded = Recorded::good(&OPTIONS, &program, &["3000"]);
    let callers = ["vforks_spawns", "vforks_middle", "vforks_outer", "main"];
    let (whole, all) = followed(&stacks(&recorded.file), "vfork", &callers);
    assert!(all > 8 && whole * 10 > all * 8, "{whole} of {all}");
}

/// In the first instructions of a short function, its own caller must be found, and not the caller of that one.
#[test]
fn short_functions_with_frame_pointers_keep_their_caller() {
    let program = skip_unless_live!("shorts.c");
    if !only_x86_64() {
        skip!("its code is for x86-64");
    }
    let recorded = Recorded::good(&OPTIONS, &program, &[]);
    let stacks = stacks(&recorded.file);
    for name in ["shorts_leaf", "shorts_late"] {
        let (right, all) = followed(&stacks, name, &["shorts_caller", "main"]);
        assert!(all > 50 && right * 100 >= all * 98, "{name}: {right} of {all}");
    }
}

/// Stacks of fibers begin in `__start_context`. Such stacks must not count as cut, and must not contain the function
/// before it in memory.
#[test]
fn stacks_of_fibers_are_whole() {
    let program = skip_unless_live!("fibers.c");
    let recorded = Recorded::good(&OPTIONS, &program, &[]);
    let stacks = stacks(&recorded.file);
    let of = |fiber| followed(&stacks, "burn", &["fibers_leaf", fiber]).0 as f64;
    let (first, second, all) = (of("fibers_first"), of("fibers_second"), stacks.len() as f64);
    assert!(all > 100.0 && first + second > 0.9 * all, "{first} and {second} of {all}");
    assert!((first / (first + second) - 0.75).abs() < 0.1, "{first} and {second}");
    let beginnings = ["fibers_first", "fibers_second", "_start"];
    let whole = stacks.iter().filter(|stack| stack.last().is_some_and(|name| beginnings.contains(&&**name)));
    let whole = whole.count() as f64;
    assert!(whole > 0.9 * all, "{whole} of {all}");
    let said = &recorded.ended.stderr;
    let cut = said.split_once(" cut off").and_then(|(before, _)| before.rsplit(' ').next());
    let cut = cut.and_then(|number| number.replace(',', "").parse::<f64>().ok()).unwrap_or(0.0);
    assert!(cut < 0.1 * all, "{said}");
}

/// Code that was moved to anonymous pages must keep its names, and not be "[code without a file]".
#[test]
fn text_moved_to_memory_without_a_file_keeps_its_names() {
    let program = skip_unless_live!("moves_text.c");
    let recorded = Recorded::good(&OPTIONS, &program, &["100000"]);
    if !recorded.ended.stdout.starts_with('1') {
        skip!("the text could not be moved here");
    }
    let stacks = stacks(&recorded.file);
    let (right, all) = (followed(&stacks, "Mixed", &["main"]).0, stacks.len());
    assert!(all > 100 && right * 10 > all * 9, "{right} of {all}");
}

/// A program in a memfd must have its name. longpole must not look it up by its descriptor number, which is another
/// file in longpole.
#[test]
fn a_program_in_a_memfd_has_its_name() {
    let program = skip_unless_live!("shorts.c");
    let text = "#define _GNU_SOURCE\n#include <fcntl.h>\n#include <sys/mman.h>\n#include <sys/sendfile.h>\n\
        #include <sys/stat.h>\n#include <unistd.h>\nint main(int c, char **v, char **e) { int f = open(v[1], O_RDONLY), \
        m = memfd_create(\"in memory\", MFD_CLOEXEC); struct stat s; fstat(f, &s); sendfile(m, f, 0, s.st_size); \
        fexecve(m, v + 1, e); return 1; }\n";
    let memory = skip_unless_built!(workload::compile_text("in_memory", "cc", &["-O1"], text));
    if !only_x86_64() {
        skip!("its code is for x86-64");
    }
    let path = program.display().to_string();
    for options in [&OPTIONS[..], &[]] {
        let recorded = Recorded::good(options, &memory, &[path.as_str()]);
        let stacks = stacks(&recorded.file);
        let count = followed(&stacks, "shorts_", &[]).1;
        assert!(count * 10 > stacks.len() * 6 && count > 100, "{count} of {}", stacks.len());
        let info = Longpole::with(["info"]).and(&recorded.file).ok().stdout;
        let is_number = |line: &str| {
            let rest = line.strip_prefix("symbols").unwrap_or_default().trim();
            rest.split(':').next().is_some_and(|name| name.parse::<u32>().is_ok())
        };
        assert!(!info.lines().any(is_number), "{info}");
    }
}

/// The message must name 32 bits as the reason, and not missing debug symbols.
#[test]
fn a_32_bit_program_is_reported_as_one_that_cannot_be_read() {
    let program = skip_unless_live!(workload::compile_text(
        "narrow",
        "cc",
        &["-m32", "-O1", "-static"],
        "int main(void) { volatile unsigned x = 1; for (unsigned i = 0; i < 600000000; i++) x = x * 3 + i; return 0; }\n"
    ));
    let recorded = Recorded::good(&OPTIONS, &program, &[]);
    let said = &recorded.ended.stderr;
    assert_eq!(said.matches("is a 32-bit program, which longpole cannot read").count(), 1, "{said}");
}

/// The message must say how many files may be open and how many are needed. A map's name or the verifier's log must not
/// be shown.
#[test]
fn too_few_descriptors_are_an_error_with_the_number_needed() {
    skip_unless_live!();
    let folder = tempfile::tempdir().expect("a folder");
    for limit in ["20", "40", "60"] {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("ulimit -n {limit}; exec \"$0\" record -o \"$1\" --force -- true"));
        let ended = shell.arg(binary()).arg(folder.path().join("few.lp")).output().expect("a shell");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        let lines: Vec<&str> = said.lines().collect();
        assert!(!ended.status.success() && lines.len() == 2, "{said}");
        assert!(lines[0].contains(&format!("may open {limit} files, but needs about ")), "{said}");
        assert!(lines[1].starts_with("hint: raise the limit"), "{said}");
    }
}
