//! Compiles the workloads of tests/workloads into target/workloads. Each is compiled once for each content of its
//! source.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::process;

/// Why a workload cannot be used.
#[derive(Debug)]
pub enum Problem {
    /// This machine cannot compile it, so a test that needs it is skipped.
    NoCompiler(String),
    /// It does not compile or cannot be written, so a test that needs it fails.
    Broken(String),
}

impl std::fmt::Display for Problem {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Problem::NoCompiler(why) | Problem::Broken(why)) = self;
        out.write_str(why)
    }
}

impl std::error::Error for Problem {}

const C_FLAGS: [&str; 5] = ["-O2", "-g", "-pthread", "-fno-optimize-sibling-calls", "-w"];
const RUST_FLAGS: [&str; 4] = ["--edition=2024", "-O", "-g", "-Cforce-frame-pointers=no"];

/// The source file of a workload.
pub fn source(name: &str) -> PathBuf {
    sources().join(name)
}

/// Builds a workload with debug information. The workload is a file of tests/workloads (`quicksort.c`,
/// `exceptions.cpp`, `unwind.rs`), or a folder there with a crate of its own (`work_stealing`).
///
/// # Errors
/// There is no compiler, or the source does not compile. For a crate, also dependencies that cannot be downloaded.
pub fn build(source: &str) -> Result<PathBuf, Problem> {
    let folder = sources();
    let path = folder.join(source);
    if path.join("Cargo.toml").exists() {
        return build_crate(&path);
    }
    let header = path.with_file_name("work.h");
    let header = if header.exists() { header } else { folder.join("common.h") };
    let text = read(&path)? + &read(&header)?;
    compile(&path, &text)
}

/// Compiles `text` into a program called `name`, or with the right flags into a library, once for each content.
/// `compiler` (`cc`, `musl-gcc`, `c++`, `rustc`) decides the language. `flags` are placed after the source, where
/// libraries have to be.
///
/// # Errors
/// Those of [`build`]. If `flags` name a library that is missing, this counts as a missing compiler.
pub fn compile_text(name: &str, compiler: &str, flags: &[&str], text: &str) -> Result<PathBuf, Problem> {
    let ending = match compiler {
        "rustc" => "rs",
        "c++" => "cpp",
        _ => "c",
    };
    let folder = cache()?.join(format!("{:016x}", fnv(format!("{compiler} {flags:?} {text}"))));
    let program = folder.join(name);
    if program.exists() {
        return Ok(program);
    }
    std::fs::create_dir_all(&folder).map_err(broken("make", &folder))?;
    let source = folder.join(name).with_extension(ending);
    write_whole(&source, text)?;
    put(&program, |temporary| {
        let mut command = Command::new(compiler);
        command.current_dir(env!("CARGO_MANIFEST_DIR")).arg("-o").arg(temporary).arg(&source).args(flags);
        command
    })
    .map_err(|problem| match problem {
        Problem::Broken(why) if why.contains("cannot find") || why.contains("not supported") => {
            Problem::NoCompiler(why.replace('\n', "; "))
        }
        other => other,
    })?;
    Ok(program)
}

/// Builds the workload in this C file of tests/workloads with additional flags, such as `-static`.
///
/// # Errors
/// Those of [`compile_text`].
pub fn build_with(source: &str, flags: &[&str]) -> Result<PathBuf, Problem> {
    let folder = sources();
    let text = read(&folder.join(source))?;
    let flags: Vec<&str> = C_FLAGS.iter().chain(flags).copied().chain(own_flags(&text)).collect();
    // The header's text is inserted into the source: a changed header then changes the content, and the program is
    // compiled again.
    let whole = text.replace("#include \"common.h\"", &read(&folder.join("common.h"))?);
    compile_text(source.trim_end_matches(".c"), "cc", &flags, &whole)
}

fn read(path: &Path) -> Result<String, Problem> {
    std::fs::read_to_string(path).map_err(broken("read", path))
}

/// Builds a crate that has one program with the name of its folder. The crate's dependencies come from crates.io.
fn build_crate(folder: &Path) -> Result<PathBuf, Problem> {
    let name = folder.file_name().and_then(OsStr::to_str).unwrap_or("workload");
    let text = ["Cargo.toml", "Cargo.lock", "src/main.rs"]
        .iter()
        .map(|file| read(&folder.join(file)))
        .collect::<Result<String, _>>()?;
    let place = cache()?.join(format!("{:016x}", fnv(&text)));
    let program = place.join(name);
    if program.exists() {
        return Ok(program);
    }
    let target = place.join("target");
    let mut cargo = Command::new("cargo");
    cargo
        .current_dir(folder)
        .args(["build", "--release", "--locked", "--quiet", "--target-dir"])
        .arg(&target);
    // Cargo also runs the tests, and its settings must not influence this build.
    for variable in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET", "CARGO_TARGET_DIR"] {
        cargo.env_remove(variable);
    }
    let ended = process::run(&mut cargo, Duration::from_secs(600))
        .map_err(|error| Problem::NoCompiler(format!("cannot run cargo: {error}")))?;
    if ended.code != Some(0) {
        let why = format!("cargo fails on {}:\n{}", folder.display(), ended.stderr);
        let not_there = ["failed to download", "failed to get", "failed to query", "Could not resolve"];
        return Err(if not_there.iter().any(|text| ended.stderr.contains(text)) {
            Problem::NoCompiler(why)
        } else {
            Problem::Broken(why)
        });
    }
    std::fs::rename(target.join("release").join(name), &program).map_err(broken("write", &program))?;
    // Only the program is needed, so the build folder is removed.
    let _ = std::fs::remove_dir_all(&target);
    Ok(program)
}

/// Builds a workload as `build` does, and removes all symbols.
///
/// # Errors
/// Those of [`build`], or a missing `strip`.
pub fn build_stripped(source: &str) -> Result<PathBuf, Problem> {
    let full = build(source)?;
    let stripped = full.with_extension("stripped");
    if !stripped.exists() {
        put(&stripped, |temporary| {
            let mut strip = Command::new("strip");
            strip.arg("--strip-all").arg("-o").arg(temporary).arg(&full);
            strip
        })?;
    }
    Ok(stripped)
}

/// Builds a program of `functions` small functions, some of which it calls every 50 ms. The program prints `ready`, and
/// then the addresses of all functions in one line of hexadecimal numbers. The program runs until its input ends.
///
/// # Errors
/// Those of [`build`].
pub fn build_many_functions(functions: usize) -> Result<PathBuf, Problem> {
    let text = many_functions(functions);
    let source = cache()?.join(format!("many_functions_{functions}.c"));
    if !std::fs::read_to_string(&source).is_ok_and(|old| old == text) {
        write_whole(&source, &text)?;
    }
    compile(&source, &text)
}

fn many_functions(functions: usize) -> String {
    use std::fmt::Write;
    let mut text = String::from("#include <stdio.h>\n#include <poll.h>\nstatic volatile unsigned sink;\n");
    for number in 0..functions {
        // Each function has a different body, because the compiler would merge equal ones.
        let _ = writeln!(
            text,
            "__attribute__((noinline)) void function_{number}(void) {{ sink += {number}u; sink ^= {number}u * 3u; }}"
        );
    }
    text.push_str("static void (*const all[])(void) = {\n");
    for number in 0..functions {
        let _ = writeln!(text, "function_{number},");
    }
    text.push_str(
        "};\nint main(void)\n{\n    puts(\"ready\");\n\
         \x20   for (unsigned i = 0; i < sizeof all / sizeof *all; i++)\n        printf(\"%lx \", (unsigned long)all[i]);\n\
         \x20   puts(\"\");\n    fflush(stdout);\n\
         \x20   struct pollfd input = {0, POLLIN, 0};\n\
         \x20   while (poll(&input, 1, 50) == 0)\n\
         \x20       for (unsigned i = 0; i < sizeof all / sizeof *all; i += 97)\n            all[i]();\n\
         \x20   return 0;\n}\n",
    );
    text
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads")
}

/// The folder target/workloads, which is made if it is missing.
fn cache() -> Result<PathBuf, Problem> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |own| root.join(own));
    let folder = target.join("workloads");
    std::fs::create_dir_all(&folder).map_err(broken("make", &folder))?;
    Ok(folder)
}

fn compile(source: &Path, text: &str) -> Result<PathBuf, Problem> {
    let name = source.file_stem().and_then(OsStr::to_str).unwrap_or("workload");
    let (compiler, flags): (&str, &[&str]) = match source.extension().and_then(OsStr::to_str) {
        Some("rs") => ("rustc", &RUST_FLAGS),
        Some("cpp") => ("c++", &C_FLAGS),
        Some("go") => ("go", &["build"]),
        _ => ("cc", &C_FLAGS),
    };
    let flags: Vec<&str> = flags.iter().copied().chain(own_flags(text)).collect();
    let key = fnv(format!("{compiler} {flags:?} {text}"));
    let program = cache()?.join(format!("{key:016x}")).join(name);
    if !program.exists() {
        put(&program, |temporary| {
            let mut command = Command::new(compiler);
            // rust-toolchain.toml chooses the rustc according to the folder in which rustc is called.
            command.current_dir(env!("CARGO_MANIFEST_DIR"));
            // The installed Go toolchain compiles a single file.
            command.env("GOFLAGS", "").env("GOTOOLCHAIN", "local").env("GO111MODULE", "off");
            command.args(&flags).arg("-o").arg(temporary).arg(source);
            command
        })?;
    }
    Ok(program)
}

/// Compiler flags that a source's first comment names: `flags: -fopenmp`.
fn own_flags(text: &str) -> Vec<&str> {
    let comment = text.split("*/").next().unwrap_or_default();
    comment.split_once("flags:").map_or_else(Vec::new, |(_, flags)| flags.split_whitespace().collect())
}

/// Makes a file under a temporary name and then renames it, so that parallel tests see either all of it or nothing.
fn put(program: &Path, command: impl FnOnce(&Path) -> Command) -> Result<(), Problem> {
    if let Some(folder) = program.parent() {
        std::fs::create_dir_all(folder).map_err(broken("make", folder))?;
    }
    let temporary = unique(program);
    let mut command = command(&temporary);
    let name = command.get_program().to_string_lossy().into_owned();
    let ended = process::run(&mut command, Duration::from_secs(300))
        .map_err(|error| Problem::NoCompiler(format!("cannot run {name}: {error}")))?;
    if ended.code != Some(0) {
        return Err(Problem::Broken(format!("{name} fails on {}:\n{}", program.display(), ended.stderr)));
    }
    std::fs::rename(&temporary, program).map_err(broken("write", program))
}

fn write_whole(path: &Path, text: &str) -> Result<(), Problem> {
    let temporary = unique(path);
    std::fs::write(&temporary, text)
        .and_then(|()| std::fs::rename(&temporary, path))
        .map_err(broken("write", path))
}

fn unique(path: &Path) -> PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}-{number}", std::process::id()));
    PathBuf::from(name)
}

/// Computes the FNV-1a hash. The hash is the same in every run and with every toolchain; the standard library's hasher
/// promises neither.
pub fn fnv(bytes: impl AsRef<[u8]>) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.as_ref().iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Makes an error that says what could not be done with a file or folder.
fn broken(what: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Problem {
    move |error| Problem::Broken(format!("cannot {what} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_program_has_the_given_number_of_functions() {
        let text = many_functions(13);
        assert_eq!(text.matches("void function_").count(), 13);
        assert!(text.contains("\nfunction_12,\n") && !text.contains("function_13"));
    }

    #[test]
    fn a_workload_s_compiler_flags_are_read_from_its_first_comment() {
        assert_eq!(own_flags("/* A loop.\n   flags: -fopenmp -O3 */\nint flags: 3;"), ["-fopenmp", "-O3"]);
        assert!(own_flags("/* None. */ /* flags: -x */").is_empty());
    }

    #[test]
    fn a_text_is_compiled_once_and_a_missing_library_is_no_compiler() {
        let good = "int main(void) { return 0; }";
        let build = |flags: &[&str], text| compile_text("text", "cc", flags, text);
        let Ok(program) = build(&[], good) else { return };
        assert_eq!(build(&[], good).ok(), Some(program));
        assert!(matches!(build(&[], "int main(void) { return"), Err(Problem::Broken(_))));
        assert!(matches!(build(&["-lnot-there"], good), Err(Problem::NoCompiler(_))));
    }

    #[test]
    fn the_hash_of_a_changed_source_differs() {
        assert_ne!(fnv("cc a"), fnv("cc b"));
        assert_eq!(fnv(""), 0xcbf2_9ce4_8422_2325);
    }
}
