//! Many threads in little memory. Neither the program nor longpole may be killed because of it.

use crate::locks::support::LIMIT;
use longpole_tests::{binary, run, skip, skip_unless_built, skip_unless_live, workload};
use probe_abi::Record;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A control group of either version with a limit on memory. The group is removed when this value is dropped.
struct Group(PathBuf);

impl Group {
    /// Makes the group, or says why this machine cannot make one.
    fn new(bytes: u64) -> Result<Group, String> {
        let mounts = std::fs::read_to_string("/proc/mounts").map_err(|error| error.to_string())?;
        let mounts: Vec<Vec<&str>> = mounts.lines().map(|line| line.split(' ').collect()).collect();
        let name = format!("longpole-test-{}", std::process::id());
        let mut why = "no control groups are mounted that limit memory".to_owned();
        for mount in &mounts {
            let &[_, folder, kind, options, ..] = mount.as_slice() else { continue };
            let limit = match kind {
                "cgroup" if options.split(',').any(|option| option == "memory") => "memory.limit_in_bytes",
                "cgroup2" => {
                    // Errors are ignored: the controller may be enabled already, or this process may not enable it.
                    drop(std::fs::write(Path::new(folder).join("cgroup.subtree_control"), "+memory"));
                    "memory.max"
                }
                _ => continue,
            };
            let group = Path::new(folder).join(&name);
            if let Err(error) = std::fs::create_dir(&group) {
                why = format!("{}: {error}", group.display());
                continue;
            }
            let group = Group(group);
            match std::fs::write(group.0.join(limit), bytes.to_string()) {
                Ok(()) => return Ok(group),
                Err(error) => why = format!("{}/{limit}: {error}", group.0.display()),
            }
        }
        Err(why)
    }

    /// A shell that joins the group and then executes its arguments.
    fn command(&self) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.0.join("cgroup.procs"));
        command
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..100 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

/// Without a limit on rings, six hundred busy threads would have 1.2 GB of rings, and the operations read from them
/// would take another 1.5 GB. In a container with 512 MB, both the program and longpole would be killed.
#[test]
fn six_hundred_busy_threads_are_recorded_within_512_mb() {
    skip_unless_live!();
    let group = match Group::new(512 << 20) {
        Ok(group) => group,
        Err(why) => skip!("{why}"),
    };
    let folder = tempfile::tempdir().expect("folder");
    let program = skip_unless_built!(workload::build("many_lockers.c"));
    let file = folder.path().join("many_lockers.lp");
    let mut longpole = group.command();
    longpole.arg(binary()).args(["record", "--interpose", "always", "-F", "0"]);
    longpole.args(["--overhead", "none", "-o"]).arg(&file).arg("--").arg(&program).args(["600", "300"]);
    let ended = run(&mut longpole, LIMIT).expect("a shell");
    let said = &ended.stderr;
    assert_eq!((ended.code, ended.signal), (Some(0), None), "{said}");
    let made = ended.stdout.strip_suffix(" operations\n").and_then(|made| made.parse::<u64>().ok());
    let made = made.expect("a number");

    let (recording, _) = recording::read(&file).expect("a session");
    let loss = recording.facts.end.as_ref().expect("an end").loss;
    let recorded = recording.events.iter().map(|event| match event {
        Record::Operation(_) => 1,
        Record::Burst(burst) => 2 * u64::from(burst.count),
        _ => 0,
    });
    let recorded: u64 = recorded.sum();
    assert!(recorded > 100_000, "{recorded} of {made}: {said}");
    // The creation and join of each thread are operations, too.
    let lost = loss.operations + loss.late;
    assert_eq!(recorded + lost, made + 2 * 600, "{recorded} recorded, {loss:?}: {said}");
    if lost > made / 10 {
        assert!(said.contains("lock operations found no memory") && said.contains("may use"), "{said}");
    }
}
