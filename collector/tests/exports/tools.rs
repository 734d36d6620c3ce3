//! Readers made by others: found on the machine, or installed once below `target/`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Python with the packages of `requirements.txt`, in an environment of its own; or why that is not possible.
pub(crate) fn python() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("export-readers");
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    // Each test is a process of its own: the first one installs, the others wait.
    let lock = File::create(folder.join("lock")).map_err(|error| error.to_string())?;
    lock.lock().map_err(|error| error.to_string())?;
    let wanted = include_str!("requirements.txt");
    let (python, mark) = (folder.join("venv/bin/python"), folder.join("installed"));
    if std::fs::read_to_string(&mark).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    let requirements = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exports/requirements.txt");
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder.join("venv")))?;
    run(Command::new(&python)
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1"])
        .args(["--timeout", "20", "--requirement"])
        .arg(requirements))?;
    std::fs::write(mark, wanted).map_err(|error| error.to_string())?;
    Ok(python)
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("{name}: {}", said.lines().last().unwrap_or("failed")))
}

/// Whether a program exists and runs.
pub(crate) fn has(program: &str, argument: &str) -> bool {
    Command::new(program).arg(argument).output().is_ok_and(|output| output.status.success())
}

/// Runs a checking script of this folder with these arguments; returns what it prints.
#[track_caller]
pub(crate) fn checked(python: &Path, script: &str, arguments: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exports").join(script);
    let output = Command::new(python).arg(script).args(arguments).output().expect("python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The schema of speedscope's files, from its package on npm; or why it is not there.
pub(crate) fn speedscope_schema() -> Result<PathBuf, String> {
    speedscope("file-format-schema.json")
}

/// speedscope's own page, from the same package.
pub(crate) fn speedscope_page() -> Result<PathBuf, String> {
    speedscope("index.html")
}

fn speedscope(file: &str) -> Result<PathBuf, String> {
    from_npm("speedscope", "speedscope@1.23.1", &format!("dist/release/{file}"))
}

/// The Firefox Profiler's command line, which loads profiles as its page does; or why it is not there.
pub(crate) fn profiler_cli() -> Result<PathBuf, String> {
    from_npm("profiler-cli", "@firefox-devtools/profiler-cli@0.10.0", "dist/profiler-cli.js")
}

/// A file of an npm package, which is downloaded once.
fn from_npm(name: &str, package: &str, file: &str) -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let lock = File::create(folder.join("lock")).map_err(|error| error.to_string())?;
    lock.lock().map_err(|error| error.to_string())?;
    let path = folder.join("package").join(file);
    if !path.exists() {
        let archive = package.trim_start_matches('@').replace(['/', '@'], "-") + ".tgz";
        run(Command::new("npm").args(["pack", "--silent", package]).current_dir(&folder))?;
        run(Command::new("tar").args(["xzf", &archive]).current_dir(&folder))?;
    }
    Ok(path)
}
