//! longpole must write no byte of a program's code unless the user asks for breakpoints: not during a recording, and
//! not after any of the ways in which a recording ends.

use longpole_tests::text_unchanged::{assert_code_unchanged, changed_code};
use longpole_tests::{Background, Longpole, Recorded, skip_unless_live, until};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
/// How long a recording runs before the test ends it.
const A_MOMENT: Duration = Duration::from_millis(700);

/// The process of a command that longpole has started.
fn child_of(pid: u32, name: &str) -> Option<u32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_ascii_whitespace().filter_map(|child| child.parse().ok()).find(|child: &u32| {
        std::fs::read_to_string(format!("/proc/{child}/comm")).is_ok_and(|comm| comm.trim() == name)
    })
}

/// Breakpoints end programs that copy or check their code. So default recordings must write none, neither into
/// functions nor into the C library.
#[test]
fn default_record_and_top_change_no_byte_of_a_running_program() {
    let program = skip_unless_live!("store.c");
    let target = Background::must_start(Command::new(&program).args(["4", "4000000"]));
    let pid = target.pid().to_string();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("untouched.lp");
    let record = || Longpole::with(["record", "--force", "--children", "-p", &pid, "-o"]).and(&file);
    let top = || Longpole::with(["top", "--batch", "-p", &pid]);
    // `None`: the recording ends because of its option -d.
    for (way, longpole, signal) in [
        ("record that is told to end", record(), Some("INT")),
        ("record that is killed", record(), Some("KILL")),
        ("record with a duration", record().and("-d").and("1s"), None),
        ("record that may cost anything", record().and("--overhead").and("none").and("-d").and("1s"), None),
        ("top that is told to end", top(), Some("TERM")),
        ("top that is killed", top(), Some("KILL")),
        ("top with a duration", top().and("-d").and("3s"), None),
    ] {
        let longpole = longpole.start();
        std::thread::sleep(A_MOMENT);
        assert_code_unchanged(target.pid(), &format!("during {way}"));
        signal.into_iter().for_each(|signal| longpole.signal(signal).unwrap());
        longpole.wait(LIMIT).unwrap();
        assert_code_unchanged(target.pid(), &format!("after {way}"));
    }
}

/// The same for a launched command and its children.
#[test]
fn default_record_changes_no_byte_of_a_command() {
    let program = skip_unless_live!("store.c");
    let name = program.file_name().unwrap().to_string_lossy().chars().take(15).collect::<String>();
    let (mut longpole, _folder, _file) =
        Recorded::launch_in_background(&["-d", "1s", "--children"], &program, &["4", "20000"]);
    let mut found = None;
    until("the command runs", || {
        found = child_of(longpole.pid(), &name);
        found.is_some()
    });
    let pid = found.unwrap();
    std::thread::sleep(A_MOMENT);
    assert_code_unchanged(pid, "during record of a command");
    // After this message, longpole has detached. The command must continue and have the same output.
    longpole.wait_for_stderr("recorded ", LIMIT).unwrap();
    assert_code_unchanged(pid, "after record of a command");
}

/// Checks the method of the tests above: a breakpoint is noticed, and is gone afterwards.
#[test]
fn a_requested_breakpoint_is_seen_and_removed_at_the_end() {
    let program = skip_unless_live!("store.c");
    let target = Background::must_start(Command::new(&program).args(["4", "4000000"]));
    let (longpole, _folder, _file) =
        Recorded::attach_in_background(&["-d", "2s", "--functions", "store_row"], target.pid());
    until("its code has breakpoints", || {
        let changed = changed_code(target.pid()).unwrap();
        assert!(changed.iter().all(|byte| !byte.file.contains("libc")), "{changed:?}");
        changed.iter().any(|byte| byte.in_memory == 0xcc)
    });
    longpole.wait(LIMIT).unwrap();
    assert_code_unchanged(target.pid(), "after record --functions");
}
