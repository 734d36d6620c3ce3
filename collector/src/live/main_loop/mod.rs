//! The main loop: messages come in, `loop_state` decides what they mean, `executor` acts.

mod effect;
mod executor;
mod inputs;
mod keyboard;
mod loop_state;
mod message;
mod observations;
mod pipeline;
mod run;

pub use effect::Effect;
pub use loop_state::{LoopState, Mode, StopReason};
pub use message::{
    ChangeKind, Chosen, FunctionRequest, Granted, LibcChosen, LibcCounts, Message, NewFunctions, Placing,
    ProcessChange, Unprobed, UnprobedCounts,
};
pub use observations::Observations;
pub use run::{Ended, Listen, Setup, WindowPlan, run};

pub(crate) use run::{Print, Saving};
