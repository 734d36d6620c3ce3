//! A waking that may be recorded before the sleep that it ends.

use crate::event::FutexFact;
use crate::timeline::model::Wake;
use probe_abi::Call;

/// A waking for which it is not yet known which sleep it ends: the waker may be faster than the switch that takes the sleeper
/// off its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::timeline) struct PendingWakeup {
    pub(in crate::timeline) time_ns: u64,
    pub(in crate::timeline) wake: Wake,
    /// The system call in which the thread slept or was about to sleep.
    pub(in crate::timeline) call: Call,
    /// The futex of that call.
    pub(in crate::timeline) futex: Option<FutexFact>,
    /// The futex word that woke the thread, if it differs from the one for which the thread went to sleep.
    pub(in crate::timeline) other_word: Option<u64>,
}
