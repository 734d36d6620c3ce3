//! Decides what a message means: a state machine without clocks, threads or terminals. [`LoopState::handle`] decides on
//! the effects, [`super::run`] carries them out.

use super::effect::Effect;
use super::message::{ChangeKind, FunctionRequest, Granted, Message, ProcessChange};
use crate::threads::Failure;
use crate::tui::{Action, Prompt, PromptKind, Typed, action_of};
use capture::target::launching::signals::{Reaction, Relation, react};
use std::collections::BTreeSet;
use std::process::ExitStatus;

/// How longpole was started: for a recording, a screen, or printed reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `longpole record`: ends when the file is complete.
    Record,
    /// `longpole top`: ends when the user leaves.
    Screen,
    /// `longpole top --once`: ends with the first report.
    Once,
    /// `longpole top --batch`: prints every report, and ends as a recording does.
    Batch,
}

/// Why recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// `--duration` is over.
    TimeUp,
    /// Every process of the target has ended.
    TargetEnded,
    /// ^C, or `q` on the screen.
    User,
    /// SIGTERM or SIGHUP.
    Terminated,
    /// `--once` has printed its report.
    Answered,
    /// A thread failed.
    Failed,
    /// The source ended by itself: a replayed recording is at its end.
    SourceEnded,
}

/// The state of the main loop.
#[derive(Debug)]
pub struct LoopState {
    mode: Mode,
    children: bool,
    alive: BTreeSet<u32>,
    stop: Option<StopReason>,
    detached: bool,
    finished: bool,
    leaving: bool,
    answered: bool,
    relation: Relation,
    signals: u32,
    /// The launched command has got ^C, too.
    interrupted: bool,
    child_status: Option<ExitStatus>,
    failure: Option<Failure>,
    /// The prompt in which the user types.
    prompt: Option<Prompt>,
}

impl LoopState {
    /// The state at the start, when these processes are alive.
    pub fn new(mode: Mode, relation: Relation, pids: &[u32], children: bool) -> LoopState {
        LoopState {
            mode,
            children,
            alive: pids.iter().copied().collect(),
            stop: None,
            detached: false,
            finished: false,
            leaving: mode != Mode::Screen,
            answered: false,
            relation,
            signals: 0,
            interrupted: false,
            child_status: None,
            failure: None,
            prompt: None,
        }
    }

    /// Why recording ended; `None` while it goes on.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.stop
    }

    /// How the launched command ended; `None` if it has not ended.
    pub fn child_status(&self) -> Option<ExitStatus> {
        self.child_status
    }

    /// Whether the launched command has got ^C, too.
    pub fn command_was_interrupted(&self) -> bool {
        self.interrupted
    }

    /// The failure of a thread; `None` if there was none.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Processes of the target that have not ended.
    pub fn alive(&self) -> impl Iterator<Item = u32> + '_ {
        self.alive.iter().copied()
    }

    /// Notes how the launched command ended.
    pub fn child_ended(&mut self, status: ExitStatus) {
        self.child_status = Some(status);
    }

    /// Decides what a message makes the loop do.
    pub fn handle(&mut self, message: Message) -> Vec<Effect> {
        match message {
            Message::Signal(signal) => self.signal(signal),
            Message::TerminalGone => self.leave(StopReason::Terminated),
            Message::ReaderGone => {
                let mut effects = vec![Effect::SkipLastReport];
                effects.extend(self.leave(StopReason::User));
                effects
            }
            Message::TimeUp => self.leave(StopReason::TimeUp),
            Message::Tick => vec![Effect::CheckAlive, Effect::Draw],
            Message::Key(key) => self.key(key),
            Message::Resized => vec![Effect::Draw],
            Message::Process(change) => self.process(change),
            Message::Chosen(chosen) if self.stop.is_none() => vec![Effect::AddProbes(chosen)],
            Message::Chosen(_) => vec![],
            Message::Granted(granted) => self.granted(granted),
            Message::Libc(chosen) if self.stop.is_none() => vec![Effect::AddLibc(chosen)],
            Message::Libc(_) => vec![],
            Message::NoLibc(why) => vec![Effect::NoteNoLibc(why)],
            Message::OperationsOff(family, tried) => vec![Effect::NoteOperationsOff(family, tried)],
            Message::Counts(counts) => vec![Effect::ShowCounts(counts)],
            Message::Unprobed(why) => vec![Effect::NoteUnprobed(why)],
            Message::Probed(probed) => vec![Effect::NoteProbed(probed)],
            Message::TakenOff(functions) => vec![Effect::NoteTakenOff(functions)],
            Message::BackOn(functions) => vec![Effect::NoteBackOn(functions)],
            Message::Answer(sentence) => vec![Effect::ShowAnswer(sentence), Effect::Draw],
            Message::Report(snapshot) => self.report(snapshot),
            Message::HotFunctions(hot) if self.stop.is_none() => {
                vec![Effect::TryFunctions(hot, self.alive().collect())]
            }
            Message::Tallied(tally) if self.stop.is_none() => {
                vec![Effect::TryTallied(tally, self.alive().collect())]
            }
            Message::HotFunctions(_) | Message::Tallied(_) => vec![],
            // At the end the ring is saved in any case.
            Message::Save if self.stop.is_none() => vec![Effect::Save],
            Message::Save => vec![],
            Message::Saved(saved) => vec![Effect::NoteSaved(saved)],
            Message::SnapshotWanted if self.stop.is_none() => {
                vec![Effect::TakeSnapshot(self.alive().collect())]
            }
            Message::SnapshotWanted => vec![],
            Message::Detached => {
                self.detached = true;
                let mut effects = vec![];
                if self.stop.is_none() {
                    self.stop = Some(StopReason::SourceEnded);
                    effects.extend((self.mode == Mode::Screen).then_some(Effect::ShowEnded));
                }
                effects.extend(self.leave_if_ready());
                effects
            }
            Message::Finished => {
                self.finished = true;
                self.leave_if_ready()
            }
            Message::Failed(failure) => {
                if self.failure.is_none() {
                    self.failure = Some(failure);
                }
                // Does not wait for a last message of the failed thread; threads are joined after the loop.
                self.finished = true;
                self.leave(StopReason::Failed)
            }
        }
    }

    /// Removes a process that /proc does not have any more: its `Exit` record may have been lost.
    pub fn gone(&mut self, pid: u32) -> Vec<Effect> {
        if !self.alive.remove(&pid) || !self.alive.is_empty() {
            return vec![];
        }
        let mut effects = self.stop(StopReason::TargetEnded);
        if self.mode == Mode::Screen {
            effects.push(Effect::ShowEnded);
        }
        effects
    }

    fn signal(&mut self, signal: i32) -> Vec<Effect> {
        let earlier = self.signals;
        self.signals = self.signals.saturating_add(1);
        let relation = match self.mode {
            // On the screen, keys go to longpole and not to the command, so these signals are for longpole.
            Mode::Screen => Relation::Attached,
            // A command that has ended cannot react.
            Mode::Record | Mode::Once | Mode::Batch if self.stop.is_some() => Relation::Attached,
            Mode::Record | Mode::Once | Mode::Batch => self.relation,
        };
        match react(signal, relation, earlier) {
            Reaction::Finish if signal == libc::SIGINT => self.leave(StopReason::User),
            Reaction::Finish => self.leave(StopReason::Terminated),
            Reaction::WaitForCommand => {
                self.interrupted = true;
                vec![]
            }
            Reaction::Forward => {
                self.interrupted |= signal == libc::SIGINT;
                vec![Effect::Forward(signal)]
            }
            Reaction::Abort => vec![Effect::Abort],
        }
    }

    fn granted(&self, granted: Granted) -> Vec<Effect> {
        let Granted { chosen, libc, without_libc, off, sentence } = granted;
        let mut effects = Vec::new();
        if !sentence.is_empty() {
            effects.extend([Effect::ShowAnswer(sentence), Effect::Draw]);
        }
        if self.stop.is_none() {
            effects.extend(libc.into_iter().map(Effect::AddLibc));
            effects.extend(without_libc.into_iter().map(Effect::NoteNoLibc));
            effects.extend(chosen.into_iter().map(Effect::AddProbes));
            effects.extend((!off.is_empty()).then_some(Effect::TakeOff(off)));
        }
        effects
    }

    /// Handles a key while a pattern is typed.
    fn typed(&mut self, mut prompt: Prompt, key: crossterm::event::KeyEvent) -> Vec<Effect> {
        let shown = match prompt.typed(key) {
            Typed::Goes => Some(prompt),
            Typed::GivenUp if prompt.what == PromptKind::Filter => {
                return vec![Effect::ShowPrompt(None), Effect::Filter(String::new()), Effect::Draw];
            }
            Typed::GivenUp => None,
            Typed::Done if prompt.what == PromptKind::Filter => {
                return vec![Effect::ShowPrompt(None), Effect::Filter(prompt.text), Effect::Draw];
            }
            Typed::Done => {
                let Prompt { what, text } = prompt;
                let request = FunctionRequest { what, pattern: text };
                return vec![
                    Effect::ShowPrompt(None),
                    Effect::FindFunctions(request, self.alive().collect()),
                    Effect::Draw,
                ];
            }
        };
        self.prompt.clone_from(&shown);
        vec![Effect::ShowPrompt(shown), Effect::Draw]
    }

    fn key(&mut self, key: crossterm::event::KeyEvent) -> Vec<Effect> {
        if let Some(prompt) = self.prompt.take() {
            return self.typed(prompt, key);
        }
        match action_of(key) {
            Some(Action::Ask(what)) if self.stop.is_none() || what == PromptKind::Filter => {
                let prompt = Prompt { what, text: String::new() };
                self.prompt = Some(prompt.clone());
                vec![Effect::ShowPrompt(Some(prompt)), Effect::Draw]
            }
            Some(Action::Write) => vec![Effect::WriteWindow],
            Some(Action::Quit) => self.leave(StopReason::User),
            Some(action) => vec![Effect::Act(action), Effect::Draw],
            None => vec![],
        }
    }

    fn process(&mut self, change: ProcessChange) -> Vec<Effect> {
        match change.kind {
            ChangeKind::Forked { parent } => {
                if !self.children || !self.alive.contains(&parent) {
                    return vec![];
                }
                self.alive.insert(change.pid);
                self.choose(change)
            }
            ChangeKind::Executed { .. } if self.alive.contains(&change.pid) => self.choose(change),
            // A mapping whose record was lost: any process may have made it.
            ChangeKind::Mapped { .. } if change.pid == 0 => {
                let all: Vec<u32> = self.alive().collect();
                all.into_iter().flat_map(|pid| self.choose(ProcessChange { pid, ..change })).collect()
            }
            ChangeKind::Mapped { .. } if self.alive.contains(&change.pid) => self.choose(change),
            ChangeKind::Executed { .. } | ChangeKind::Mapped { .. } => vec![],
            // The record comes a moment before the process disappears from /proc.
            ChangeKind::Ended => {
                let mut effects = self.gone(change.pid);
                if self.children {
                    effects.extend(self.choose(change));
                }
                effects
            }
        }
    }

    fn choose(&self, change: ProcessChange) -> Vec<Effect> {
        if self.stop.is_none() { vec![Effect::ChooseFunctions(change)] } else { vec![] }
    }

    fn report(&mut self, snapshot: std::sync::Arc<crate::tui::Snapshot>) -> Vec<Effect> {
        match self.mode {
            Mode::Record => vec![],
            Mode::Batch => vec![Effect::ShowReport(snapshot)],
            Mode::Screen => vec![Effect::ShowReport(snapshot), Effect::Draw],
            Mode::Once if self.answered => vec![],
            Mode::Once => {
                self.answered = true;
                let mut effects = vec![Effect::ShowReport(snapshot), Effect::SkipLastReport];
                effects.extend(self.leave(StopReason::Answered));
                effects
            }
        }
    }

    /// Stops recording, and leaves as soon as all work is done.
    fn leave(&mut self, reason: StopReason) -> Vec<Effect> {
        let mut effects = self.stop(reason);
        if self.mode == Mode::Screen && !self.leaving {
            // The screen shows no further report, and detaching needs no screen.
            effects.splice(0..0, [Effect::SkipLastReport, Effect::CloseScreen]);
        } else if self.mode == Mode::Batch && reason == StopReason::Terminated {
            // After SIGTERM a service manager waits for longpole to end; one more report would delay that.
            effects.insert(0, Effect::SkipLastReport);
        }
        self.leaving = true;
        effects.extend(self.leave_if_ready());
        effects
    }

    /// Ends the loop when the file is complete and `--once` has its report. A screen only waits until probes are
    /// detached.
    fn leave_if_ready(&self) -> Vec<Effect> {
        let ready = self.finished || (self.detached && (self.mode == Mode::Screen || self.answered));
        if self.leaving && ready { vec![Effect::Leave] } else { vec![] }
    }

    fn stop(&mut self, reason: StopReason) -> Vec<Effect> {
        if self.stop.is_some() {
            return vec![];
        }
        self.stop = Some(reason);
        vec![Effect::StopCapture]
    }
}

#[cfg(test)]
mod tests;
