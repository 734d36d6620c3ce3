//! Pictures of kept recordings, and the effects of keys.

use super::*;
use crate::cell::width;
use crate::live::{Asked, snapshot};
use crate::present::style::{Style, spans};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use engine::event::ThreadFact;
use engine::limit::{Limit, LimitKind};
use engine::program::{CauseKind, Endpoint, TimePart};
use engine::report::{Cpus, Finding};
use longpole_tests::check_golden;
use std::sync::Arc;
use std::time::Duration;

mod requests;

const PLAIN: Style = Style { colour: false, unicode: true, width: 80 };

fn asked() -> Asked {
    let counts = [1, 2, 4, 8, 16].into_iter().filter_map(Cpus::count).chain([Cpus::Infinite]);
    Asked { cpus: counts.collect(), recorded_cpus: Some(2), wish: CpuWish::default(), per: None }
}

/// A recording in the form in which `top` would show it.
fn recorded(name: &str) -> Snapshot {
    let path = format!("{}/../tests/data/recordings/{name}.lp", env!("CARGO_MANIFEST_DIR"));
    let (recording, _) = recording::read(path.as_ref()).expect("a session");
    Snapshot { took: Duration::ZERO, ..snapshot(&recording, &asked(), false) }
}

/// A recording with one function that limits and one that hardly does, with exact shares.
fn two_functions() -> Snapshot {
    let mut snapshot = recorded("store");
    for result in &mut snapshot.report.results {
        for row in &mut result.functions {
            let share = match &row.function[..] {
                "digest_row" => 0.7,
                "parse_row" => 0.2,
                _ => 0.0,
            };
            (row.tet_ns, row.tet_error_ns) = (share * result.time_ns, None);
        }
    }
    snapshot
}

fn showing(snapshot: Snapshot) -> State {
    let mut state = State::new("store (pid 4242)".to_owned());
    state.elapsed = Duration::from_secs(94);
    state.show(Arc::new(snapshot));
    state.elapsed += Duration::from_secs(3);
    state
}

fn text(state: &mut State, columns: usize, lines: usize) -> String {
    let style = Style { width: columns, ..PLAIN };
    let picture = picture(state, &style, lines);
    assert!(picture.len() <= lines, "{columns} x {lines}: {picture:?}");
    picture.iter().map(|line| format!("{line}\n")).collect()
}

fn press(state: &mut State, key: KeyCode) {
    let action = action_of(KeyEvent::new(key, KeyModifiers::NONE)).expect("an action");
    assert!(state.apply(action), "{key:?} leaves");
}

/// First word of the selected row.
fn chosen(state: &mut State) -> String {
    let lines = picture(state, &Style { colour: true, ..PLAIN }, 40);
    let mut rows = lines.iter().flat_map(|line| spans(line));
    let row = rows.rfind(|(paint, _)| *paint == crate::present::style::Paint::Selected);
    row.map_or(String::new(), |(_, row)| row.split_whitespace().next().unwrap_or_default().to_owned())
}

fn check(name: &str, state: &mut State) {
    for (columns, lines) in [(40, 10), (80, 24), (120, 40)] {
        let text = text(state, columns, lines);
        assert!(text.lines().all(|line| width(line) <= columns), "{columns} columns:\n{text}");
        let path = format!("{}/src/tui/snapshots/{name}-{columns}x{lines}.txt", env!("CARGO_MANIFEST_DIR"));
        check_golden(path, &text);
    }
}

#[test]
fn the_screens_of_kept_recordings_are_their_snapshots() {
    for name in ["store", "pipeline", "timers", "attached"] {
        check(name, &mut showing(recorded(name)));
    }
}

/// The guide shows the same screen.
#[test]
fn the_guide_has_the_current_screen_of_top() {
    let screen = text(&mut showing(recorded("store")), 80, 24);
    let screen: Vec<&str> = screen.lines().map(str::trim_end).collect();
    let guide = include_str!("../../../docs/guide.md");
    assert!(guide.contains(screen.join("\n").trim_end()), "docs/guide.md lacks:\n{}", screen.join("\n"));
}

#[test]
fn the_other_tables_and_pages_of_top_are_their_snapshots() {
    let mut state = showing(recorded("store"));
    press(&mut state, KeyCode::Char('2'));
    check("locks", &mut state);
    press(&mut state, KeyCode::Enter);
    check("holders", &mut state);
    press(&mut state, KeyCode::Char('4'));
    check("waits", &mut state);
    press(&mut state, KeyCode::Char('5'));
    check("parallelism", &mut state);
    press(&mut state, KeyCode::Enter);
    check("parallelism-row", &mut state);
    press(&mut state, KeyCode::Char('1'));
    press(&mut state, KeyCode::Enter);
    check("callers", &mut state);
    press(&mut state, KeyCode::Char('?'));
    check("help", &mut state);
    let help = text(&mut state, 80, 24);
    assert!(help.contains("The same screen") && help.contains("A row passes another"), "all of it: {help}");
}

/// The lock that three of four threads wait for is in the first lines.
#[test]
fn the_screen_shows_the_limit_and_the_fix_of_the_report() {
    let mut state = showing(recorded("store"));
    let text = text(&mut state, 80, 24);
    assert!(text.contains("LIMIT  lock registry.gate: 2 of 4 threads wait for it."), "{text}");
    assert!(text.contains("FIX    ") && text.contains("split the lock in 8"), "{text}");
    assert!(text.contains("[1 functions]") && text.contains("\ndigest_row"), "{text}");
    assert!(!text.contains("clone3") && !text.contains("start_thread"), "{text}");
    assert!(text.contains("last ") && text.contains("3 s ago on 2 CPUs"), "{text}");
}

#[test]
fn tab_and_number_keys_switch_tables() {
    let mut state = showing(recorded("store"));
    for title in ["LOCKS", "THREADS", "WAITS", "MEASURED", "FUNCTIONS"] {
        press(&mut state, KeyCode::Tab);
        let text = text(&mut state, 80, 24);
        assert!(text.contains(&format!("\n{title} ")), "{title}:\n{text}");
    }
    press(&mut state, KeyCode::BackTab);
    assert!(text(&mut state, 80, 24).contains("\nMEASURED "));
    press(&mut state, KeyCode::Char('3'));
    assert!(text(&mut state, 80, 24).contains("\nTHREADS "));
}

#[test]
fn arrow_keys_choose_the_cpu_count_of_the_next_analysis() {
    let mut state = showing(recorded("store"));
    assert_eq!((state.cpus(), state.wish().get()), (Cpus::count(2), None));
    assert!(text(&mut state, 80, 24).contains("[2]"));
    press(&mut state, KeyCode::Right);
    assert!(text(&mut state, 80, 24).contains("[4]"));
    assert_eq!(state.wish().get(), Cpus::count(4));
    for _ in 0..20 {
        press(&mut state, KeyCode::Right);
    }
    assert_eq!(state.wish().get(), Some(Cpus::Infinite));
    assert!(text(&mut state, 80, 24).contains("[∞]"));
    for _ in 0..20 {
        press(&mut state, KeyCode::Left);
    }
    assert_eq!(state.wish().get(), Some(Cpus::ONE));
    // The next analysis is for that CPU count.
    let path = format!("{}/../tests/data/recordings/store.lp", env!("CARGO_MANIFEST_DIR"));
    let (recording, _) = recording::read(path.as_ref()).expect("a session");
    state.show(Arc::new(snapshot(&recording, &Asked { wish: state.wish(), ..asked() }, false)));
    assert!(text(&mut state, 80, 24).contains("LIMIT  on 1 CPU: "));
}

#[test]
fn the_chosen_row_stays_chosen_when_it_moves() {
    let mut snapshot = two_functions();
    let mut state = showing(snapshot.clone());
    assert_eq!(chosen(&mut state), "digest_row");
    press(&mut state, KeyCode::Down);
    assert_eq!(chosen(&mut state), "parse_row");
    for result in &mut snapshot.report.results {
        for row in &mut result.functions {
            if row.function == "parse_row" {
                row.tet_ns = 0.95 * result.time_ns;
            }
        }
    }
    for _ in 0..4 {
        state.show(Arc::new(snapshot.clone()));
    }
    let text = text(&mut state, 80, 24);
    assert!(text.find("\nparse_row") < text.find("\ndigest_row"), "it has gone up:\n{text}");
    assert_eq!(chosen(&mut state), "parse_row");
    for _ in 0..5 {
        press(&mut state, KeyCode::Up);
    }
    assert_eq!(chosen(&mut state), "parse_row");
    press(&mut state, KeyCode::End);
    assert_eq!(chosen(&mut state), "digest_row");
}

/// The table shows the measured run by default, and the predicted run on the CPU count that the user chose.
#[test]
fn the_parallelism_table_is_for_the_measured_run_or_the_chosen_cpus() {
    let mut state = showing(recorded("store"));
    press(&mut state, KeyCode::Char('5'));
    let shown = text(&mut state, 80, 24);
    assert!(shown.contains("\nMEASURED ") && shown.contains("BUSY CPUs"), "{shown}");
    assert!(
        shown.contains("Split registry.gate, or hold it for a shorter time"),
        "what to do first: {shown}"
    );
    let gate = state.shown().map(|shown| shown.parallelism.rows.clone()).expect("a snapshot");
    let gate = gate.iter().find(|row| row.name.as_deref() == Some("mutex registry.gate")).expect("the lock");
    assert!(gate.own.blocked.ns > 1_000_000_000, "three of four threads wait for a second: {gate:?}");
    assert_eq!(chosen(&mut state), "mutex");
    press(&mut state, KeyCode::Home);
    assert!(text(&mut state, 80, 24).contains(" % of the run."), "the main thread's");
    for _ in 0..3 {
        press(&mut state, KeyCode::Right);
    }
    let path = format!("{}/../tests/data/recordings/store.lp", env!("CARGO_MANIFEST_DIR"));
    let (recording, _) = recording::read(path.as_ref()).expect("a session");
    state.show(Arc::new(snapshot(&recording, &Asked { wish: state.wish(), ..asked() }, false)));
    assert!(text(&mut state, 80, 24).contains("\n16 CPUs "));
}

#[test]
fn a_filter_applies_while_it_is_typed_and_escape_removes_it() {
    let mut state = showing(two_functions());
    state.prompt = Some(Prompt { what: PromptKind::Filter, text: "PARSE".to_owned() });
    let typed = text(&mut state, 80, 24);
    assert!(typed.contains("\nparse_row") && !typed.contains("\ndigest_row"), "{typed}");
    assert!(typed.contains("rows with: PARSE_"), "{typed}");
    state.prompt = None;
    state.set_filter("nobody".to_owned());
    assert!(text(&mut state, 80, 24).contains("no row's name contains that"));
    press(&mut state, KeyCode::Enter);
    press(&mut state, KeyCode::Esc);
    assert!(text(&mut state, 80, 24).contains("\ndigest_row"));
}

#[test]
fn enter_opens_a_row_and_escape_closes_it() {
    let mut state = showing(recorded("store"));
    press(&mut state, KeyCode::Enter);
    let opened = text(&mut state, 80, 30);
    assert!(opened.contains("called by") && opened.contains("store_row"), "{opened}");
    press(&mut state, KeyCode::Esc);
    assert!(text(&mut state, 80, 30).contains("\nFUNCTIONS"));
    for table in ['2', '3', '4', '5'] {
        press(&mut state, KeyCode::Char(table));
        let before = text(&mut state, 80, 30);
        press(&mut state, KeyCode::Enter);
        assert_ne!(text(&mut state, 80, 30), before, "table {table}");
    }
    press(&mut state, KeyCode::Char('n'));
    assert!(text(&mut state, 80, 30).contains("For your information"));
}

#[test]
fn pause_freezes_the_screen_and_resume_shows_the_newest() {
    let snapshot = recorded("store");
    let mut state = showing(snapshot.clone());
    press(&mut state, KeyCode::Char('p'));
    for window_ns in [1, 2, 3_000_000_000] {
        state.show(Arc::new(Snapshot { window_ns, ..snapshot.clone() }));
    }
    let paused = text(&mut state, 80, 24);
    assert!(paused.contains("PAUSED") && !paused.contains("last 3.00 s"), "{paused}");
    press(&mut state, KeyCode::Char('p'));
    assert!(text(&mut state, 80, 24).contains("last 3.00 s"));
}

#[test]
fn bracket_keys_show_earlier_screens_and_return_to_the_newest() {
    let snapshot = Snapshot { recording: Some(Arc::default()), ..recorded("store") };
    let mut state = State::new("store (pid 4242)".to_owned());
    press(&mut state, KeyCode::Char('['));
    let show = |state: &mut State, second: u64| {
        state.elapsed = Duration::from_secs(second);
        state.show(Arc::new(Snapshot { window_ns: second * 1_000_000_000, ..snapshot.clone() }));
    };
    for second in 10..=52 {
        show(&mut state, second);
    }
    assert!(text(&mut state, 80, 24).contains("last 52.0 s on") && state.recording().is_some());
    press(&mut state, KeyCode::Char('['));
    press(&mut state, KeyCode::Char('['));
    show(&mut state, 53);
    let back = text(&mut state, 80, 24);
    assert!(back.contains("last 45.0 s, 8 s ago on") && back.contains("PAUSED"), "{back}");
    assert_eq!(state.recording(), None, "events of one screen are memory enough");
    press(&mut state, KeyCode::Char(']'));
    assert!(text(&mut state, 80, 24).contains("last 50.0 s, 3 s ago on"));
    press(&mut state, KeyCode::Char(']'));
    let newest = text(&mut state, 80, 24);
    assert!(newest.contains("last 53.0 s on") && !newest.contains("PAUSED"), "{newest}");
    press(&mut state, KeyCode::Char('p'));
    press(&mut state, KeyCode::Char('['));
    press(&mut state, KeyCode::Char('p'));
    assert!(text(&mut state, 80, 24).contains("last 53.0 s on"));
    for _ in 0..100 {
        press(&mut state, KeyCode::Char('['));
    }
    assert!(text(&mut state, 80, 24).contains("last 10.0 s, 43 s ago on"));
}

#[test]
fn busy_cpus_of_the_last_minutes_are_a_line_of_the_screen() {
    use engine::event::Overhead;
    let mut state = showing(recorded("store"));
    for second in 0..=60u64 {
        let target_ns = if second > 30 { 2 * second - 30 } else { second } * 1_000_000_000;
        let overhead = Overhead { target_ns, wall_ns: second * 1_000_000_000, ..Overhead::default() };
        state.count(&LiveCounts { overhead: Some(overhead), ..LiveCounts::default() });
    }
    let shown = text(&mut state, 80, 40);
    assert!(shown.contains("\nbusy   2.00 of 2 CPUs ▅▅▅▅▅▅██████ 60.0 s\n"), "{shown}");
    assert!(text(&mut state, 30, 40).lines().all(|line| width(line) <= 30));
}

/// A server's screen after reports with these requests/s, 10 s apart.
fn serving(rates: &[f64]) -> State {
    let part =
        |kind, name: &str, share| TimePart { kind, name: name.to_owned(), share, ..TimePart::default() };
    let mut state = State::new("store (pid 4242)".to_owned());
    let snapshot = recorded("store");
    for (number, per_second) in (1..).zip(rates) {
        let end = Endpoint {
            served: true,
            name: "port 80".to_owned(),
            count: 1_000,
            per_second: *per_second,
            open: 3.0,
            mean_ns: 390_000.0,
            p99_ns: 560_000,
            spent: vec![
                part(CauseKind::Lock, "registry.gate", 0.7),
                part(CauseKind::Computing, "digest_row", 0.3),
            ],
            ..Endpoint::default()
        };
        let mut snapshot = snapshot.clone();
        snapshot.limits.traffic = vec![end];
        state.elapsed = Duration::from_secs(10 * number);
        state.show(Arc::new(snapshot));
    }
    state
}

#[test]
fn a_server_s_screen_has_its_requests_and_their_rate_over_time() {
    let shown = text(&mut serving(&[500.0, 1_000.0]), 80, 40);
    let expected = "
SERVES 1,000 requests/s, port 80: 3.0 open at a time, 390 µs each, 99 % within
       560 µs
SPENDS a request's time: 70 % registry.gate, 30 % computing, most in digest_row
rate   at most 1,000 requests/s ▅█ 10.0 s

LIMIT ";
    assert!(shown.contains(expected), "{shown}");
    let first = text(&mut serving(&[500.0]), 80, 40);
    assert!(first.contains("\nSERVES ") && !first.contains("\nrate "), "one report is no history: {first}");
    let small = text(&mut serving(&[500.0, 1_000.0]), 80, 16);
    assert!(small.contains("\nSERVES ") && small.contains("\nFIX "), "{small}");
    assert!(!small.contains("\nSPENDS ") && !small.contains("\nrate "), "{small}");
    assert!(!text(&mut showing(recorded("store")), 80, 40).contains("SERVES"), "no server");
    assert!(text(&mut serving(&[1.0, 2.0]), 30, 40).lines().all(|line| width(line) <= 30));
}

#[test]
fn only_the_quit_key_leaves_and_the_last_screen_stays() {
    let mut state = showing(recorded("store"));
    assert!(!state.apply(Action::Quit));
    press(&mut state, KeyCode::Char('?'));
    let last = last_picture(&mut state, &PLAIN, 24).join("\n");
    assert!(last.contains("LIMIT  lock registry.gate") && last.contains("\ndigest_row"), "{last}");
    assert!(!last.contains("q quit"), "{last}");
    let mut empty = State::new(String::new());
    assert!(last_picture(&mut empty, &PLAIN, 24).is_empty());
}

#[test]
fn screens_before_the_first_report_and_after_the_end_are_their_snapshots() {
    let mut state = State::new("store (pid 4242)".to_owned());
    state.remark = Some("the program's output goes to /tmp/longpole-top-1.log".to_owned());
    check("waiting", &mut state);
    for key in [KeyCode::Down, KeyCode::End, KeyCode::Enter, KeyCode::Right, KeyCode::Tab, KeyCode::Char('n')]
    {
        press(&mut state, key);
        text(&mut state, 80, 24);
    }
    let mut state = showing(recorded("store"));
    state.phase = Phase::Ended("store (pid 4242) has ended. The last report stays; q quits.".to_owned());
    check("ended", &mut state);
}

#[test]
fn an_empty_snapshot_is_shown_without_a_panic() {
    let nothing = Limit::known(Cpus::ONE, 0.0, LimitKind::Nothing);
    let mut empty = Snapshot { threads: 1, window_ns: 5_000_000, ..Snapshot::default() };
    empty.limits.at = vec![nothing];
    let mut state = showing(empty);
    for table in ['1', '2', '3', '4', '5'] {
        press(&mut state, KeyCode::Char(table));
        press(&mut state, KeyCode::Enter);
        text(&mut state, 80, 24);
    }
    assert!(text(&mut state, 80, 24).contains("LIMIT  nothing to make faster"));
    let facts = engine::event::Facts {
        threads: (1..1_000).map(|tid| ThreadFact { tid, pid: 1, ..ThreadFact::default() }).collect(),
        ..engine::event::Facts::default()
    };
    let asleep = engine::event::Recording { facts, ..engine::event::Recording::default() };
    text(&mut showing(snapshot(&asleep, &asked(), false)), 80, 24);
}

/// Names that attack the terminal or are too long.
fn hostile() -> State {
    let evil = "evil\u{1b}[2J\u{1b}]0;owned\u{7}name\r\n\u{202e}".to_owned();
    let mut snapshot = recorded("store");
    for result in &mut snapshot.report.results {
        if let [first, second, third, ..] = &mut result.functions[..] {
            first.function.clone_from(&evil);
            second.function = format!("very::{}::end_of_long_name", "long::".repeat(400));
            third.function = "関数名前関数名前関数名前関数名前関数名前".to_owned();
            first.location = Some(evil.clone());
        }
    }
    for of in &mut snapshot.neighbours {
        of.function.clone_from(&evil);
        of.callers.push((evil.clone(), 1));
    }
    for lock in &mut snapshot.limits.locks {
        lock.lock.clone_from(&evil);
        lock.under.iter_mut().for_each(|part| part.function.clone_from(&evil));
    }
    for limit in &mut snapshot.limits.at {
        limit.kind = LimitKind::Device { device: evil.clone(), of: Some(evil.clone()) };
    }
    snapshot.limits.threads.iter_mut().for_each(|of| of.names = vec![evil.clone(); 3]);
    for row in &mut snapshot.parallelism.rows {
        row.name = Some(evil.clone());
        row.callers.iter_mut().chain(&mut row.callees).for_each(|link| link.name = Some(evil.clone()));
    }
    snapshot.report.recorded.waits.iter_mut().for_each(|wait| wait.name = evil.as_str().into());
    let spent = vec![TimePart { name: evil.clone(), share: 1.0, ..TimePart::default() }];
    let end = Endpoint { served: true, name: evil.clone(), count: 100, spent, ..Endpoint::default() };
    snapshot.limits.traffic = vec![end];
    snapshot.report.findings = vec![Finding::Other { kind: "deadlock".to_owned(), text: evil.clone() }];
    let mut state = showing(snapshot);
    state.subject.clone_from(&evil);
    state.remark = Some(evil.clone());
    state.phase = Phase::Ended(evil.clone());
    state.filter = "e".to_owned();
    state
}

#[test]
fn hostile_names_are_safe_and_every_screen_size_fits() {
    let mut first = hostile();
    for unicode in [true, false] {
        for columns in [1, 7, 20, 40, 80, 500] {
            for lines in [1, 2, 5, 10, 24] {
                for keys in ["", "2", "3", "4", "5", "1\n", "2\n", "3\n", "4\n", "5\n", "?", "n"] {
                    let mut state = first.clone();
                    for key in keys.chars() {
                        press(&mut state, if key == '\n' { KeyCode::Enter } else { KeyCode::Char(key) });
                    }
                    let style = Style { unicode, width: columns, ..PLAIN };
                    let picture = picture(&mut state, &style, lines);
                    let all = picture.concat();
                    assert!(!all.chars().any(|c| c.is_control() || c == '\u{202e}'), "{all:?}");
                    assert!(unicode || all.is_ascii(), "{all:?}");
                    assert!(picture.len() <= lines, "{columns} x {lines}");
                    let too_long = picture.iter().find(|line| width(line) > columns);
                    assert!(too_long.is_none(), "{columns}, {keys:?}: {too_long:?}");
                }
            }
        }
    }
    let last = last_picture(&mut first, &PLAIN, 24).concat();
    assert!(!last.chars().any(char::is_control), "{last:?}");
}
