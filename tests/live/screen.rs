//! The live screen in a real terminal (a pseudo-terminal that a terminal emulator reads). The screen shows a recording
//! that is played through the live pipeline, or real processes. The test starts itself again as the program in the
//! terminal.

mod targets;
mod terminal;

use collector::live::{Asked, Destination, Mode, Pace, Replay, Setup, WindowPlan, run};
use collector::tui::{Guard, State};
use engine::event::{Facts, Recording, ThreadFact};
use engine::report::Cpus;
use longpole_tests::{Background, binary, skip_unless_live};
use portable_pty::{CommandBuilder, PtySize};
use probe_abi::{Call, Header, Kind, Record, Switch, SwitchFlags};
use std::io::{Read, Write};
use std::num::NonZero;
use std::time::{Duration, Instant};
use targets::{Busy, Target};
use terminal::{PATIENCE, Screen};

/// The program in the terminal. Does nothing unless [`Screen::start`] has started it.
#[test]
#[ignore = "runs only as the child of the other tests"]
fn child() {
    let Ok(what) = std::env::var("LONGPOLE_TEST_SCREEN") else { return };
    if what == "late" {
        return reads_too_late();
    }
    let recording = synthetic();
    let mut facts = recording.facts.clone();
    facts.end = None;
    let cpus: Vec<Cpus> = [1, 2, 4].into_iter().filter_map(Cpus::count).collect();
    let window = Duration::from_secs(10);
    let state = State::new("synthetic (pid 100)".into());
    let asked = Asked { cpus, recorded_cpus: None, wish: state.wish(), per: None };
    let screen = Some((Guard::take().expect("terminal"), state));
    if what == "panic" {
        panic!("a bug on purpose");
    }
    let ended = run(Setup {
        mode: Mode::Screen,
        source: Box::new(Replay::new(recording, Pace::Times(1.0))),
        facts,
        pids: vec![],
        children: false,
        duration: None,
        destination: None::<Destination>,
        saving: None,
        window: Some(WindowPlan {
            span: window,
            refresh: Duration::from_millis(200),
            max_events: 1_000_000,
            asked,
            tries_locks: false,
            file: None,
        }),
        screen,
        print: None,
        listen: None,
        alive: Box::new(|_| true),
        at_end: Box::new(|_| (Vec::new(), None)),
        snapshots: None,
        choose: None,
        child: None,
    });
    let ended = ended.expect("run");
    println!("left because {:?} after {} reports", ended.reason, u8::from(ended.observed.report.is_some()));
}

/// Waits until the terminal has hung up, and only then reads keys from it.
fn reads_too_late() {
    use rustix::event::{PollFd, PollFlags, poll};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    let _inside = runtime.enter();
    let kind = tokio::signal::unix::SignalKind::hangup();
    let _survives = tokio::signal::unix::signal(kind).expect("a handler");
    // The first poll opens the device from which later polls read.
    assert!(!crossterm::event::poll(Duration::from_millis(1)).expect("a terminal"));
    println!("waits for its end");
    let stdin = std::io::stdin();
    let a_while = rustix::event::Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    loop {
        // Tells the test to release the terminal, see `Screen::hang_up`.
        let _ = std::io::stdout().write_all(b".").and_then(|()| std::io::stdout().flush());
        let mut wanted = [PollFd::new(&stdin, PollFlags::empty())];
        match poll(&mut wanted, Some(&a_while)) {
            Ok(_) if wanted[0].revents().contains(PollFlags::HUP) => break,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("{error}"),
        }
    }
    // The call may return an error, but it must return.
    let _ = crossterm::event::poll(Duration::from_millis(1));
    std::process::exit(7);
}

/// A recording of two threads of process 100 that pass a CPU to each other for a minute.
fn synthetic() -> Recording {
    let mut events = vec![];
    for step in 0..6_000u64 {
        let (from, to) = if step % 2 == 0 { (100, 101) } else { (101, 100) };
        let header = Header {
            time_ns: 1_000_000_000 + step * 10_000_000,
            sequence: step as u32,
            cpu: 0,
            kind: Kind::Switch as u8,
            context: 0,
            tid: from,
            pid: 100,
        };
        let flags = SwitchFlags::PREV_TRACKED | SwitchFlags::NEXT_TRACKED;
        let (prev_state, prev_user_sp) = (0, 0);
        events.push(Record::Switch(Switch {
            header,
            next_tid: to,
            next_pid: 100,
            prev_state,
            flags,
            prev_user_sp,
            prev_call: Call::NONE,
        }));
    }
    let thread = |tid| ThreadFact { tid, pid: 100, comm: format!("t{tid}"), ..ThreadFact::default() };
    let facts =
        Facts { start_ns: 1_000_000_000, threads: vec![thread(100), thread(101)], ..Facts::default() };
    Recording { facts, events, notes: vec![] }
}

#[test]
fn keys_of_the_bottom_line_work_and_q_restores_the_terminal() {
    let mut screen = Screen::start("run");
    screen.wait_for_text("synthetic (pid 100)");
    // The report is for the largest of three CPU counts.
    screen.wait_for_text("LIMIT");
    screen.wait_for_text("[4]");
    assert!(screen.parser.screen().alternate_screen());
    screen.press("\x1b[D");
    screen.wait_for_text("[2]");
    screen.press("\x1b[C");
    screen.wait_for_text("[4]");
    screen.press("p");
    screen.wait_for_text("PAUSED");
    screen.press("p");
    screen.wait_for("no PAUSED", |screen| !screen.contents().contains("PAUSED"));
    screen.press("?");
    screen.wait_for_text("The same screen as longpole report");
    screen.press("\x1b");
    screen.wait_for("closed help", |screen| !screen.contents().contains("The same screen"));
    screen.press("\t");
    screen.wait_for_text("[2 locks]");
    screen.press("3");
    screen.wait_for_text("THREADS");
    screen.press("/no such");
    screen.wait_for_text("no row's name contains that");
    screen.press("\x1b");
    screen.wait_for_text("THREADS");
    screen.press("\r");
    screen.wait_for_text("Esc back");
    screen.press("q");
    let (code, text, alternate) = screen.end();
    assert_eq!(code, 0, "{text}");
    assert!(!alternate, "still on the alternate screen");
    assert!(text.contains("left because Some(User) after 1 reports"), "{text}");
    assert!(text.contains("LIMIT") && !text.contains("q quit"), "the last screen stays: {text}");
}

#[test]
fn control_c_quits_top_and_restores_the_terminal() {
    let mut screen = Screen::start("run");
    screen.wait_for_text("synthetic (pid 100)");
    screen.press("\x03");
    let (code, text, alternate) = screen.end();
    assert_eq!(code, 0, "{text}");
    assert!(!alternate);
    assert!(text.contains("left because Some(User)"), "{text}");
}

#[test]
fn resizing_the_terminal_redraws_the_screen() {
    let mut screen = Screen::start("run");
    screen.wait_for_text("LIMIT");
    let wide = PtySize { rows: 40, cols: 160, pixel_width: 0, pixel_height: 0 };
    screen.parser.screen_mut().set_size(NonZero::new(40).expect("40"), NonZero::new(160).expect("160"));
    screen.master.as_ref().expect("open").resize(wide).expect("resize");
    screen.wait_for("the bottom line at the bottom", |screen| {
        screen.contents().lines().nth(39).is_some_and(|line| line.contains("quit"))
    });
    screen.press("q");
    assert_eq!(screen.end().0, 0);
}

#[test]
fn sigterm_ends_top_and_restores_the_terminal() {
    let mut screen = Screen::start("run");
    screen.wait_for_text("synthetic (pid 100)");
    let pid = screen.child.process_id().expect("pid").to_string();
    let sent = std::process::Command::new("sh").args(["-c", &format!("kill -TERM {pid}")]).status();
    assert!(sent.expect("kill").success());
    let (code, text, alternate) = screen.end();
    assert_eq!(code, 0, "{text}");
    assert!(!alternate);
    assert!(text.contains("left because Some(Terminated)"), "{text}");
}

/// A program that calls [`hang_up_target`] until its input ends. Does nothing unless `LONGPOLE_TEST_TARGET` is set.
#[test]
#[ignore = "runs only as the target of other tests"]
fn target() {
    if std::env::var_os("LONGPOLE_TEST_TARGET").is_none() {
        return;
    }
    println!("\ncode at {}", hang_up_target as *const () as usize);
    println!("more at {}", chosen_later as *const () as usize);
    std::thread::spawn(|| {
        loop {
            std::hint::black_box(hang_up_target(20_000));
            std::hint::black_box(chosen_later(20_000));
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    std::io::stdin().read_to_end(&mut Vec::new()).expect("input");
}

#[inline(never)]
fn hang_up_target(rounds: u64) -> u64 {
    (0..rounds).fold(0, |sum, round| sum ^ std::hint::black_box(round).wrapping_mul(rounds))
}

#[inline(never)]
fn chosen_later(rounds: u64) -> u64 {
    (0..rounds).fold(1, |sum, round| sum ^ std::hint::black_box(round).wrapping_add(sum.rotate_left(3)))
}

/// The arguments with which longpole chooses the target.
fn asked(target: &Target) -> [String; 4] {
    ["--functions", "*hang_up_target", "-p", &target.pid.to_string()].map(str::to_owned)
}

/// Exit code and signal of a program whose terminal is gone.
fn status(screen: &mut Screen) -> (u32, Option<String>) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = screen.child.try_wait().expect("status") {
            return (status.exit_code(), status.signal().map(str::to_owned));
        }
        assert!(Instant::now() < deadline, "still there without its terminal");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A terminal may hang up after longpole has asked whether there are keys, and before it reads them. Such a hang-up
/// must not stop the screen.
#[test]
fn a_hung_up_terminal_does_not_keep_the_keyboard_thread() {
    let mut screen = Screen::start("late");
    screen.wait_for_text("waits for its end");
    screen.hang_up();
    assert_eq!(status(&mut screen), (7, None));
}

/// longpole must end well by itself, and the target must continue without probes.
#[test]
fn a_hang_up_ends_top_and_removes_the_probes() {
    skip_unless_live!();
    let target = Target::start();
    let mut command = CommandBuilder::new(binary());
    // There is no goal, because expensive hits would remove the probes. There are no samples, because their functions
    // would take more rows than the screen has.
    command.args(["top", "--refresh=300ms", "--overhead=none", "--freq=0"]);
    command.args(asked(&target));
    let mut screen = Screen::run(command);
    screen.wait_for_text(&format!("(pid {})", target.pid));
    screen.wait_for_text("hang_up_target");
    target.until_probed(target.first, true);
    screen.hang_up();
    assert_eq!(status(&mut screen), (0, None));
    target.runs_on();
}

/// A recording that a hang-up ends must be a complete session.
#[test]
fn a_hang_up_ends_a_recording_that_is_a_whole_session() {
    skip_unless_live!();
    let target = Target::start();
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("hung-up.lp");
    let mut command = CommandBuilder::new(binary());
    command.args(["record", "-d", "10m", "-o"]);
    command.arg(&file);
    command.args(asked(&target));
    let mut screen = Screen::run(command);
    screen.wait_for_text("recording ");
    target.until_probed(target.first, true);
    std::thread::sleep(Duration::from_millis(500));
    screen.hang_up();
    assert_eq!(status(&mut screen), (0, None));
    target.runs_on();
    let (recording, info) = recording::read(&file).expect("a session");
    assert!(info.whole(), "{info:?}");
    assert!(recording.facts.end.is_some());
    let entries = recording.events.iter().filter(|record| matches!(record, Record::FunctionEnter(_))).count();
    assert!(entries > 50, "{entries}");
}

/// The screen must end by itself after `--duration`, so that a user who wants some minutes need not come back.
#[test]
fn top_with_a_duration_ends_by_itself() {
    skip_unless_live!();
    let target = Target::start();
    let mut command = CommandBuilder::new(binary());
    command.args(["top", "--refresh=300ms", "--duration=6s", "--overhead=none", "--freq=0"]);
    command.args(asked(&target));
    let mut screen = Screen::run(command);
    screen.wait_for_text("hang_up_target");
    let (code, text, alternate) = screen.end();
    assert_eq!((code, alternate), (0, false), "{text}");
    target.runs_on();
}

/// The user chooses functions again while longpole is attached. One function gets probes; the other loses its probes
/// and then gets them again.
#[test]
fn functions_get_and_lose_probes_by_keys_while_top_runs() {
    skip_unless_live!();
    let target = Target::start();
    let mut command = CommandBuilder::new(binary());
    // There are no samples, because their functions would take more rows than the screen has.
    command.args(["top", "--refresh=300ms", "--window=1s", "--overhead=none", "--freq=0"]);
    command.args(asked(&target));
    let mut screen = Screen::run(command);
    screen.wait_for_text("hang_up_target");
    assert!(!target.is_probed(target.later));

    screen.press("f");
    screen.wait_for_text("write breakpoints into the program");
    screen.press("*chosen_latter\x7f\x7f\x7fer\r");
    screen.wait_for_text("1 function is probed from now on: *chosen_later");
    target.until_probed(target.later, true);
    screen.wait_for("both", |screen| {
        let text = screen.contents();
        text.matches("hang_up_target ").count() > 0 && text.matches("chosen_later ").count() > 0
    });
    assert!(target.is_probed(target.first), "the one before keeps its own");

    screen.press("u");
    screen.wait_for_text("remove breakpoints from:");
    screen.press("*hang_up_target\r");
    screen.wait_for_text("the probes of 1 function are off");
    target.until_probed(target.first, false);
    assert!(target.is_probed(target.later));

    screen.press("f*hang_up_target\r");
    screen.wait_for_text("probed from now on: *hang_up_target");
    target.until_probed(target.first, true);
    screen.press("fno_such_function\r");
    screen.wait_for_text("no function that can be probed matches no_such_function");
    screen.press("q");
    let (code, text, alternate) = screen.end();
    assert_eq!((code, alternate), (0, false), "{text}");
    target.runs_on();
}

#[test]
fn a_panic_restores_the_terminal_and_its_message_is_readable() {
    let screen = Screen::start("panic");
    let (code, text, alternate) = screen.end();
    assert_ne!(code, 0);
    assert!(!alternate);
    assert!(text.contains("a bug on purpose"), "{text}");
}

#[test]
fn top_shows_a_busy_process_and_its_end() {
    skip_unless_live!();
    let mut busy = Busy::start();
    let pid = busy.0.id().to_string();
    let mut command = CommandBuilder::new(binary());
    command.args(["top", "--refresh=300ms", "-p", &pid]);
    let mut screen = Screen::run(command);
    screen.wait_for_text(&format!("(pid {pid})"));
    screen.wait_for_text("LIMIT");
    screen.wait_for_text("FUNCTIONS");
    screen.press("?");
    screen.wait_for_text("The same screen as longpole report");
    screen.press("?");
    busy.end();
    screen.wait_for_text("ENDED");
    screen.wait_for_text("has ended. The last report stays; q quits.");
    screen.press("q");
    let (code, text, alternate) = screen.end();
    assert_eq!((code, alternate), (0, false), "{text}");
}

/// CPU time of all threads of a process, and of those with this name, in nanoseconds.
fn cpu_ns(pid: u32, name: &str) -> (u64, u64) {
    let (mut all, mut named) = (0, 0);
    for thread in std::fs::read_dir(format!("/proc/{pid}/task")).expect("threads") {
        let read = |what: &str| std::fs::read_to_string(thread.as_ref().expect("thread").path().join(what));
        // A thread may end between listing and reading.
        let (Ok(stat), Ok(comm)) = (read("schedstat"), read("comm")) else { continue };
        let ns = stat.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0);
        all += ns;
        named += if comm.trim() == name { ns } else { 0 };
    }
    (all, named)
}

/// If `top` analysed the whole window again each second, a program that switches all the time would cost half a CPU or
/// more.
#[test]
fn the_cost_of_top_on_a_busy_program_does_not_grow() {
    let program = skip_unless_live!("pingpong.c");
    let target = Background::must_start(std::process::Command::new(program).arg("1000000000"));
    let mut command = CommandBuilder::new(binary());
    command.args(["top", "-p", &target.pid().to_string()]);
    let mut screen = Screen::run(command);
    screen.wait_for_text("LIMIT");
    let pid = screen.child.process_id().expect("pid");
    let began = Instant::now();
    let mut seen = Vec::new();
    for second in 0..=18 {
        while began.elapsed() < Duration::from_secs(second) {
            if let Ok(bytes) = screen.output.recv_timeout(Duration::from_millis(50)) {
                screen.parser.process(&bytes);
            }
        }
        if second % 6 == 0 {
            seen.push(cpu_ns(pid, "lp-analysis"));
        }
    }
    let thirds: Vec<(u64, u64)> =
        seen.windows(2).map(|pair| (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1)).collect();
    assert!(thirds[2].0 < 2 * thirds[0].0, "it grows: {thirds:?}");
    let analysis = seen[3].1 - seen[0].1;
    assert!(analysis > 0 && u128::from(analysis) < began.elapsed().as_nanos() / 20, "{thirds:?}");
    screen.press("q");
    assert_eq!(screen.end().0, 0);
}

/// Each line must be one JSON object for a separate stretch of time, and `top` must end when nobody reads its output
/// any more.
#[test]
fn top_batch_prints_one_json_object_per_line() {
    skip_unless_live!();
    use std::io::BufRead;
    let busy = Busy::start();
    let mut command = std::process::Command::new(binary());
    command.args(["top", "--batch", "--json", "--refresh=300ms", "-p", &busy.0.id().to_string()]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
    let mut top = command.spawn().expect("longpole");
    let mut lines = std::io::BufReader::new(top.stdout.take().expect("piped")).lines();
    let mut ends = Vec::new();
    for line in lines.by_ref().take(3) {
        let report: serde_json::Value = serde_json::from_str(&line.expect("a line")).expect("an object");
        assert_eq!(report["schema"], "longpole-report/1");
        assert!(report["limit"]["at"][0]["kind"].is_string(), "{report}");
        ends.push(report["stretch"]["end_unix_ms"].as_u64().expect("when"));
    }
    assert!(ends.len() == 3 && ends.is_sorted(), "{ends:?}");
    drop(lines);
    assert!(top.wait().expect("its end").success());
}
