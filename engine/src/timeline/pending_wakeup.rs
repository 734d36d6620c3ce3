//! A waking that may be recorded before its sleep.

use super::model::Wake;
use crate::event::FutexFact;
use probe_abi::Call;

/// A waking for which it is not yet known which sleep it ends: the waker may be faster than the switch that takes the sleeper
/// off its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PendingWakeup {
    pub(super) time_ns: u64,
    pub(super) wake: Wake,
    /// The system call in which the thread slept or was about to sleep.
    pub(super) call: Call,
    /// The futex of that call.
    pub(super) futex: Option<FutexFact>,
    /// The futex word that woke the thread, if it is another one than the thread went to sleep for.
    pub(super) other_word: Option<u64>,
}
