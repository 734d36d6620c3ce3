//! What the name of an object or a device says about it. A program keeps names only, as its JSON does; nothing else
//! compares them.

use super::answers::ANSWERS;
use super::names::{GIL, IDLE, STOPPED, TIMER, UNKNOWN};
use super::{ObjectId, Program};

/// What an object or a device of a program is, as far as decisions ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectMeaning {
    /// A device: waits of threads that have nothing to do.
    Idle,
    /// A device: time in which threads were stopped, by a signal or by a debugger.
    Stopped,
    /// A device: time about which nothing is known.
    Unknown,
    /// A device: waits that a timer ends.
    Timer,
    /// A device: waits for other servers' answers.
    Answer,
    /// The lock of a Python interpreter.
    Gil,
    /// A variable of a Python interpreter, such as the word in which threads wait for its lock.
    OfInterpreter,
    /// Anything else.
    Other,
}

impl ObjectMeaning {
    /// By the name.
    pub(crate) fn of(name: &str) -> ObjectMeaning {
        match name {
            IDLE => ObjectMeaning::Idle,
            STOPPED => ObjectMeaning::Stopped,
            UNKNOWN => ObjectMeaning::Unknown,
            TIMER | "timerfd read" => ObjectMeaning::Timer,
            _ if name.starts_with(ANSWERS) => ObjectMeaning::Answer,
            _ if name.starts_with(GIL) => ObjectMeaning::Gil,
            _ if name.contains("_PyRuntime") => ObjectMeaning::OfInterpreter,
            _ => ObjectMeaning::Other,
        }
    }

    /// Time that passes by itself, or with nothing to do: nothing makes that shorter.
    pub(crate) fn is_time(self) -> bool {
        matches!(self, ObjectMeaning::Timer | ObjectMeaning::Idle | ObjectMeaning::Stopped)
    }

    /// A lock that the interpreter needs for itself, known by its operations or by its word.
    pub(crate) fn is_interpreter_lock(self) -> bool {
        matches!(self, ObjectMeaning::Gil | ObjectMeaning::OfInterpreter)
    }
}

impl Program {
    /// What an object or a device is.
    pub(crate) fn meaning(&self, object: ObjectId) -> ObjectMeaning {
        let name = self.objects.get(object.0 as usize);
        name.map_or(ObjectMeaning::Other, |name| ObjectMeaning::of(name))
    }

    /// What all of them are, in their order.
    pub(crate) fn meanings(&self) -> impl Iterator<Item = ObjectMeaning> + '_ {
        self.objects.iter().map(|name| ObjectMeaning::of(name))
    }
}
