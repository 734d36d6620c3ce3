//! What a message means: a state machine without clocks, threads or terminals. [`LoopState::handle`] says what to
//! do, [`super::run`] does it.

use super::Probed;
use super::hot_functions::HotFunctions;
use super::message::{
    ChangeKind, Chosen, FunctionRequest, Granted, LibcChosen, Message, ProcessChange, UnprobedCounts,
};
use super::tally::Tally;
use crate::threads::Failure;
use crate::tui::{Action, Prompt, PromptKind, Typed, action_of};
use capture::target::signals::{Reaction, Relation, react};
use engine::event::OperationsTried;
use probe_abi::SyncFamily;
use std::collections::BTreeSet;
use std::process::ExitStatus;

/// How longpole is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `record`: ends with the file.
    Record,
    /// `top`: ends when the user leaves.
    Screen,
    /// `top --once`: ends with the first report.
    Once,
    /// `top --batch`: every report is printed; ends as a recording does.
    Batch,
}

/// Why capturing ended.
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
    /// `--once` has its report.
    Answered,
    /// A part failed.
    Failed,
    /// The source has ended by itself: a recording was played to its end.
    SourceEnded,
}

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
    TakeOff(Vec<engine::event::FunctionId>),
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
    /// Do what a key asks for on the screen.
    Act(Action),
    /// Paint again.
    Draw,
    /// Show a report, or print it with `--once` and `--batch`.
    ShowReport(std::sync::Arc<crate::tui::Snapshot>),
    /// Remember that a process got no function probes.
    NoteUnprobed(UnprobedCounts),
    /// Remember which functions got probes, and which did not.
    NoteProbed(Probed),
    /// Remember which functions lost their probes.
    NoteTakenOff(Vec<engine::event::FunctionId>),
    /// Remember which have them again.
    NoteBackOn(Vec<engine::event::FunctionId>),
    /// New counts.
    ShowCounts(Box<crate::tui::LiveCounts>),
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

/// The state.
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
    /// ^C has reached the launched command, too.
    interrupted: bool,
    child_status: Option<ExitStatus>,
    failure: Option<Failure>,
    /// What is being typed.
    prompt: Option<Prompt>,
}

impl LoopState {
    /// Watches these processes.
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

    /// Why capturing ended, if it has.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.stop
    }

    /// How the launched command ended, if it has.
    pub fn child_status(&self) -> Option<ExitStatus> {
        self.child_status
    }

    /// Whether ^C has reached the launched command, too.
    pub fn command_was_interrupted(&self) -> bool {
        self.interrupted
    }

    /// What failed, if something did.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Processes of the target that have not ended.
    pub fn alive(&self) -> impl Iterator<Item = u32> + '_ {
        self.alive.iter().copied()
    }

    /// The launched command has ended like this.
    pub fn child_ended(&mut self, status: ExitStatus) {
        self.child_status = Some(status);
    }

    /// What to do about a message.
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
            Message::Report(snapshot) => self.report(snapshot),
            Message::HotFunctions(hot) if self.stop.is_none() => {
                vec![Effect::TryFunctions(hot, self.alive().collect())]
            }
            Message::Tallied(tally) if self.stop.is_none() => {
                vec![Effect::TryTallied(tally, self.alive().collect())]
            }
            Message::HotFunctions(_) | Message::Tallied(_) => vec![],
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
                // What this waits for otherwise may be what failed; threads are waited for after the loop.
                self.finished = true;
                self.leave(StopReason::Failed)
            }
        }
    }

    /// The process is gone, as /proc says: its `Exit` record may have been lost.
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
            // Keys go to the screen, not to the command: what comes here is for longpole.
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

    /// A key while a pattern is typed.
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
            // Missed: for an unknown process.
            ChangeKind::Mapped { .. } if change.pid == 0 => {
                let all: Vec<u32> = self.alive().collect();
                all.into_iter().flat_map(|pid| self.choose(ProcessChange { pid, ..change })).collect()
            }
            ChangeKind::Mapped { .. } if self.alive.contains(&change.pid) => self.choose(change),
            ChangeKind::Executed { .. } | ChangeKind::Mapped { .. } => vec![],
            // The record comes a moment before the process is gone, but it will not come back.
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

    /// Stops capturing, and leaves as soon as nothing is left to wait for.
    fn leave(&mut self, reason: StopReason) -> Vec<Effect> {
        let mut effects = self.stop(reason);
        if self.mode == Mode::Screen && !self.leaving {
            // No further report will be shown; detaching needs no screen.
            effects.splice(0..0, [Effect::SkipLastReport, Effect::CloseScreen]);
        } else if self.mode == Mode::Batch && reason == StopReason::Terminated {
            // A service manager waits for its end, and nobody for one more report.
            effects.insert(0, Effect::SkipLastReport);
        }
        self.leaving = true;
        effects.extend(self.leave_if_ready());
        effects
    }

    /// A file must be whole and `--once` needs its answer; a screen only has to be detached.
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
mod tests {
    use super::super::message::Placing;
    use super::*;
    use crate::tui::Snapshot;
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
    use std::sync::Arc;

    /// Effects as words.
    fn words(effects: &[Effect]) -> Vec<String> {
        let word = |effect: &Effect| format!("{effect:?}").split(['(', ' ', '{']).next().map(str::to_owned);
        effects.iter().filter_map(word).collect()
    }

    fn check(loop_state: &mut LoopState, message: Message, expected: &[&str]) {
        let text = format!("{message:?}");
        assert_eq!(words(&loop_state.handle(message)), expected, "on {text}");
    }

    fn change(pid: u32, kind: ChangeKind) -> Message {
        Message::Process(ProcessChange { pid, time_ns: 5, kind })
    }

    fn failed() -> Message {
        Message::Failed(Failure { part: "session file", text: "disk full".to_owned() })
    }

    #[test]
    fn a_recording_ends_once_on_the_first_reason() {
        for (message, reason) in [
            (Message::TimeUp, StopReason::TimeUp),
            (Message::Signal(libc::SIGINT), StopReason::User),
            (Message::Signal(libc::SIGTERM), StopReason::Terminated),
            (change(7, ChangeKind::Ended), StopReason::TargetEnded),
        ] {
            let mut loop_state = LoopState::new(Mode::Record, Relation::Attached, &[7], false);
            check(&mut loop_state, message, &["StopCapture"]);
            check(&mut loop_state, Message::TimeUp, &[]);
            assert_eq!(loop_state.stop_reason(), Some(reason));
            assert!(!loop_state.command_was_interrupted(), "nobody else was");
            check(&mut loop_state, Message::Finished, &["Leave"]);
        }
    }

    /// A user who ended a recording by ^C did not know that the command would die of it.
    #[test]
    fn an_interrupt_that_reaches_the_command_is_known() {
        for terminal in [true, false] {
            let mut loop_state = LoopState::new(Mode::Record, Relation::Launched { terminal }, &[7], false);
            assert!(!loop_state.command_was_interrupted());
            loop_state.handle(Message::Signal(libc::SIGINT));
            assert!(loop_state.command_was_interrupted(), "terminal: {terminal}");
            check(&mut loop_state, change(7, ChangeKind::Ended), &["StopCapture"]);
        }
        // Keys of the screen are longpole's.
        let mut loop_state = LoopState::new(Mode::Screen, Relation::Launched { terminal: true }, &[7], false);
        loop_state.handle(Message::Signal(libc::SIGINT));
        assert!(!loop_state.command_was_interrupted());
    }

    #[test]
    fn the_second_interrupt_aborts() {
        let mut loop_state = LoopState::new(Mode::Record, Relation::Attached, &[7], false);
        check(&mut loop_state, Message::Signal(libc::SIGINT), &["StopCapture"]);
        check(&mut loop_state, Message::Signal(libc::SIGTERM), &[]);
        check(&mut loop_state, Message::Signal(libc::SIGINT), &["Abort"]);
    }

    #[test]
    fn a_launched_command_decides_about_the_first_signal() {
        let relation = Relation::Launched { terminal: true };
        let mut loop_state = LoopState::new(Mode::Record, relation, &[7], false);
        check(&mut loop_state, Message::Signal(libc::SIGINT), &[]);
        check(&mut loop_state, change(7, ChangeKind::Ended), &["StopCapture"]);
        let mut deaf = LoopState::new(Mode::Record, Relation::Launched { terminal: false }, &[7], false);
        check(&mut deaf, Message::Signal(libc::SIGINT), &["Forward"]);
        check(&mut deaf, Message::Signal(libc::SIGINT), &["StopCapture"]);
        check(&mut deaf, Message::Signal(libc::SIGINT), &["Abort"]);
        let mut screen = LoopState::new(Mode::Screen, relation, &[7], false);
        check(&mut screen, Message::Signal(libc::SIGTERM), &["SkipLastReport", "CloseScreen", "StopCapture"]);
    }

    #[test]
    fn all_processes_must_end_before_the_recording_does() {
        let mut loop_state = LoopState::new(Mode::Record, Relation::Attached, &[7, 8], false);
        check(&mut loop_state, change(7, ChangeKind::Ended), &[]);
        check(&mut loop_state, change(9, ChangeKind::Ended), &[]);
        assert_eq!(words(&loop_state.gone(8)), ["StopCapture"]);
        assert_eq!(words(&loop_state.gone(8)), [] as [&str; 0]);
    }

    #[test]
    fn children_count_only_if_asked_for() {
        let fork = || change(20, ChangeKind::Forked { parent: 7 });
        let mut without = LoopState::new(Mode::Record, Relation::Attached, &[7], false);
        check(&mut without, fork(), &[]);
        check(&mut without, change(7, ChangeKind::Ended), &["StopCapture"]);

        let mut with = LoopState::new(Mode::Record, Relation::Attached, &[7], true);
        check(&mut with, fork(), &["ChooseFunctions"]);
        check(&mut with, change(7, ChangeKind::Ended), &["ChooseFunctions"]);
        check(&mut with, change(20, ChangeKind::Executed { by_leader: true }), &["ChooseFunctions"]);
        check(&mut with, change(21, ChangeKind::Forked { parent: 20 }), &["ChooseFunctions"]);
        check(&mut with, change(20, ChangeKind::Ended), &["ChooseFunctions"]);
        check(&mut with, change(21, ChangeKind::Ended), &["StopCapture"]);
    }

    #[test]
    fn strangers_are_left_alone() {
        let mut loop_state = LoopState::new(Mode::Record, Relation::Attached, &[7], true);
        check(&mut loop_state, change(31, ChangeKind::Forked { parent: 30 }), &[]);
        check(&mut loop_state, change(31, ChangeKind::Executed { by_leader: true }), &[]);
    }

    #[test]
    fn the_screen_stays_when_the_target_has_ended() {
        let mut loop_state = LoopState::new(Mode::Screen, Relation::Attached, &[7], false);
        check(&mut loop_state, change(7, ChangeKind::Ended), &["StopCapture", "ShowEnded"]);
        check(&mut loop_state, Message::Report(Arc::new(Snapshot::default())), &["ShowReport", "Draw"]);
        check(&mut loop_state, Message::Detached, &[]);
        check(&mut loop_state, Message::Finished, &[]);
        let quit = KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE);
        check(&mut loop_state, Message::Key(quit), &["SkipLastReport", "CloseScreen", "Leave"]);
    }

    #[test]
    fn quitting_detaches_first() {
        let mut loop_state = LoopState::new(Mode::Screen, Relation::Attached, &[7], false);
        let quit = KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE);
        check(&mut loop_state, Message::Key(quit), &["SkipLastReport", "CloseScreen", "StopCapture"]);
        check(&mut loop_state, Message::Key(quit), &[]);
        check(&mut loop_state, Message::Detached, &["Leave"]);
        assert_eq!(loop_state.stop_reason(), Some(StopReason::User));
    }

    #[test]
    fn once_answers_once() {
        let mut loop_state = LoopState::new(Mode::Once, Relation::Attached, &[7], false);
        check(
            &mut loop_state,
            Message::Report(Arc::default()),
            &["ShowReport", "SkipLastReport", "StopCapture"],
        );
        check(&mut loop_state, Message::Report(Arc::default()), &[]);
        check(&mut loop_state, Message::Detached, &["Leave"]);
    }

    #[test]
    fn a_batch_has_every_report_and_the_last_one_of_a_target_that_ended() {
        let mut loop_state = LoopState::new(Mode::Batch, Relation::Attached, &[7], false);
        for _ in 0..3 {
            check(&mut loop_state, Message::Report(Arc::default()), &["ShowReport"]);
        }
        check(&mut loop_state, change(7, ChangeKind::Ended), &["StopCapture"]);
        check(&mut loop_state, Message::Detached, &[]);
        check(&mut loop_state, Message::Report(Arc::default()), &["ShowReport"]);
        check(&mut loop_state, Message::Finished, &["Leave"]);
        let mut loop_state = LoopState::new(Mode::Batch, Relation::Attached, &[7], false);
        check(&mut loop_state, Message::Signal(libc::SIGTERM), &["SkipLastReport", "StopCapture"]);
        check(&mut loop_state, Message::Finished, &["Leave"]);
        // The reader is gone.
        let mut loop_state = LoopState::new(Mode::Batch, Relation::Attached, &[7], false);
        check(&mut loop_state, Message::ReaderGone, &["SkipLastReport", "StopCapture"]);
        check(&mut loop_state, Message::Finished, &["Leave"]);
    }

    #[test]
    fn once_waits_for_the_report_of_a_target_that_ended_early() {
        let mut loop_state = LoopState::new(Mode::Once, Relation::Attached, &[7], false);
        check(&mut loop_state, change(7, ChangeKind::Ended), &["StopCapture"]);
        check(&mut loop_state, Message::Detached, &[]);
        check(&mut loop_state, Message::Report(Arc::default()), &["ShowReport", "SkipLastReport", "Leave"]);
    }

    #[test]
    fn a_recording_that_was_played_to_its_end_stays_on_the_screen() {
        let mut loop_state = LoopState::new(Mode::Screen, Relation::Attached, &[], false);
        check(&mut loop_state, Message::Detached, &["ShowEnded"]);
        assert_eq!(loop_state.stop_reason(), Some(StopReason::SourceEnded));
        let quit = KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE);
        check(&mut loop_state, Message::Key(quit), &["SkipLastReport", "CloseScreen", "Leave"]);
    }

    #[test]
    fn no_new_probes_while_stopping() {
        let mut loop_state = LoopState::new(Mode::Record, Relation::Attached, &[7], true);
        check(&mut loop_state, Message::TimeUp, &["StopCapture"]);
        check(&mut loop_state, change(7, ChangeKind::Executed { by_leader: true }), &[]);
        let chosen = Chosen {
            pid: 7,
            missing_since_ns: 0,
            functions: Err(crate::live::Unprobed::Ended),
            placing: Placing::Instead,
        };
        check(&mut loop_state, Message::Chosen(chosen), &[]);
    }

    #[test]
    fn a_pattern_is_typed_and_asked_for() {
        let mut loop_state = LoopState::new(Mode::Screen, Relation::Attached, &[7, 9], false);
        let press = |code| Message::Key(KeyEvent::new(code, KeyModifiers::NONE));
        check(&mut loop_state, press(KeyCode::Char('f')), &["ShowPrompt", "Draw"]);
        // None of these is a command now.
        for key in ['q', '*', 'x'] {
            check(&mut loop_state, press(KeyCode::Char(key)), &["ShowPrompt", "Draw"]);
        }
        check(&mut loop_state, press(KeyCode::Backspace), &["ShowPrompt", "Draw"]);
        let effects = loop_state.handle(press(KeyCode::Enter));
        assert_eq!(words(&effects), ["ShowPrompt", "FindFunctions", "Draw"]);
        let Some(Effect::FindFunctions(request, pids)) = effects.get(1) else { panic!("{effects:?}") };
        assert_eq!(
            (request, &pids[..]),
            (&FunctionRequest { what: PromptKind::Probe, pattern: "q*".into() }, &[7, 9][..])
        );
        check(&mut loop_state, press(KeyCode::Char('u')), &["ShowPrompt", "Draw"]);
        check(&mut loop_state, press(KeyCode::Esc), &["ShowPrompt", "Draw"]);
        check(&mut loop_state, press(KeyCode::Char('q')), &["SkipLastReport", "CloseScreen", "StopCapture"]);
    }

    #[test]
    fn what_was_found_is_probed_and_what_was_meant_loses_its_probes() {
        let mut loop_state = LoopState::new(Mode::Screen, Relation::Attached, &[7], false);
        let chosen = Chosen {
            pid: 7,
            missing_since_ns: 0,
            functions: Ok(Default::default()),
            placing: Placing::Wanted,
        };
        let granted = || Granted {
            chosen: vec![chosen.clone()],
            off: vec![3],
            sentence: "done".into(),
            ..Granted::default()
        };
        check(&mut loop_state, Message::Granted(granted()), &["ShowAnswer", "Draw", "AddProbes", "TakeOff"]);
        check(&mut loop_state, Message::TimeUp, &["SkipLastReport", "CloseScreen", "StopCapture"]);
        check(&mut loop_state, Message::Granted(granted()), &["ShowAnswer", "Draw"]);
    }

    #[test]
    fn libraries_are_looked_for_in_processes_that_count() {
        let mut loop_state = LoopState::new(Mode::Record, Relation::Attached, &[7, 8], false);
        let mapped = |pid| change(pid, ChangeKind::Mapped { libc: false });
        check(&mut loop_state, mapped(7), &["ChooseFunctions"]);
        check(&mut loop_state, mapped(30), &[]);
        check(&mut loop_state, mapped(0), &["ChooseFunctions", "ChooseFunctions"]);
    }

    #[test]
    fn the_first_failure_is_the_one_to_tell() {
        let mut loop_state = LoopState::new(Mode::Screen, Relation::Attached, &[7], false);
        check(&mut loop_state, failed(), &["SkipLastReport", "CloseScreen", "StopCapture", "Leave"]);
        let other = Failure { part: "analysis", text: "later".to_owned() };
        check(&mut loop_state, Message::Failed(other), &["Leave"]);
        assert_eq!(loop_state.failure().map(|f| f.part), Some("session file"));
    }
}
