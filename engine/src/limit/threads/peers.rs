//! Groups whose threads wait for each other: for their turn, for a token, or for a lock that was not recorded. (This method is
//! longpole's own.)
//!
//! A thread that waits for work is woken by the thread that made the work, which does something else. If wake-ups come from
//! threads that do the same, those had what the thread waits for. So one more such thread would wait, too, and a thread that
//! computes alone while the others wait for it has no serial work.

use super::thread_group::Group;
use crate::program::{Operation, Program};
use rustc_hash::FxHashMap;

/// Fewer waits of each thread, on average, may be for its start and for threads that it has started.
const FEWEST: u64 = 10;

/// For each group: whether more than half of its threads' waits for wake-ups were ended by other threads of the group.
pub(in crate::limit) fn wait_for_each_other(program: &Program, groups: &[Group]) -> Vec<bool> {
    let mut of: FxHashMap<usize, usize> = FxHashMap::default();
    for (number, group) in groups.iter().enumerate().filter(|(_, group)| group.threads.len() > 1) {
        of.extend(group.threads.iter().map(|thread| (*thread, number)));
    }
    let mut waker: FxHashMap<u32, usize> = FxHashMap::default();
    for (thread, operations) in program.threads.iter().map(|thread| &thread.operations).enumerate() {
        for operation in operations {
            if let Operation::Release(edge) = operation {
                waker.insert(edge.0, thread);
            }
        }
    }
    let (mut own, mut all) = (vec![0u64; groups.len()], vec![0u64; groups.len()]);
    for (thread, group) in &of {
        let operations = program.threads.get(*thread).map_or(&[][..], |thread| &thread.operations);
        for operation in operations {
            let Operation::Await(edge) = operation else { continue };
            let Some(by) = waker.get(&edge.0).filter(|by| *by != thread) else { continue };
            all[*group] += 1;
            own[*group] += u64::from(of.get(by) == Some(group));
        }
    }
    let sums = own.into_iter().zip(all).zip(groups);
    sums.map(|((own, all), group)| own >= FEWEST * group.threads.len() as u64 && 2 * own > all).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::json;

    #[test]
    fn threads_that_wake_each_other_are_told_from_threads_that_get_work() {
        let thread = |name: &str, sent: usize, awaited: usize| {
            let rounds = (0..30).map(|round| {
                let (sent, awaited) = (2 * round + sent, 2 * round + awaited);
                format!(r#"["exec","f",9],["release","e{sent}"],["await","e{awaited}"]"#)
            });
            format!(r#"{{"name":"{name}","ops":[{}]}}"#, rounds.collect::<Vec<_>>().join(","))
        };
        let program = format!(
            r#"{{"format":"longpole-program","version":1,"threads":[{},{},{{"name":"c","ops":[["exec","g",1]]}}]}}"#,
            thread("a", 0, 1),
            thread("b", 1, 0),
        );
        let program = json::read(&program).expect("a program");
        let group = |threads: &[usize]| Group { threads: threads.to_vec(), meets: true };
        assert_eq!(wait_for_each_other(&program, &[group(&[0, 1]), group(&[2])]), [true, false]);
        assert_eq!(wait_for_each_other(&program, &[group(&[0, 2]), group(&[1])]), [false, false]);
    }
}
