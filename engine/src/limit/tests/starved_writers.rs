//! Read-write locks whose readers keep a writer from them.

use super::*;

/// Two readers hold the lock in turns and overlap; a writer wants it 60 times. `begin`: how long the second reader computes
/// before its first turn, microseconds.
fn starved(begin: u32) -> Program {
    let read = r#"["rdlock","db"],["exec","render",2200000],["rwunlock","db"],["exec","encode",1800000]"#;
    let write = r#"["exec","prepare",400000],["wrlock","db"],["exec","style",1000],["rwunlock","db"]"#;
    let second = format!(
        r#"{{"name":"s","ops":[["exec","encode",{}],{}]}}"#,
        begin * 1_000,
        vec![read; 200].join(",")
    );
    program(&[alike("r", 1, 200, read), second, alike("w", 1, 60, write)].join(","))
}

/// `libosmscout#1553`: the limit was "the work itself: no lock or wait takes 5 % of the time".
#[test]
fn a_writer_that_readers_keep_waiting_is_named_with_its_lock() {
    let found = on(&starved(2_000), 2);
    let LimitKind::StarvedWriter { lock, thread, waiting, holder: Some(holder) } = &found.at[0].kind else {
        panic!("{found:?}")
    };
    assert_eq!((lock.as_str(), thread.as_str(), holder.function.as_str()), ("db", "w0", "render"));
    assert!(*waiting > 0.8 && (0.8..1.0).contains(&found.at[0].gain()), "{found:?}");
    let fix = found.fixes.iter().find(|fix| matches!(fix.edit, Edit::WritersFirst { .. })).expect("a change");
    assert!(fix.edit.is_at_best() && fix.lock.as_deref() == Some("db"), "{fix:?}");
}

/// Both readers hold the lock at the same time, so it is free as often as not.
#[test]
fn a_writer_that_finds_the_lock_free_does_not_starve() {
    let found = on(&starved(0), 2);
    let kinds = found.at[0].others.iter().map(|row| &row.kind).chain([&found.at[0].kind]);
    assert!(!kinds.into_iter().any(|kind| matches!(kind, LimitKind::StarvedWriter { .. })), "{found:?}");
}
