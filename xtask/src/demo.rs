//! `./x demo`: attaches to a bundled multithreaded program while it runs and shows what limits it.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use longpole_tests::{Background, workload};

use crate::bench::Scratch;
use crate::build;
use crate::command;
use crate::workspace::Workspace;

const CPUS: &str = "1,2,4,8,16,inf";
/// Both must be in the answer: which of them is worth improving depends on the number of CPUs.
const FUNCTIONS: [&str; 2] = ["ParallelQuickSort", "RecursiveQuickSort"];
/// "Missing permission or kernel feature", as longpole itself ends (automake's "skip").
const CANNOT_RECORD: u8 = 77;

/// Builds, records, reports and cleans up.
///
/// # Errors
/// Something does not compile, or longpole fails on the bundled program.
pub fn run() -> Result<ExitCode> {
    let workspace = Workspace::find();
    let longpole = build::release(&workspace)?;
    if let Some(reason) = longpole_tests::cannot_record() {
        return bundled(&workspace, &longpole, reason);
    }
    live(&workspace, &longpole)?;
    println!();
    println!("Your own running program:  sudo {} record -p PID -d 10s -o my.lp", longpole.display());
    println!("What limits it, and where: {} report my.lp --cpus {CPUS}", longpole.display());
    Ok(ExitCode::SUCCESS)
}

fn live(workspace: &Workspace, longpole: &Path) -> Result<()> {
    let quicksort = workload::build("quicksort.c")?;
    // Stopped and reaped when this goes out of scope, also after an error.
    let target =
        Background::start(Command::new(&quicksort).arg("1000000")).context("cannot start quicksort")?;
    let scratch = Scratch::new(workspace, "demo")?;
    let recording = scratch.0.join("quicksort.lp");
    println!("The parallel quick sort of Broberg, Lundberg and Grahn (2001) runs.");
    println!("Attaching to it, process {}, for 5 seconds …", target.pid());
    let mut record = Command::new(longpole);
    record.args(["record", "-d", "5s", "--force", "-p", &target.pid().to_string(), "-o"]).arg(&recording);
    show(&mut record)?;
    println!();
    show(&mut report(longpole, &recording))?;
    let json = json(longpole, &recording)?;
    complete(&json).context("the report of the quick sort is not what it should be")
}

/// Shows a program with a known answer, since nothing can be recorded here.
fn bundled(workspace: &Workspace, longpole: &Path, reason: &str) -> Result<ExitCode> {
    println!("This machine cannot record: {reason}");
    println!(
        "`{} doctor` says what is missing. The same question asked of a bundled program:",
        longpole.display()
    );
    println!();
    let program = workspace.root.join("tests/data/quicksort/program.json");
    show(&mut report(longpole, &program))?;
    complete(&json(longpole, &program)?)?;
    Ok(ExitCode::from(CANNOT_RECORD))
}

fn report(longpole: &Path, file: &Path) -> Command {
    let mut command = Command::new(longpole);
    command.arg("report").arg(file).args(["--wide", "--cpus", CPUS]);
    command
}

/// Runs it on the terminal of this program, which it fits its text to.
fn show(command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).status().context("cannot start longpole")?;
    if !status.success() {
        bail!("longpole {} ended with {status}", command.get_args().next().unwrap_or_default().display());
    }
    Ok(())
}

fn json(longpole: &Path, file: &Path) -> Result<String> {
    Ok(command::good(report(longpole, file).arg("--json"), Duration::from_secs(300))?.stdout)
}

/// Every CPU count has an answer, and both sort functions have their numbers.
fn complete(json: &str) -> Result<()> {
    let report: serde_json::Value = serde_json::from_str(json).context("no JSON")?;
    let results = report["results"].as_array().ok_or_else(|| anyhow!("no results"))?;
    if results.len() != CPUS.split(',').count() {
        bail!("{} answers instead of one for each of {CPUS}", results.len());
    }
    for name in FUNCTIONS {
        let has_time = |result: &serde_json::Value| {
            let rows = result["functions"].as_array().map_or(&[][..], Vec::as_slice);
            rows.iter()
                .any(|row| row["function"] == name && row["tetid_ns"].as_f64().is_some_and(|ns| ns != 0.0))
        };
        if !results.iter().any(has_time) {
            bail!("{name} has no time at any CPU count");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::complete;

    fn report(function: &str, tetid: f64) -> String {
        let row = format!(r#"{{"function":"{function}","tetid_ns":{tetid}}}"#);
        let other = r#"{"function":"ParallelQuickSort","tetid_ns":5}"#;
        let result = format!(r#"{{"functions":[{row},{other}]}}"#);
        format!(r#"{{"results":[{0},{0},{0},{0},{0},{0}]}}"#, result)
    }

    #[test]
    fn the_demo_fails_without_its_numbers() {
        assert!(complete(&report("RecursiveQuickSort", 7.0)).is_ok());
        assert!(complete(&report("RecursiveQuickSort", 0.0)).is_err());
        assert!(complete(&report("SortRange", 7.0)).is_err());
        assert!(complete(r#"{"results":[]}"#).is_err());
        assert!(complete("").is_err());
    }
}
