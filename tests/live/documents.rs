//! The commands in README.md and docs/ that record a running program must work as written.

use std::process::Command;
use std::time::Duration;

use longpole_tests::documents::{Desk, documents};
use longpole_tests::{Background, must_run, skip_unless_live};

const LIMIT: Duration = Duration::from_secs(120);

#[test]
fn documented_commands_that_record_work() {
    let store = skip_unless_live!("store.c");
    let mut count = 0;
    for document in documents() {
        let lines = document.commands("sudo longpole ");
        for line in lines {
            count += 1;
            let desk = Desk::new();
            drop(std::fs::remove_file(desk.path().join("store.lp")));
            std::fs::copy(&store, desk.path().join("store")).expect("copied");
            let target = line
                .contains("PID")
                .then(|| Background::must_start(Command::new(&store).args(["4", "1000000"])));
            let mut line = line.replace("sudo ", "").replace("-d 10s", "-d 1s");
            if let Some(target) = &target {
                line = line.replace("PID", &target.pid().to_string());
            }
            if line.starts_with("longpole top") {
                // `--listen` runs until it is stopped, so it gets a duration.
                let end = if line.contains("--listen") { " --batch -d 2s" } else { " --once" };
                line = format!("{line}{end} --window 1s");
            }
            let ended = must_run(&mut desk.command(&line), LIMIT);
            assert_eq!(
                ended.code,
                Some(0),
                "{}: {line}\n{}{}",
                document.path.display(),
                ended.stdout,
                ended.stderr
            );
        }
    }
    assert!(count >= 5, "{count} commands");
}
