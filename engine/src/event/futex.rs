//! System calls that wait for a futex, and the meaning of their `op` argument (Linux `include/uapi/linux/futex.h`,
//! `arch/x86/entry/syscalls/syscall_64.tbl`).

use probe_abi::{Call, FUTEX_WAITV_CALL, Switch, SwitchFlags, Waking, WakingFlags, futex_operation};
use serde::{Deserialize, Serialize};

pub use probe_abi::FUTEX_CALL;

/// `futex_wait(2)` (Linux 6.7): its first argument is the word, too, and it has no `op`.
const FUTEX_WAIT_CALL: u32 = 455;

/// A futex call that a thread waits in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FutexFact {
    /// Address of the word.
    pub word: u64,
    /// The `op` argument with its flag bits.
    pub operation: u32,
    /// Number of words if the thread waits for any of several; `word` is then the first. 0: `word` is the only one, or the
    /// one that woke it.
    #[serde(default, skip_serializing_if = "is_none_of_several")]
    pub words: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_none_of_several(words: &u32) -> bool {
    *words == 0
}

/// The thread that can end a wait in a futex call, by the program's memory: a mutex's holder, or a thread that is
/// joined.
///
/// A word may look like a mutex without being one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwaitedThread {
    /// The call in which a thread waits.
    pub futex: FutexFact,
    /// Host thread id found in memory.
    pub tid: u32,
}

/// The futex that a thread in this system call waits for; `None` if the call waits for none.
pub fn awaited_futex(call: Call) -> Option<FutexFact> {
    let operation = match call.number {
        FUTEX_CALL => call.argument1,
        FUTEX_WAIT_CALL => 0,
        _ => return None,
    };
    futex_waits(operation).then_some(FutexFact { word: call.argument0, operation, words: 0 })
}

/// The futex for which a thread leaves its CPU; if the thread waits for several words, the first one.
pub fn futex_of_sleeper(switch: &Switch) -> Option<FutexFact> {
    let call = switch.prev_call;
    if call.number == FUTEX_WAITV_CALL {
        // A call without words does not sleep.
        let fact = FutexFact { word: call.argument0, operation: 0, words: call.argument1.max(1) };
        return (switch.flags & SwitchFlags::FIRST_WORD != 0).then_some(fact);
    }
    awaited_futex(call)
}

/// The futex that the woken thread waited for, if the record of the waking has it. Of several words, it is the one that
/// woke the thread.
pub fn futex_of_wakee(waking: &Waking) -> Option<FutexFact> {
    let call = waking.wakee_call;
    if call.number == FUTEX_WAITV_CALL {
        let fact = FutexFact { word: call.argument0, operation: 0, words: 0 };
        return (waking.flags & WakingFlags::OTHER_WORD != 0).then_some(fact);
    }
    awaited_futex(call)
}

/// Names of the futex commands by number, and whether a command waits.
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

/// Short name of the command in an `op` argument; `futex` for the plain wait.
pub fn futex_name(operation: u32) -> &'static str {
    COMMANDS.get(futex_operation(operation) as usize).map_or("futex", |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If a thread waits for several futex words, the sleeper's record has the first one, and its waking has the word
    /// that woke it. Old recordings have no words, and neither have records of memory that could not be read.
    #[test]
    fn of_several_futex_words_the_first_is_the_sleeper_s_and_one_the_wakee_s() {
        use probe_abi::{Header, Kind};
        let header = |kind: Kind| Header {
            time_ns: 1,
            sequence: 0,
            cpu: 0,
            kind: kind as u8,
            context: 0,
            tid: 1,
            pid: 1,
        };
        let call = Call { number: FUTEX_WAITV_CALL, argument1: 2, argument0: 0x40 };
        let switch = |flags| Switch {
            header: header(Kind::Switch),
            next_tid: 0,
            next_pid: 0,
            prev_state: 1,
            flags,
            prev_user_sp: 0,
            prev_call: call,
        };
        let waking = |flags| Waking {
            header: header(Kind::Waking),
            wakee_tid: 2,
            wakee_pid: 1,
            flags,
            wakee_state: 1,
            waker_call: FUTEX_CALL,
            cause: 0,
            wakee_call: call,
        };
        let fact = |words| Some(FutexFact { word: 0x40, operation: 0, words });
        assert_eq!(futex_of_sleeper(&switch(SwitchFlags::FIRST_WORD)), fact(2));
        assert_eq!(futex_of_sleeper(&switch(0)), None);
        assert_eq!(futex_of_wakee(&waking(WakingFlags::OTHER_WORD)), fact(0));
        assert_eq!(futex_of_wakee(&waking(0)), None);
    }

    #[test]
    fn only_futex_calls_that_wait_have_an_awaited_futex() {
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
