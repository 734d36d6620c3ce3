//! Names of locks, in programs whose variables and lines are known.

use longpole_tests::{Longpole, Recorded, skip_unless_live, workload};
use std::collections::BTreeMap;

const ROUNDS: u64 = 11;

/// `file:line` of the line of a workload that ends with this comment.
fn line_of(workload: &str, comment: &str) -> String {
    let path = workload::source(workload);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let at = text.lines().position(|line| line.ends_with(comment)).unwrap_or_else(|| panic!("no {comment}"));
    format!("{workload}:{}", at + 1)
}

/// The program has a global lock, members of a global table, and locks on the heap, which are named by the line that
/// initialized or first used them. Two locks lived one after the other at one address. The report is made when the
/// program has ended and its file is gone.
#[test]
fn locks_are_named_by_their_variable_or_the_line_of_their_first_use() {
    let built = skip_unless_live!("objects.c");
    let folder = tempfile::tempdir().expect("folder");
    let program = folder.path().join("objects");
    std::fs::copy(&built, &program).expect("copied");
    let recorded = Recorded::good(&["--interpose", "always"], &program, &[&ROUNDS.to_string()]);
    drop(folder);

    let mut expected = BTreeMap::from([
        ("mutex queue_lock".to_owned(), ROUNDS),
        ("rwlock config_lock".to_owned(), ROUNDS),
        ("mutex pool.queue.mutex".to_owned(), ROUNDS),
        ("mutex table[2].lock".to_owned(), ROUNDS),
        ("mutex table[3].lock".to_owned(), 1),
        ("mutex table[3].lock #2".to_owned(), 1),
    ]);
    let (heap, plain) = (
        line_of("objects.c", "/* the line of the heap */"),
        line_of("objects.c", "/* the line of the plain ones */"),
    );
    expected.extend((1..=8).map(|number| (format!("mutex at {heap} #{number}"), ROUNDS)));
    expected.extend((1..=3).map(|number| (format!("mutex at {plain} #{number}"), ROUNDS)));
    assert_eq!(recorded.report("1").acquisitions(), expected);

    let exported = recorded.beside("program.json");
    Longpole::with(["export", "--format", "program"]).and(&recorded.file).and("-o").and(&exported).ok();
    assert_eq!(Longpole::report(&exported, "1").acquisitions(), expected);
}
