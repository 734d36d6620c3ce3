//! Pictures of the screen at fixed sizes, kept in `snapshots/`. `LONGPOLE_BLESS=1` writes them anew.

use super::draw;
use crate::tui::{Action, Phase, Snapshot, State, Theme, samples};
use engine::event::LossCounts;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const SIZES: [(u16, u16); 2] = [(80, 24), (160, 40)];

const THEME: Theme = Theme { colours: true, unicode: true };

fn render(state: &mut State, columns: u16, lines: u16) -> Buffer {
    render_as(state, columns, lines, THEME)
}

fn render_as(state: &mut State, columns: u16, lines: u16, theme: Theme) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(columns, lines)).expect("test terminal");
    state.set_page_rows(super::table_rows(state, columns, lines));
    terminal.draw(|frame| draw(frame, state, theme)).expect("draw");
    terminal.backend().buffer().clone()
}

fn text(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width);
    let mut out = String::new();
    for line in buffer.content().chunks(width) {
        let mut row = String::new();
        let mut skip = 0;
        for cell in line {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            row.push_str(cell.symbol());
            skip = ratatui::text::Span::raw(cell.symbol().to_owned()).width().saturating_sub(1);
        }
        out.push_str(row.trim_end());
        out.push('\n');
    }
    out
}

fn check(name: &str, mut state: State) {
    for (columns, lines) in SIZES {
        let picture = text(&render(&mut state, columns, lines));
        assert!(!picture.chars().any(|c| c.is_control() && c != '\n'), "{name}: control character on screen");
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("src/tui/snapshots")
            .join(format!("{name}-{columns}x{lines}.txt"));
        if std::env::var_os("LONGPOLE_BLESS").is_some() {
            std::fs::create_dir_all(path.parent().expect("folder")).expect("folder");
            std::fs::write(&path, &picture).expect("write snapshot");
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(picture, golden, "{} differs; LONGPOLE_BLESS=1 accepts it", path.display());
    }
}

fn showing(snapshot: Snapshot) -> State {
    let mut state = samples::state();
    state.show(Arc::new(snapshot));
    state
}

#[test]
fn a_full_report() {
    check("report", showing(samples::snapshot()));
}

#[test]
fn before_the_first_report() {
    let mut state = samples::state();
    state.remark = Some("the program's output goes to /tmp/longpole-top-1.log".to_owned());
    check("collecting", state);
}

#[test]
fn an_empty_window() {
    let mut snapshot = samples::snapshot();
    snapshot.headline = None;
    for result in &mut snapshot.report.results {
        result.functions.clear();
        result.time_ns = 0.0;
        result.speedup = 1.0;
    }
    check("empty", showing(snapshot));
}

#[test]
fn numbers_say_how_old_they_are() {
    let mut snapshot = samples::snapshot();
    snapshot.cut_by_events = true;
    snapshot.window_ns = 1_200_000_000;
    let mut state = showing(snapshot);
    for (later, told) in [(2, "window 1.20 s of 10.0 s · up"), (4, "window 1.20 s of 10.0 s, 4 s ago · up")]
    {
        state.elapsed = samples::state().elapsed + Duration::from_secs(later);
        let buffer = render(&mut state, 80, 24);
        let first: String = buffer.content().iter().take(80).map(|cell| cell.symbol()).collect();
        assert!(first.contains(told), "{first}");
    }
}

#[test]
fn events_were_lost() {
    let mut snapshot = samples::snapshot();
    snapshot.report.trust.lost = 1_234;
    snapshot.report.trust.unknown_ns = 51_000_000_000;
    snapshot.cut_by_events = true;
    snapshot.window_ns = 3_000_000_000;
    snapshot.thread_ns = 51_000_000_000;
    let mut state = showing(snapshot);
    state.counts.loss = LossCounts { dropped: 40_000, missed: 2, ..LossCounts::default() };
    let buffer = render(&mut state, 80, 24);
    let red = buffer.content().iter().filter(|cell| cell.fg == Color::Red).map(|cell| cell.symbol());
    assert!(red.collect::<String>().contains("lost 1,234 (40,002 in all)"));
    check("lossy", state);
}

#[test]
fn without_loss_the_trust_line_is_not_red() {
    let mut state = showing(samples::snapshot());
    let buffer = render(&mut state, 80, 24);
    let width = usize::from(buffer.area.width);
    let line = buffer
        .content()
        .chunks(width)
        .find(|line| line.iter().map(|cell| cell.symbol()).collect::<String>().starts_with("lost 0"));
    assert!(line.expect("trust line").iter().all(|cell| cell.fg != Color::Red));
}

#[test]
fn names_cannot_command_the_terminal_or_break_the_table() {
    check("hostile", showing(samples::hostile_snapshot()));
}

#[test]
fn the_help() {
    let mut state = showing(samples::snapshot());
    assert!(state.apply(Action::Help));
    check("help", state);
}

#[test]
fn paused_scrolled_and_sorted_by_another_cpu_count() {
    let mut state = showing(samples::snapshot());
    state.set_page_rows(5);
    for action in [Action::Pause, Action::Top, Action::NextMeasure, Action::Scroll(3)] {
        assert!(state.apply(action));
    }
    state.sort = 1;
    check("paused", state);
}

#[test]
fn the_target_has_ended() {
    let mut state = showing(samples::snapshot());
    state.phase = Phase::Ended("quicksort (pid 4242) ended with exit code 3. q quits.".to_owned());
    check("ended", state);
}

#[test]
fn no_size_of_screen_panics() {
    let mut many = samples::snapshot();
    for _ in 0..4 {
        let again = many.report.results.clone();
        many.report.results.extend(again);
    }
    let help = {
        let mut state = showing(samples::snapshot());
        assert!(state.apply(Action::Help));
        state
    };
    for state in [showing(many), showing(samples::hostile_snapshot()), samples::state(), help] {
        for columns in [1, 2, 7, 20, 33, 79, 500] {
            for lines in [1, 2, 5, 9, 11, 50] {
                for sort in [0, 3, 95] {
                    let mut state = state.clone();
                    state.sort = sort;
                    render(&mut state, columns, lines);
                }
            }
        }
    }
}

#[test]
fn a_terminal_without_utf_8_gets_ascii_in_the_same_places() {
    let mut states = vec![showing(samples::snapshot()), showing(samples::hostile_snapshot())];
    assert!(states[0].apply(Action::Help));
    for mut state in states {
        let wide = render_as(&mut state, 80, 24, THEME);
        let ascii = render_as(&mut state, 80, 24, Theme { unicode: false, ..THEME });
        assert!(ascii.content().iter().all(|cell| cell.symbol().is_ascii()), "{}", text(&ascii));
        for (wide, ascii) in wide.content().iter().zip(ascii.content()) {
            if wide.symbol().is_ascii() && ascii.symbol() != "?" {
                assert_eq!(wide.symbol(), ascii.symbol());
            }
        }
    }
}

#[test]
fn without_colours_losses_are_still_told_apart() {
    let mut snapshot = samples::snapshot();
    snapshot.report.trust.lost = 5;
    let mut state = showing(snapshot);
    let buffer = render_as(&mut state, 80, 24, Theme { colours: false, ..THEME });
    assert!(buffer.content().iter().all(|cell| cell.fg == Color::Reset));
    let reversed = buffer.content().iter().filter(|cell| cell.modifier.contains(Modifier::REVERSED));
    assert!(reversed.map(|cell| cell.symbol()).collect::<String>().contains("lost 5"));
}

#[test]
fn the_chosen_cpu_count_is_always_in_sight() {
    let mut many = samples::snapshot();
    for result in many.report.results.clone() {
        many.report.results.push(result);
    }
    for sort in 0..12 {
        let mut state = showing(many.clone());
        state.sort = sort;
        let picture = text(&render(&mut state, 80, 24));
        let head = picture.lines().nth(3).expect("CPU counts");
        assert!(head.contains('['), "sorted by {sort}: {head}");
    }
}
