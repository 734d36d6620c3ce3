//! The meaning of an object's or device's name. A program has names only, like its JSON form; no other file compares them.

use super::names::{GIL, IDLE, STOPPED, TIMER, UNKNOWN};
use crate::program::answers::ANSWERS;
use crate::program::{ObjectId, Program};

/// Kinds of objects and devices that decisions distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectMeaning {
    /// A device: waits for work.
    Idle,
    /// A device: time in which threads were stopped by a signal or a debugger.
    Stopped,
    /// A device: unknown time.
    Unknown,
    /// A device: waits ended by a timer.
    Timer,
    /// A device: waits for other servers' answers.
    Answer,
    /// The global lock of a Python interpreter.
    Gil,
    /// A variable of a Python interpreter, such as the futex word of its lock.
    OfInterpreter,
    /// Any other object or device.
    Other,
}

impl ObjectMeaning {
    /// The meaning of an object with this name.
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

    /// Whether waits for the object take time that nothing shortens: timers, waiting for work, being stopped.
    pub(crate) fn is_time(self) -> bool {
        matches!(self, ObjectMeaning::Timer | ObjectMeaning::Idle | ObjectMeaning::Stopped)
    }

    /// Whether the object is a lock that an interpreter needs for itself, recognized by operations or by its futex
    /// word.
    pub(crate) fn is_interpreter_lock(self) -> bool {
        matches!(self, ObjectMeaning::Gil | ObjectMeaning::OfInterpreter)
    }
}

impl Program {
    /// The meaning of an object or a device.
    pub(crate) fn meaning(&self, object: ObjectId) -> ObjectMeaning {
        let name = self.objects.get(object.0 as usize);
        name.map_or(ObjectMeaning::Other, |name| ObjectMeaning::of(name))
    }

    /// The meanings of all objects and devices, in order.
    pub(crate) fn meanings(&self) -> impl Iterator<Item = ObjectMeaning> + '_ {
        self.objects.iter().map(|name| ObjectMeaning::of(name))
    }
}
