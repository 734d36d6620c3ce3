//! What a program runs on. The simulation decides which thread waits for which; a machine decides which one
//! uses a processor, and when it acts next. One simulation, several machines: unlimited processors
//! ([`super::agenda`]), processors shared in infinitely small slices ([`super::shared_cpus`]), and processors
//! with a scheduler ([`super::processors`]).

use super::cpu_accounting::Doing;
use crate::program::ObjectId;

/// What a thread waits for while it uses no processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// A synchronization object or a device.
    Object(ObjectId),
    /// Time to pass.
    Sleep,
    /// Another thread's end.
    Join,
    /// A recorded wake-up.
    Edge,
    /// What a thread asked for again and again when it was recorded.
    Turn,
}

/// What happens next at this instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The thread reaches its next operation.
    Act(u32),
    /// What the thread waited for by the clock is over; it has yet to be woken.
    Expired(u32),
}

/// What decides the end of a wait by the clock that does not end some time after its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The start of the program.
    Start,
    /// The last end of the thread's timer; its beginning if it is the first.
    Timer,
}

/// Processors and the threads that use them.
pub trait Machine {
    /// Whether what decides each moment is kept: deciding points, vertices and runs, for weights.
    const DECIDES: bool;

    /// Whether time passes at another rate than work is done. Then waits by the clock and the time until a
    /// woken thread acts are steps of their own, each with a deciding point (design:
    /// `critical_path::costed`).
    const COSTS: bool = false;

    /// The present instant, ticks from the start.
    fn now(&self) -> u64;

    /// Virtual time: the work of each thread that has executed all the time, in parts of a tick; only if [`Machine::COSTS`].
    fn virtual_now(&self) -> u128 {
        0
    }

    /// Moves on to the next instant at which something happens; `None` if nothing ever does.
    fn next_instant(&mut self) -> Option<u64>;

    /// What is next at this instant.
    fn next_turn(&mut self) -> Option<Turn>;

    /// A thread that waited, or has just come to life, acts as soon as it has a processor. `by` is its waker.
    fn wake(&mut self, thread: u32, by: Option<u32>);

    /// Whether runs of compute operations are reported.
    fn follows_runs(&self) -> bool {
        Self::DECIDES
    }

    /// The acting thread begins this run.
    fn begin_run(&mut self, _thread: u32, _run: u32) {}

    /// The device that served `before` until now continues with the thread.
    fn serve_after(&mut self, _thread: u32, _before: u32, _device: ObjectId) {}

    /// The end of the wait by the clock that the thread begins has been decided by this.
    fn wait_from(&mut self, _thread: u32, _origin: Origin) {}

    /// What waking this thread takes, if [`Machine::COSTS`]: until it acts, ticks. Its waker (`by`) is
    /// charged for it.
    fn wake_delay(&mut self, _by: Option<u32>) -> u64 {
        0
    }

    /// A thread that waited acts after this delay in ticks; only if [`Machine::COSTS`].
    fn wake_after(&mut self, _thread: u32, _delay: u64) {}

    /// What the thread has been charged for waking others and not computed yet, ticks.
    fn debt(&self, _thread: u32) -> u64 {
        0
    }

    /// What the thread does at present.
    fn doing(&self, _thread: u32) -> Doing {
        Doing::Nothing
    }

    /// The acting thread computes for this long and acts then.
    fn compute(&mut self, thread: u32, length: u64);

    /// The acting thread yields its processor until it is woken.
    fn block(&mut self, thread: u32, why: Why);

    /// A thread that gave its processor up has its [`Turn`] after this long.
    fn expire(&mut self, thread: u32, length: u64);

    /// The acting thread keeps its processor busy without getting on.
    fn spin(&mut self, thread: u32, object: ObjectId);

    /// Whether a spinning thread has a processor now.
    fn is_spinning(&self, thread: u32) -> bool;

    /// A spinning thread that has a processor acts at this instant, because of what `by` has done.
    fn retry(&mut self, thread: u32, by: u32);

    /// A spin lock is free while all threads that spin for it are off their processors (or no longer so): one
    /// of them will get on.
    fn spinners_on_free_locks(&mut self, more: bool);

    /// The acting thread is over.
    fn end(&mut self, thread: u32);
}
