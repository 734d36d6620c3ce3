//! Threads that do the same and wait for each other's turn.

use super::*;

/// Two threads of a recording that compute chunks of `lengths`, milliseconds, in turn and write them in order: each waits for the write
/// before its own.
fn ordered(lengths: [[u32; 4]; 2]) -> Program {
    let thread = |own: usize| {
        let chunk = |round: usize| {
            let (length, number) = (lengths[own][round % 4], 2 * round + own);
            format!(
                r#"["exec","pileup",{length}000000],["await","turn{number}"],["exec","write",2],["release","turn{}"]"#,
                number + 1
            )
        };
        let first = if own == 1 { r#"["release","turn0"],"# } else { "" };
        let chunks: Vec<String> = (0..60).map(chunk).collect();
        format!(r#"{{"name":"w{own}","ops":[{first}{}]}}"#, chunks.join(","))
    };
    let waits = [("thread join", false, "thread"), ("condition wait", false, "thread")];
    let mut program = recorded(program(&[thread(0), thread(1)].join(",")), &waits);
    program.recorded.waits[0].wait_ns *= 2;
    program.recorded.waits[1].sleepers = vec![Share { name: "worker".into(), count: 1 }];
    program
}

/// Both have as much to do, and no chunk takes long: that they wait for their turns is the limit all the same.
#[test]
fn threads_that_write_in_order_are_limited_by_their_turns() {
    let found = on(&ordered([[15, 15, 5, 5], [5, 5, 15, 15]]), 2);
    let limit = &found.at[0];
    let LimitKind::Turns { threads: 2, waits: Some(waits), .. } = &limit.kind else { panic!("{limit:?}") };
    assert_eq!(waits, "condition wait in worker");
    assert!((0.05..0.2).contains(&limit.gain()), "600 of 690 ms are computed: {limit:?}");
    assert!(found.fixes.iter().any(|fix| fix.edit == Edit::NoTurns), "{:?}", found.fixes);
}

/// Of threads that wait for each other, one has more to do: the row says where the others wait.
#[test]
fn an_imbalance_of_threads_that_wait_for_each_other_names_the_wait() {
    let found = on(&ordered([[15; 4], [5; 4]]), 2);
    let kinds = found.at[0].others.iter().map(|row| &row.kind).chain([&found.at[0].kind]);
    let waits: Vec<_> = kinds
        .filter_map(|kind| match kind {
            LimitKind::Imbalance { waits, .. } => Some(waits.as_deref()),
            _ => None,
        })
        .collect();
    assert_eq!(waits, [Some("condition wait in worker")], "{found:?}");
}
