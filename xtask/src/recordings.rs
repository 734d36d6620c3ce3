//! `./x recordings`: makes the small recordings of real programs in tests/data/recordings again. The screens in the
//! documents and the tests of all screens use these recordings (`LONGPOLE_BLESS=1 ./x test -p collector`).

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use longpole_tests::{Background, workload};

use crate::build;
use crate::workspace::Workspace;

/// A recording: its name, the workload, the workload's arguments, and how long longpole is attached (`None`: launched).
type Entry = (&'static str, &'static str, &'static [&'static str], Option<&'static str>);

const RECORDINGS: [Entry; 8] = [
    // The lock of a registry is the limit. If the lock is split in eight, it is not.
    ("store", "store.c", &["4", "4000"], None),
    ("split", "store.c", &["4", "4000", "8"], None),
    ("attached", "store.c", &["4", "20000"], Some("1s")),
    // One of three stages is the limit.
    ("pipeline", "pipeline.c", &["401"], None),
    // More CPUs help until the serial part is the limit.
    ("quicksort", "quicksort.c", &["3", "2000000", "50000"], None),
    // One branch is long and several are short. Each round waits for all branches.
    ("forkjoin", "forkjoin.c", &["50"], None),
    // Four threads compute between barriers. One thread has more work than the others.
    ("phases", "phases.c", &["4", "200"], None),
    // Threads that mostly wait for time.
    ("timers", "timers.c", &["30"], None),
];

/// Records all programs of the list.
///
/// # Errors
/// This machine cannot record, a workload does not compile, or longpole fails.
pub fn run() -> Result<ExitCode> {
    let workspace = Workspace::find();
    if let Some(reason) = longpole_tests::cannot_record() {
        bail!("cannot record here: {reason}");
    }
    let longpole = build::release(&workspace)?;
    let folder = workspace.root.join("tests/data/recordings");
    std::fs::create_dir_all(&folder)?;
    for (name, source, arguments, attached) in RECORDINGS {
        let built = workload::build(source).map_err(|why| anyhow!("{source}: {why}"))?;
        // The program is recorded by a short path, as a user would do it.
        let desk = tempfile::tempdir()?;
        let program = source.trim_end_matches(".c");
        std::fs::copy(&built, desk.path().join(program))?;
        let file = folder.join(format!("{name}.lp"));
        let mut record = Command::new(&longpole);
        record.current_dir(desk.path()).args(["record", "--force", "-o"]).arg(&file);
        let status = match attached {
            Some(duration) => {
                let target = Background::start(Command::new(desk.path().join(program)).args(arguments))?;
                record.args(["-d", duration, "-p", &target.pid().to_string()]).status()
            }
            None => {
                record.args(["--", &format!("./{program}")]).args(arguments).stdin(Stdio::null()).status()
            }
        };
        if !status.context("cannot start longpole")?.success() {
            bail!("{name} was not recorded");
        }
        shared(&file)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes a recording readable for everyone. By default, only its owner can read it.
fn shared(file: &Path) -> Result<()> {
    std::fs::set_permissions(file, Permissions::from_mode(0o644)).with_context(|| file.display().to_string())
}
