//! Messages in, effects out.

use super::super::message::{Chosen, Placing};
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
fn a_recording_ends_once_with_the_first_reason() {
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

/// A user who ends a recording by ^C must know whether the command gets the signal, too.
#[test]
fn an_interrupt_that_a_launched_command_gets_too_is_remembered() {
    for terminal in [true, false] {
        let mut loop_state = LoopState::new(Mode::Record, Relation::Launched { terminal }, &[7], false);
        assert!(!loop_state.command_was_interrupted());
        loop_state.handle(Message::Signal(libc::SIGINT));
        assert!(loop_state.command_was_interrupted(), "terminal: {terminal}");
        check(&mut loop_state, change(7, ChangeKind::Ended), &["StopCapture"]);
    }
    // With a screen, ^C goes only to longpole.
    let mut loop_state = LoopState::new(Mode::Screen, Relation::Launched { terminal: true }, &[7], false);
    loop_state.handle(Message::Signal(libc::SIGINT));
    assert!(!loop_state.command_was_interrupted());
}

#[test]
fn the_second_interrupt_aborts_a_recording() {
    let mut loop_state = LoopState::new(Mode::Record, Relation::Attached, &[7], false);
    check(&mut loop_state, Message::Signal(libc::SIGINT), &["StopCapture"]);
    check(&mut loop_state, Message::Signal(libc::SIGTERM), &[]);
    check(&mut loop_state, Message::Signal(libc::SIGINT), &["Abort"]);
}

#[test]
fn a_launched_command_handles_the_first_signal_itself() {
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
fn a_recording_ends_when_all_its_processes_have_ended() {
    let mut loop_state = LoopState::new(Mode::Record, Relation::Attached, &[7, 8], false);
    check(&mut loop_state, change(7, ChangeKind::Ended), &[]);
    check(&mut loop_state, change(9, ChangeKind::Ended), &[]);
    assert_eq!(words(&loop_state.gone(8)), ["StopCapture"]);
    assert_eq!(words(&loop_state.gone(8)), [] as [&str; 0]);
}

#[test]
fn children_keep_a_recording_running_only_with_children_recorded() {
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
fn events_of_unknown_processes_have_no_effect() {
    let mut loop_state = LoopState::new(Mode::Record, Relation::Attached, &[7], true);
    check(&mut loop_state, change(31, ChangeKind::Forked { parent: 30 }), &[]);
    check(&mut loop_state, change(31, ChangeKind::Executed { by_leader: true }), &[]);
}

#[test]
fn the_screen_stays_open_after_the_target_has_ended() {
    let mut loop_state = LoopState::new(Mode::Screen, Relation::Attached, &[7], false);
    check(&mut loop_state, change(7, ChangeKind::Ended), &["StopCapture", "ShowEnded"]);
    check(&mut loop_state, Message::Report(Arc::new(Snapshot::default())), &["ShowReport", "Draw"]);
    check(&mut loop_state, Message::Detached, &[]);
    check(&mut loop_state, Message::Finished, &[]);
    let quit = KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE);
    check(&mut loop_state, Message::Key(quit), &["SkipLastReport", "CloseScreen", "Leave"]);
}

#[test]
fn quitting_the_screen_stops_the_capture_before_leaving() {
    let mut loop_state = LoopState::new(Mode::Screen, Relation::Attached, &[7], false);
    let quit = KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE);
    check(&mut loop_state, Message::Key(quit), &["SkipLastReport", "CloseScreen", "StopCapture"]);
    check(&mut loop_state, Message::Key(quit), &[]);
    check(&mut loop_state, Message::Detached, &["Leave"]);
    assert_eq!(loop_state.stop_reason(), Some(StopReason::User));
}

#[test]
fn top_once_shows_one_report_and_leaves() {
    let mut loop_state = LoopState::new(Mode::Once, Relation::Attached, &[7], false);
    check(&mut loop_state, Message::Report(Arc::default()), &["ShowReport", "SkipLastReport", "StopCapture"]);
    check(&mut loop_state, Message::Report(Arc::default()), &[]);
    check(&mut loop_state, Message::Detached, &["Leave"]);
}

#[test]
fn a_batch_shows_every_report_and_the_last_one_after_the_target_ended() {
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
    // The output has no reader any more.
    let mut loop_state = LoopState::new(Mode::Batch, Relation::Attached, &[7], false);
    check(&mut loop_state, Message::ReaderGone, &["SkipLastReport", "StopCapture"]);
    check(&mut loop_state, Message::Finished, &["Leave"]);
}

#[test]
fn top_once_shows_the_report_of_a_target_that_ended_early() {
    let mut loop_state = LoopState::new(Mode::Once, Relation::Attached, &[7], false);
    check(&mut loop_state, change(7, ChangeKind::Ended), &["StopCapture"]);
    check(&mut loop_state, Message::Detached, &[]);
    check(&mut loop_state, Message::Report(Arc::default()), &["ShowReport", "SkipLastReport", "Leave"]);
}

#[test]
fn a_replayed_recording_stays_on_the_screen_at_its_end() {
    let mut loop_state = LoopState::new(Mode::Screen, Relation::Attached, &[], false);
    check(&mut loop_state, Message::Detached, &["ShowEnded"]);
    assert_eq!(loop_state.stop_reason(), Some(StopReason::SourceEnded));
    let quit = KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE);
    check(&mut loop_state, Message::Key(quit), &["SkipLastReport", "CloseScreen", "Leave"]);
}

#[test]
fn a_stopping_recording_attaches_no_new_probes() {
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
fn a_pattern_typed_at_the_prompt_is_searched_in_all_targets() {
    let mut loop_state = LoopState::new(Mode::Screen, Relation::Attached, &[7, 9], false);
    let press = |code| Message::Key(KeyEvent::new(code, KeyModifiers::NONE));
    check(&mut loop_state, press(KeyCode::Char('f')), &["ShowPrompt", "Draw"]);
    // While the user types a pattern, none of these keys is a command.
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
fn found_functions_get_probes_and_excluded_ones_lose_theirs() {
    let mut loop_state = LoopState::new(Mode::Screen, Relation::Attached, &[7], false);
    let chosen =
        Chosen { pid: 7, missing_since_ns: 0, functions: Ok(Default::default()), placing: Placing::Wanted };
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
fn a_new_mapping_is_searched_only_in_recorded_processes() {
    let mut loop_state = LoopState::new(Mode::Record, Relation::Attached, &[7, 8], false);
    let mapped = |pid| change(pid, ChangeKind::Mapped { libc: false });
    check(&mut loop_state, mapped(7), &["ChooseFunctions"]);
    check(&mut loop_state, mapped(30), &[]);
    check(&mut loop_state, mapped(0), &["ChooseFunctions", "ChooseFunctions"]);
}

#[test]
fn the_first_failure_is_the_one_reported() {
    let mut loop_state = LoopState::new(Mode::Screen, Relation::Attached, &[7], false);
    check(&mut loop_state, failed(), &["SkipLastReport", "CloseScreen", "StopCapture", "Leave"]);
    let other = Failure { part: "analysis", text: "later".to_owned() };
    check(&mut loop_state, Message::Failed(other), &["Leave"]);
    assert_eq!(loop_state.failure().map(|f| f.part), Some("session file"));
}
