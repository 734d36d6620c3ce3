//! The actions that the main loop decides on: an [`Effect`] for each.

use super::message::{Chosen, FunctionRequest, LibcChosen, ProcessChange, UnprobedCounts};
use crate::exit::UserError;
use crate::live::keep::Saved;
use crate::live::probes::{HotFunctions, Tally};
use crate::live::rings::Probed;
use crate::tui::{Action, LiveCounts, Prompt, Snapshot};
use engine::event::{FunctionId, OperationsTried};
use probe_abi::SyncFamily;
use std::sync::Arc;

/// An action of the main loop.
#[derive(Debug)]
pub enum Effect {
    /// Empty the rings, write all their records, detach.
    StopCapture,
    /// Make no report of the last window.
    SkipLastReport,
    /// Restore the terminal.
    CloseScreen,
    /// Find the functions of a new process or program, or forget those of an ended process.
    ChooseFunctions(ProcessChange),
    /// Put probes into a process.
    AddProbes(Chosen),
    /// Remove the probes of functions.
    TakeOff(Vec<FunctionId>),
    /// Find the functions that a user names, in these processes.
    FindFunctions(FunctionRequest, Vec<u32>),
    /// Check whether functions that samples have shown are worth probes, in these processes.
    TryFunctions(HotFunctions, Vec<u32>),
    /// Check whether functions and families of lock functions are worth probes, after a tally of where threads ran.
    TryTallied(Tally, Vec<u32>),
    /// Show only rows whose names contain this text; empty: all.
    Filter(String),
    /// Show the prompt, or none.
    ShowPrompt(Option<Prompt>),
    /// Show the outcome of a request.
    ShowAnswer(String),
    /// Put probes on a process's C library.
    AddLibc(LibcChosen),
    /// Remember that the operations of a process are not recorded.
    NoteNoLibc(String),
    /// Remember that the operations of a family lost their probes in a process, or never got any after a trial.
    NoteOperationsOff(SyncFamily, Option<OperationsTried>),
    /// Write the window on the screen as a recording.
    WriteWindow,
    /// Apply a key's action to the screen.
    Act(Action),
    /// Paint again.
    Draw,
    /// Show a report on the screen, or print it (`--once`, `--batch`).
    ShowReport(Arc<Snapshot>),
    /// Remember that a process got no function probes.
    NoteUnprobed(UnprobedCounts),
    /// Remember which functions got probes, and which did not.
    NoteProbed(Probed),
    /// Remember which functions lost their probes.
    NoteTakenOff(Vec<FunctionId>),
    /// Remember which functions got their probes back.
    NoteBackOn(Vec<FunctionId>),
    /// Save the ring.
    Save,
    /// Report where the ring was saved, or why that failed, and remember it.
    NoteSaved(Result<Box<Saved>, UserError>),
    /// Read the threads of these processes now.
    TakeSnapshot(Vec<u32>),
    /// Show new counts.
    ShowCounts(Box<LiveCounts>),
    /// Show on the screen that the target has ended.
    ShowEnded,
    /// Check which processes have ended.
    CheckAlive,
    /// Send a signal on to the launched command.
    Forward(i32),
    /// Leave the loop.
    Leave,
    /// Leave now, and leave work unfinished.
    Abort,
}
