//! Which system calls wait for a futex, and what the `op` argument of one means (Linux
//! `include/uapi/linux/futex.h`, `arch/x86/entry/syscalls/syscall_64.tbl`).

use super::FutexFact;
use probe_abi::{Call, futex_operation};

/// `futex(2)` on x86-64, the one architecture that is recorded.
pub const FUTEX_CALL: u32 = 202;
/// `futex_wait(2)` (Linux 6.7): the word is its first argument too, and it has no `op`.
const FUTEX_WAIT_CALL: u32 = 455;

/// The futex that a thread inside this call waits for.
pub fn awaited_futex(call: Call) -> Option<FutexFact> {
    let operation = match call.number {
        FUTEX_CALL => call.argument1,
        FUTEX_WAIT_CALL => 0,
        _ => return None,
    };
    futex_waits(operation).then_some(FutexFact { word: call.argument0, operation })
}

/// Names of the commands by number; those that wait end in `true`.
const COMMANDS: [(&str, bool); 14] = [
    ("futex", true),
    ("futex wake", false),
    ("futex fd", false),
    ("futex requeue", false),
    ("futex cmp requeue", false),
    ("futex wake op", false),
    ("futex lock pi", true),
    ("futex unlock pi", false),
    ("futex trylock pi", false),
    ("futex bitset", true),
    ("futex wake bitset", false),
    ("futex wait requeue pi", true),
    ("futex cmp requeue pi", false),
    ("futex lock pi2", true),
];

/// Whether a call with this `op` argument waits for its word.
fn futex_waits(operation: u32) -> bool {
    COMMANDS.get(futex_operation(operation) as usize).is_some_and(|(_, waits)| *waits)
}

/// Short name of the command of an `op` argument; the plain wait is just `futex`.
pub fn futex_name(operation: u32) -> &'static str {
    COMMANDS.get(futex_operation(operation) as usize).map_or("futex", |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_waiting_calls_wait_for_a_futex() {
        let futex = |number, operation| {
            awaited_futex(Call { number, argument1: operation, argument0: 64 }).map(|futex| futex.word)
        };
        assert_eq!(futex(202, 128), Some(64));
        assert_eq!(futex(202, 128 | 9), Some(64));
        assert_eq!(futex(202, 129), None, "a wake");
        assert_eq!(futex(202, 77), None, "no such operation");
        assert_eq!(futex(455, 0xffff_ffff), Some(64), "its second argument is a value");
        assert_eq!(futex(0, 128), None, "read");
        assert_eq!(awaited_futex(Call::NONE), None);
    }
}
