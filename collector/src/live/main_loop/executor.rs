//! Carries out what [`super::LoopState`] decides.

use super::effect::Effect;
use super::keyboard::Keyboard;
use super::loop_state::{LoopState, StopReason};
use super::message::{FunctionRequest, Message};
use super::observations::Observations;
use super::run::{Print, TellSaved};
use crate::listen::Board;
use crate::live::keep::WindowFile;
use crate::live::probes::{AttachThread, FunctionFinder, Job};
use crate::live::rings::{Command, ReaderCommands, ThreadSnapshots};
use crate::threads::Failure;
use crate::tui::{Guard, Phase, Snapshot, State};
use capture::target::{GatedChild, LaunchError};
use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;

/// How long to wait for the exit status after the last record of a process. The wait usually takes microseconds, but an
/// exiting process may first have to free much memory.
const LAST_MOMENT: Duration = Duration::from_secs(5);

/// The threads, devices and counts that effects act on.
pub struct Executor {
    /// Commands to the ring reader.
    pub commands: ReaderCommands,
    /// Jobs for the thread that attaches probes.
    pub attaching: AttachThread,
    /// Requests to the thread that reads the target's threads from /proc.
    pub snapshots: Option<ThreadSnapshots>,
    /// Requests to the thread that finds functions.
    pub function_finder: Option<FunctionFinder>,
    /// Set when no last report is wanted; the writer reads it.
    pub skip_last_report: Arc<AtomicBool>,
    /// Set when the ring is to be saved; the writer reads it.
    pub save: Arc<AtomicBool>,
    /// Writes the window on the screen to a file, and sends the outcome.
    pub window_file: Option<(WindowFile, UnboundedSender<Message>)>,
    /// Prints where a ring was saved.
    pub saved: Option<TellSaved>,
    /// The thread that reads keys. It is set if and only if `screen` is set; both are dropped in this order.
    pub keyboard: Option<Keyboard>,
    /// See `keyboard`.
    pub screen: Option<(Guard, State)>,
    /// Whether a process is alive, according to /proc.
    pub alive: Box<dyn FnMut(u32) -> bool>,
    /// Prints reports.
    pub print: Option<Print>,
    /// Shows reports to clients over the network.
    pub board: Option<Board>,
    /// The command that longpole started.
    pub child: Option<GatedChild>,
    /// Time at which recording began.
    pub started: Instant,
    /// Length of the recording, once it is over.
    pub captured: Option<Duration>,
    /// Facts that were noticed for the summary.
    pub observed: Observations,
    /// The state has changed since the screen was painted.
    pub dirty: bool,
}

/// Whether the loop goes on, or how it is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// All work is done.
    Leave,
    /// Work in progress is abandoned.
    Abort,
}

impl Executor {
    /// Carries out effects, and further effects that follow from them.
    pub fn carry_out(&mut self, effects: Vec<Effect>, loop_state: &mut LoopState) -> Option<Flow> {
        let mut todo = std::collections::VecDeque::from(effects);
        while let Some(effect) = todo.pop_front() {
            self.post(&effect);
            match effect {
                Effect::Leave => return Some(Flow::Leave),
                Effect::Abort => return Some(Flow::Abort),
                Effect::CheckAlive => {
                    // Reaps the command: otherwise its zombie would count as a process.
                    if let Some(Ok(Some(status))) = self.child.as_mut().map(GatedChild::try_wait) {
                        loop_state.child_ended(status);
                        self.tell_end(loop_state);
                    }
                    let gone: Vec<u32> = loop_state.alive().filter(|pid| !(self.alive)(*pid)).collect();
                    for pid in gone {
                        todo.extend(loop_state.gone(pid));
                    }
                }
                Effect::ShowReport(snapshot) if self.print.is_some() => {
                    let printed = self.print.as_mut().map(|print| print(&snapshot));
                    self.observed.report = Some(snapshot);
                    if let Some(Err(error)) = printed {
                        let text = error.to_string();
                        let gone = error.kind() == io::ErrorKind::BrokenPipe;
                        let failure = Failure { part: "standard output", text };
                        let message = if gone { Message::ReaderGone } else { Message::Failed(failure) };
                        todo.extend(loop_state.handle(message));
                    }
                }
                other => self.do_one(other, loop_state),
            }
        }
        None
    }

    /// Passes reports and counts on to clients over the network.
    fn post(&self, effect: &Effect) {
        let Some(board) = &self.board else { return };
        match effect {
            Effect::ShowReport(snapshot) => board.show(Arc::clone(snapshot)),
            Effect::ShowCounts(counts) => board.count(**counts),
            Effect::ShowEnded => board.end(),
            _ => {}
        }
    }

    fn do_one(&mut self, effect: Effect, loop_state: &LoopState) {
        match effect {
            Effect::StopCapture => {
                self.captured = Some(self.started.elapsed());
                self.commands.give(Command::Stop { pids: loop_state.alive().collect() });
            }
            Effect::SkipLastReport => self.skip_last_report.store(true, Ordering::Relaxed),
            Effect::Save => self.save.store(true, Ordering::Relaxed),
            Effect::NoteSaved(saved) => {
                if let Some(tell) = &mut self.saved {
                    tell(&saved);
                }
                self.observed.saved.extend(saved.ok().map(|saved| saved.path));
            }
            Effect::TakeSnapshot(pids) => {
                if let Some(snapshots) = &mut self.snapshots {
                    snapshots.take_now(pids);
                }
            }
            Effect::AddProbes(chosen) => {
                if let Ok(functions) = &chosen.functions {
                    self.observed.more_functions.extend(functions.facts.iter().cloned());
                }
                self.attaching.give(Job::Process(chosen));
            }
            Effect::TakeOff(functions) => self.attaching.give(Job::TakeOff(functions)),
            Effect::AddLibc(chosen) => self.attaching.give(Job::Libc(chosen)),
            Effect::FindFunctions(request, pids) => self.find_functions(request, pids),
            Effect::ChooseFunctions(change) => {
                if let Some(function_finder) = &self.function_finder {
                    function_finder.ask(change);
                }
            }
            Effect::TryFunctions(hot, pids) => {
                if let Some(function_finder) = &self.function_finder {
                    function_finder.hot_functions(hot, pids);
                }
            }
            Effect::TryTallied(tally, pids) => {
                if let Some(function_finder) = &self.function_finder {
                    function_finder.tallied(tally, pids);
                }
            }
            Effect::Forward(signal) => {
                if let Some(Err(error)) = self.child.as_mut().map(|child| child.signal(signal)) {
                    log::warn!("cannot send signal {signal} to the command: {error}");
                }
            }
            effect @ (Effect::NoteNoLibc(_)
            | Effect::NoteOperationsOff(..)
            | Effect::NoteUnprobed(_)
            | Effect::NoteProbed(_)
            | Effect::NoteTakenOff(_)
            | Effect::NoteBackOn(_)) => self.observed.note(effect),
            Effect::ShowReport(snapshot) => {
                self.show_report(&snapshot);
                self.observed.report = Some(snapshot);
            }
            Effect::ShowCounts(counts) => {
                self.observed.counts = *counts;
                if let Some(snapshots) = &mut self.snapshots {
                    snapshots.look(counts.events, || loop_state.alive().collect());
                }
                if let Some((_, state)) = &mut self.screen {
                    state.count(&counts);
                }
            }
            Effect::ShowEnded => self.show_ended(loop_state),
            effect @ (Effect::CloseScreen
            | Effect::Draw
            | Effect::Filter(_)
            | Effect::ShowPrompt(_)
            | Effect::ShowAnswer(_)
            | Effect::WriteWindow
            | Effect::Act(_)) => self.on_screen(effect),
            Effect::CheckAlive | Effect::Leave | Effect::Abort => {}
        }
    }

    /// Effects that only change the screen.
    fn on_screen(&mut self, effect: Effect) {
        match effect {
            Effect::CloseScreen => {
                self.keyboard = None;
                if let Some((guard, mut state)) = self.screen.take() {
                    guard.leave(&mut state);
                }
            }
            Effect::Draw => self.dirty = true,
            Effect::ShowAnswer(sentence) => self.answer(sentence),
            Effect::WriteWindow => self.write_window(),
            effect => {
                let Some((_, state)) = &mut self.screen else { return };
                match effect {
                    Effect::Filter(text) => state.set_filter(text),
                    Effect::ShowPrompt(prompt) => state.prompt = prompt,
                    // `Quit` never comes here: leaving the loop is decided before.
                    Effect::Act(action) => {
                        let _ = state.apply(action);
                    }
                    _ => {}
                }
            }
        }
    }

    fn write_window(&mut self) {
        let shown = self.screen.as_ref().and_then(|(_, state)| state.recording());
        match (&self.window_file, shown) {
            (Some((file, messages)), Some(recording)) => file.write(recording, messages),
            _ => {
                self.answer("only the newest screen can be written: ] goes there".to_owned());
                self.dirty = true;
            }
        }
    }

    fn show_report(&mut self, snapshot: &Arc<Snapshot>) {
        if let Some((_, state)) = &mut self.screen {
            if state.phase == Phase::Running {
                state.elapsed = self.started.elapsed();
            }
            state.show(Arc::clone(snapshot));
        }
    }

    fn show_ended(&mut self, loop_state: &LoopState) {
        let elapsed = *self.captured.get_or_insert_with(|| self.started.elapsed());
        if let Some((_, state)) = &mut self.screen {
            state.elapsed = elapsed;
            state.phase = Phase::Ended(String::new());
        }
        self.tell_end(loop_state);
    }

    /// Releases a command held at the gate, after telling `meter`. Returns the reason if it cannot run.
    pub fn release_child(&mut self, meter: Option<Box<dyn Fn() + Send>>) -> Option<LaunchError> {
        let child = self.child.as_mut()?;
        if let Some(begins) = meter {
            begins();
        }
        let error = child.release().err()?;
        self.child = None;
        Some(error)
    }

    /// Finds the functions that a user names; an empty pattern stands for the function of the selected row.
    fn find_functions(&mut self, mut request: FunctionRequest, pids: Vec<u32>) {
        if request.pattern.is_empty() {
            let row = self.screen.as_ref().and_then(|(_, state)| state.chosen_function());
            request.pattern = row.unwrap_or_default();
        }
        match &self.function_finder {
            _ if request.pattern.is_empty() => self.answer("no function is chosen".to_owned()),
            Some(function_finder) => function_finder.request(request, pids),
            None => self.answer("functions have no probes here, so none can be set or removed".to_owned()),
        }
    }

    fn answer(&mut self, sentence: String) {
        if let Some((_, state)) = &mut self.screen {
            state.remark = Some(sentence);
        }
    }

    /// Shows how the command ended, once that is known.
    fn tell_end(&mut self, loop_state: &LoopState) {
        if let Some((_, state)) = &mut self.screen
            && let Phase::Ended(text) = &mut state.phase
        {
            *text = ended_text(loop_state, &state.subject);
            self.dirty = true;
        }
    }

    /// How the command ended. Waits for the exit status if all of the command's threads have ended already.
    pub fn last_status(&mut self, reason: Option<StopReason>) -> Option<ExitStatus> {
        let child = self.child.as_mut()?;
        let deadline = Instant::now() + LAST_MOMENT;
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if reason == Some(StopReason::TargetEnded) && Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                _ => return None,
            }
        }
    }

    /// Paints, if anything has changed.
    pub fn draw(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.dirty)
            && let Some((guard, state)) = &mut self.screen
        {
            if state.phase == Phase::Running {
                state.elapsed = self.started.elapsed();
            }
            guard.draw(state)?;
        }
        Ok(())
    }
}

fn ended_text(loop_state: &LoopState, subject: &str) -> String {
    use crate::exit::Outcome;
    let how = match loop_state.child_status().map(Outcome::from) {
        None if loop_state.stop_reason() == Some(StopReason::SourceEnded) => {
            " (end of the recording)".to_owned()
        }
        None => String::new(),
        Some(Outcome::Done) => " with exit code 0".to_owned(),
        Some(Outcome::Code(code)) => format!(" with exit code {code}"),
        Some(Outcome::Signal(signal)) => format!(" by signal {signal}"),
    };
    format!("{subject} has ended{how}. The last report stays; q quits.")
}
