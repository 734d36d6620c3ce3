//! The machines that programs run on. The simulation decides which thread waits for which; the machine decides which
//! thread has a processor, and when it acts next. Machines are: unlimited processors ([`super::agenda`]), processors
//! shared in infinitely small slices ([`super::shared_cpus`]), and processors with a scheduler ([`super::processors`]).

use super::outcome::cpu_accounting::SimulatedState;
use crate::program::ObjectId;

/// Why a thread is blocked: the object or event that it waits for.
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
    /// The end of a wait that was busy waiting when it was recorded.
    Turn,
}

/// The turn of a thread at this instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// This thread reaches its next operation.
    Act(u32),
    /// The thread's wait by the clock is over; it has yet to be woken.
    Expired(u32),
}

/// The moment from which a wait by the clock is measured, if it is not the wait's beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The start of the program.
    Start,
    /// The last end of the thread's timer; for a timer's first wait, the wait's beginning.
    Timer,
}

/// The machine: processors and the threads that use them.
pub trait Machine {
    /// Whether deciding points, vertices and runs are kept, for weights.
    const DECIDES: bool;

    /// Whether work proceeds at another rate than time. Then waits by the clock and the latency until a woken thread
    /// acts are steps with their own deciding points (design: `critical_path::costed`).
    const COSTS: bool = false;

    /// The present instant, ticks from the start.
    fn now(&self) -> u64;

    /// Virtual time: the work of a thread that executes all the time, in parts of a tick; valid only if [`Machine::COSTS`].
    fn virtual_now(&self) -> u128 {
        0
    }

    /// Moves on to the next instant at which something happens; `None` if nothing ever does.
    fn next_instant(&mut self) -> Option<u64>;

    /// The next turn at this instant; `None` if there is none.
    fn next_turn(&mut self) -> Option<Turn>;

    /// Wakes a thread that waited or has just been created. It acts as soon as it has a processor. `by` is the waker.
    fn wake(&mut self, thread: u32, by: Option<u32>);

    /// Whether the machine wants `begin_run` called.
    fn follows_runs(&self) -> bool {
        Self::DECIDES
    }

    /// The acting thread begins this run.
    fn begin_run(&mut self, _thread: u32, _run: u32) {}

    /// Notes that a device begins to serve `thread` when it has finished serving `before`.
    fn serve_after(&mut self, _thread: u32, _before: u32, _device: ObjectId) {}

    /// The thread's new wait by the clock is measured from this origin.
    fn wait_from(&mut self, _thread: u32, _origin: Origin) {}

    /// Returns the latency from waking a thread until the thread acts, ticks, and charges the waker `by` for the
    /// wake-up. 0 unless [`Machine::COSTS`].
    fn wake_delay(&mut self, _by: Option<u32>) -> u64 {
        0
    }

    /// A thread that waited acts after this delay in ticks; only if [`Machine::COSTS`].
    fn wake_after(&mut self, _thread: u32, _delay: u64) {}

    /// Processor time that the thread has been charged for waking others and not computed yet, ticks.
    fn debt(&self, _thread: u32) -> u64 {
        0
    }

    /// The thread's present state.
    fn doing(&self, _thread: u32) -> SimulatedState {
        SimulatedState::Nothing
    }

    /// The acting thread computes for this long, then acts.
    fn compute(&mut self, thread: u32, length: u64);

    /// The acting thread yields its processor until another thread wakes it.
    fn block(&mut self, thread: u32, why: Why);

    /// Gives a thread off its processor its [`Turn`] after this length.
    fn expire(&mut self, thread: u32, length: u64);

    /// The acting thread spins: it keeps its processor busy and makes no progress.
    fn spin(&mut self, thread: u32, object: ObjectId);

    /// Whether a spinning thread has a processor now.
    fn is_spinning(&self, thread: u32) -> bool;

    /// A spinning thread that has a processor acts at this instant, because `by` freed the lock.
    fn retry(&mut self, thread: u32, by: u32);

    /// Counts free spin locks whose spinning threads are all off their processors: one more, or one fewer. Such a lock
    /// means that the run is not over.
    fn spinners_on_free_locks(&mut self, more: bool);

    /// The acting thread ends.
    fn end(&mut self, thread: u32);
}
