//! What the loop decides to do: an [`Effect`] for each thing.

use super::Probed;
use super::hot_functions::HotFunctions;
use super::message::{Chosen, FunctionRequest, LibcChosen, ProcessChange, UnprobedCounts};
use super::saved::Saved;
use super::tally::Tally;
use crate::exit::UserError;
use crate::tui::{Action, LiveCounts, Prompt, Snapshot};
use engine::event::{FunctionId, OperationsTried};
use probe_abi::SyncFamily;
use std::sync::Arc;

/// What the loop has to do.
#[derive(Debug)]
pub enum Effect {
    /// Take the rest from the rings, write it, detach.
    StopCapture,
    /// No report of what came last is needed.
    SkipLastReport,
    /// Give the terminal back.
    CloseScreen,
    /// Find the functions of a process that is new or runs a new program, or forget one that has ended.
    ChooseFunctions(ProcessChange),
    /// Put probes into a process.
    AddProbes(Chosen),
    /// Take the probes off functions.
    TakeOff(Vec<FunctionId>),
    /// Find the functions that a user names, in these processes.
    FindFunctions(FunctionRequest, Vec<u32>),
    /// See whether functions that samples have shown are worth probes, in these processes.
    TryFunctions(HotFunctions, Vec<u32>),
    /// The same for those that are where threads ran, and for families of lock functions.
    TryTallied(Tally, Vec<u32>),
    /// Show only rows with this in their names; empty: all.
    Filter(String),
    /// Show what is being typed, or nothing any more.
    ShowPrompt(Option<Prompt>),
    /// Show what a request came to.
    ShowAnswer(String),
    /// Put probes on a process's C library.
    AddLibc(LibcChosen),
    /// Remember that the operations of a process are not recorded.
    NoteNoLibc(String),
    /// Remember that operations of a family have lost their probes in a process, or never had any.
    NoteOperationsOff(SyncFamily, Option<OperationsTried>),
    /// Write the stretch that is shown as a recording.
    WriteWindow,
    /// Do what a key asks for on the screen.
    Act(Action),
    /// Paint again.
    Draw,
    /// Show a report, or print it with `--once` and `--batch`.
    ShowReport(Arc<Snapshot>),
    /// Remember that a process got no function probes.
    NoteUnprobed(UnprobedCounts),
    /// Remember which functions got probes, and which did not.
    NoteProbed(Probed),
    /// Remember which functions lost their probes.
    NoteTakenOff(Vec<FunctionId>),
    /// Remember which have them again.
    NoteBackOn(Vec<FunctionId>),
    /// Save the ring.
    Save,
    /// Say where the ring was saved, or why not, and remember it.
    NoteSaved(Result<Box<Saved>, UserError>),
    /// Read the threads of these processes now.
    TakeSnapshot(Vec<u32>),
    /// New counts.
    ShowCounts(Box<LiveCounts>),
    /// The target has ended: say so on the screen.
    ShowEnded,
    /// See which processes are gone.
    CheckAlive,
    /// Send the signal on to the launched command.
    Forward(i32),
    /// Leave the loop.
    Leave,
    /// Leave now, with unfinished work.
    Abort,
}
