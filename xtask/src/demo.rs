//! `./x demo`: records the program of the README with `longpole record` and shows what limits it.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use longpole_tests::workload;

use crate::build;
use crate::command;
use crate::measure::Scratch;
use crate::workspace::Workspace;

/// The lock that limits the program by construction.
const LOCK: &str = "mutex registry.gate";
/// Exit code for a missing permission or kernel feature, the same as longpole's own (automake's "skip").
const CANNOT_RECORD: u8 = 77;

/// Builds longpole and the program, records, prints the report, and removes its files.
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
    println!("Your own command:          sudo {} record -o my.lp -- COMMAND", longpole.display());
    println!("A program that is running: sudo {} record -o my.lp -d 10s -p PID", longpole.display());
    println!("What limits it:            {} report my.lp", longpole.display());
    Ok(ExitCode::SUCCESS)
}

fn live(workspace: &Workspace, longpole: &Path) -> Result<()> {
    let built = workload::build("store.c").map_err(|why| anyhow!("store.c: {why}"))?;
    let scratch = Scratch::new(workspace, "demo")?;
    // The program is copied to a short path, as a user would record it.
    std::fs::copy(&built, scratch.0.join("store")).context("cannot copy the program")?;
    println!("Four threads parse rows and store them in a registry with one lock (tests/workloads/store.c).");
    println!();
    println!("$ longpole record -o store.lp -- ./store");
    let mut record = Command::new(longpole);
    record.current_dir(&scratch.0).args(["record", "--force", "-o", "store.lp", "--", "./store"]);
    show(&mut record)?;
    println!();
    println!("$ longpole report store.lp");
    let recording = scratch.0.join("store.lp");
    show(&mut report(longpole, &recording))?;
    names_lock(&json(longpole, &recording)?).context("the report is not what it should be")
}

/// Shows the result for a program with a known answer, because this machine cannot record.
fn bundled(workspace: &Workspace, longpole: &Path, reason: &str) -> Result<ExitCode> {
    println!("This machine cannot record: {reason}");
    println!("`{} doctor` says what is missing. A recording of another machine:", longpole.display());
    println!();
    let recording = workspace.root.join("tests/data/recordings/store.lp");
    show(&mut report(longpole, &recording))?;
    names_lock(&json(longpole, &recording)?)?;
    Ok(ExitCode::from(CANNOT_RECORD))
}

fn report(longpole: &Path, file: &Path) -> Command {
    let mut command = Command::new(longpole);
    command.arg("report").arg(file);
    command
}

/// Runs a program in xtask's terminal, so that it fits its text to the terminal's width.
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

/// Checks that the lock is the limit on some number of CPUs, and that a change is suggested.
fn names_lock(json: &str) -> Result<()> {
    let report: serde_json::Value = serde_json::from_str(json).context("no JSON")?;
    let rows = |name: &str| report["limit"][name].as_array().map_or(&[][..], Vec::as_slice);
    if !rows("at").iter().any(|row| row["kind"] == "lock" && row["lock"] == LOCK) {
        bail!("{LOCK} does not limit it: {}", report["limit"]["at"]);
    }
    if rows("fixes").is_empty() {
        bail!("there is no change to make");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::names_lock;

    #[test]
    fn the_demo_fails_without_its_lock_or_a_fix() {
        let report = |kind: &str, lock: &str, fixes: &str| {
            let at = format!(r#"[{{"kind":"work"}},{{"kind":"{kind}","lock":"{lock}"}}]"#);
            format!(r#"{{"limit":{{"at":{at},"fixes":[{fixes}]}}}}"#)
        };
        assert!(names_lock(&report("lock", "mutex registry.gate", "1")).is_ok());
        assert!(names_lock(&report("lock", "mutex registry.gate", "")).is_err());
        assert!(names_lock(&report("lock", "mutex other", "1")).is_err());
        assert!(names_lock(&report("work", "mutex registry.gate", "1")).is_err());
        assert!(names_lock("{}").is_err());
        assert!(names_lock("").is_err());
    }
}
