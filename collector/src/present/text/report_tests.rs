//! The report's layout at 80 and 160 columns.

use super::*;
use engine::program::{AwaitedPart, LockSide, RecordedWait, Share, WaitStack};
use engine::report::Cpus;
use engine::report::{Finding, LockRow, SegmentRow, Trust};
use engine::time::Ticks;
use longpole_tests::check_golden;
use std::num::NonZeroU32;

const NARROW: Style = Style { colour: false, unicode: true, width: 80 };
const WIDE: Style = Style { colour: false, unicode: true, width: 160 };
fn row(name: &str, calls: u64, tet_ns: f64, tetid_ns: f64) -> FunctionRow {
    FunctionRow { function: name.into(), calls, tet_ns, tetid_ns, exact: true, ..FunctionRow::default() }
}

fn result(cpus: u32, time_ns: f64, functions: Vec<FunctionRow>) -> CpuResult {
    CpuResult {
        cpus: NonZeroU32::new(cpus).map_or(Cpus::Infinite, Cpus::Count),
        time_ns,
        may_be_ns: None,
        speedup: 2e9 / time_ns,
        locks_held_ns: Vec::new(),
        waits: Vec::new(),
        functions,
        segments: Vec::new(),
    }
}

const LONG: &str =
    "std::collections::hash::map::HashMap<alloc::string::String, my_program::Entry>::insert_with_a_long_name";

fn report() -> Report {
    let mut results = Vec::new();
    for (cpus, time) in [(1, 2.0e9), (2, 1.1e9), (4, 7e8), (8, 5e8), (16, 4.4e8), (0, 4.2e8)] {
        let slow = 1.0 - f64::from(cpus) / 40.0;
        let mut sort = row("sort_parallel", 127, time * 0.3 * slow, time);
        sort.location = Some("/home/me/src/quicksort.c:41".into());
        let mut swap = row("swap", 1_234_567, time * 0.05, time * 0.05);
        swap.probes_removed = true;
        let mut functions =
            vec![sort, row("partition", 1_023, time * 0.61, time * 0.61), swap, row("main", 1, 0.0, time)];
        if cpus != 1 {
            functions.push(row(LONG, 3, time * 1.5, time * 2.5));
            functions.push(row("waits_for_disk", 2, -time * 0.04, -time * 0.04));
        }
        results.push(result(cpus, time, functions));
    }
    Report {
        results,
        locks: Vec::new(),
        recorded: engine::program::Recorded::default(),
        used_by: Vec::new(),
        trust: Trust {
            events: 7_654_321,
            wakes: 123_456,
            lost: Some(3),
            unmatched: 1,
            unknown_ns: 1_500_000,
            truncated_waits: 4,
            spurious: 0,
        },
        findings: vec![Finding::Other {
            kind: "deadlock".into(),
            text: "T1 holds a and waits for b, T2 holds b and waits for a: the result goes up to 3.00 ms, where \
                   they meet."
                .into(),
        }],
        recorded_cpus: None,
        overhead: None,
        samples: None,
    }
}

fn shown(report: &Report, options: Options, style: &Style) -> String {
    let mut out = Vec::new();
    let frame = Frame::default();
    match options.by {
        By::Function => write(report, &frame, options, style, &mut out).expect("written"),
        _ => crate::present::text::view::write(report, &frame, options, style, &mut out).expect("written"),
    }
    String::from_utf8(out).expect("text")
}

/// Compares the text with a file in `snapshots`.
fn check(file: &str, text: &str) {
    check_golden(format!("{}/src/present/snapshots/{file}", env!("CARGO_MANIFEST_DIR")), text);
}

#[test]
fn a_report_in_80_columns_is_its_snapshot() {
    let text = shown(&report(), Options::default(), &NARROW);
    check("report-80.txt", &text);
    assert!(text.lines().all(|line| width(line) <= 80));
}

#[test]
fn a_report_in_160_columns_is_its_snapshot() {
    let text = shown(&report(), Options::default(), &WIDE);
    check("report-160.txt", &text);
    assert!(text.lines().all(|line| width(line) <= 160));
}

#[test]
fn a_report_without_unicode_is_ascii() {
    let text = shown(&report(), Options::default(), &Style { unicode: false, ..NARROW });
    assert!(text.is_ascii(), "{text}");
    assert!(text.contains("inf CPUs") && text.contains("1.00x"), "{text}");
}

#[test]
fn more_cpu_counts_than_fit_are_shown_in_further_blocks() {
    let mut report = report();
    report.results = (1..=13).map(|cpus| result(cpus, 2e9 / f64::from(cpus), Vec::new())).collect();
    let text = shown(&report, Options::default(), &NARROW);
    assert!(text.lines().all(|line| width(line) <= 80), "{text}");
    assert_eq!(text.lines().filter(|line| line.starts_with("predicted time")).count(), 3);
    for cpus in 2..=13 {
        assert_eq!(text.matches(&format!(" {cpus} CPUs")).count(), 1, "{cpus}: {text}");
    }
}

#[test]
fn hostile_names_do_not_reach_the_terminal() {
    let mut report = report();
    report.results[0].functions[0].function = "evil\u{1b}[2J\u{7}\nname\u{202e}".into();
    report.results[0].functions[0].location = Some("\u{9b}31m:1".into());
    report.findings[0] = Finding::Other { kind: "new".into(), text: "\u{1b}]0;title\u{7}".into() };
    for style in [NARROW, WIDE, Style { unicode: false, ..NARROW }] {
        let text = shown(&report, Options { segments: true, ..Options::default() }, &style);
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        assert!(!text.contains('\u{202e}'), "{text:?}");
    }
}

#[test]
fn top_limits_the_rows_and_says_how_many_are_left() {
    let text = shown(&report(), Options { top: Some(2), ..Options::default() }, &NARROW);
    assert!(text.contains("partition") && !text.contains("main"), "{text}");
    assert!(text.contains("4 more functions with smaller shares: --top 6 shows all."), "{text}");
}

#[test]
fn segments_have_their_weights_for_all_cpu_counts_in_one_line() {
    let mut report = report();
    for (i, result) in report.results.iter_mut().enumerate() {
        result.segments = vec![SegmentRow {
            thread: "T2".into(),
            operation: 3,
            function: Some("g".into()),
            start_ns: 2_000.0,
            end_ns: 3_000.0,
            weight: i as f64 / 2.0 - 1.0,
        }];
    }
    let text = shown(&report, Options { segments: true, top: Some(0), ..Options::default() }, &WIDE);
    let line = text.lines().find(|line| line.starts_with("T2")).expect("a line for T2");
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words, ["T2", "3", "g", "2.00", "µs", "1.00", "µs", "-1", "-0.5", "0", "0.5", "1", "1.5"]);
}

#[test]
fn a_report_has_colour_only_if_the_style_has_it() {
    assert!(!shown(&report(), Options::default(), &NARROW).contains('\u{1b}'));
    let coloured = shown(&report(), Options::default(), &Style { colour: true, ..NARROW });
    assert!(coloured.contains("\u{1b}[1m") && coloured.contains("\u{1b}[33m! T1 holds a"), "{coloured}");
}

#[test]
fn an_empty_report_still_has_its_line_of_trust() {
    let text = shown(&Report::default(), Options { segments: true, ..Options::default() }, &NARROW);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let trust = "Trust: 0 events, 0 wake-ups; lost 0, 0 waits without a known waker, 0 ns of unknown time.";
    assert!(words.contains(trust), "{text}");
}

#[test]
fn a_report_by_lock_lists_locks_and_counts_free_ones() {
    let mut report = report();
    report.locks = vec![LockRow {
        lock: "mutex 0x55d0\u{1b}[31m".into(),
        acquisitions: 1_009,
        contended: Some(101),
        wait_ns: Some(3_200_000.0),
        hold_ns: Some(1e9),
        holder: Some("take_job".into()),
        reading: None,
    }];
    for result in &mut report.results {
        result.locks_held_ns = vec![result.time_ns / 4.0];
    }
    let text = shown(&report, Options { by: By::Lock, ..Options::default() }, &NARROW);
    assert!(!text.contains('\u{1b}') && !text.contains("sort_parallel"), "{text}");
    let line = text.lines().find(|line| line.starts_with("0x55d0")).expect("a row");
    let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.ends_with("25 % 1,009 10 % 3.20 ms 1.00 s take_job"), "{text}");
    assert!(text.lines().all(|line| width(line) <= 80), "{text}");

    // Locks that were always free are counted, not listed.
    let free = |lock: &str| LockRow { lock: lock.into(), contended: Some(0), ..report.locks[0].clone() };
    let free = [free("mutex 0x55d1"), free("mutex 0x55d2")];
    report.locks.extend(free);
    for result in &mut report.results {
        result.locks_held_ns = vec![result.time_ns / 4.0; 3];
    }
    let of = |all| shown(&report, Options { by: By::Lock, all, ..Options::default() }, &NARROW);
    assert!(!of(false).contains("0x55d1") && of(false).contains("(2 locks without a waiter: --all)"));
    assert!(of(true).contains("0x55d1") && !of(true).contains("without a waiter"), "{}", of(true));

    report.locks.clear();
    let text = shown(&report, Options { by: By::Lock, ..Options::default() }, &NARROW);
    assert!(text.contains("no lock operations"), "{text}");
}

/// Readers and writers of a lock have separate numbers: they show whether a read-write lock is worth its price.
#[test]
fn a_read_write_lock_has_separate_numbers_for_reading_and_writing() {
    let mut report = report();
    report.locks = vec![LockRow {
        lock: "rwlock table".into(),
        acquisitions: 100,
        contended: Some(10),
        wait_ns: Some(5_000_000.0),
        hold_ns: Some(9_000_000.0),
        holder: None,
        reading: Some(LockSide {
            acquisitions: 90,
            contended: 9,
            waited: Ticks::from_ns(1_000_000),
            held: Ticks::from_ns(8_000_000),
        }),
    }];
    let text = shown(&report, Options { by: By::Lock, ..Options::default() }, &NARROW);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("100 10 % 5.00 ms 9.00 ms"), "{text}");
    let reading = "reading: taken 90 times, 10.0 % not free; waited for 1.00 ms, held for 8.00 ms";
    let writing = "writing: taken 10 times, 10.0 % not free; waited for 4.00 ms, held for 1.00 ms";
    assert!(words.contains(reading) && words.contains(writing), "{text}");
}

fn sampled_report() -> Report {
    let sampled = FunctionRow {
        exact: false,
        uncounted: true,
        tet_error_ns: Some(2.5e7),
        tetid_error_ns: Some(5e7),
        samples: 240,
        ..row("hash", 0, 5e8, 6e8)
    };
    let partly =
        FunctionRow { exact: false, tet_error_ns: Some(1e7), samples: 10, ..row("parse", 12, 3e8, 9e8) };
    Report {
        results: vec![result(1, 1e9, vec![sampled, partly, row("main", 1, 1e8, 1e9)])],
        samples: Some(SampleFacts {
            count: 500,
            rate_hz: 499,
            truncated: 7,
            elsewhere: 3,
            divided_ns: 9e8,
            undivided_ns: 1e8,
        }),
        ..Report::default()
    }
}

#[test]
fn sampled_numbers_in_a_report_have_a_plus_minus_below_them() {
    let text = shown(&sampled_report(), Options::default(), &NARROW);
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let of = |name: &str| {
        let at = lines.iter().position(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{text}"));
        lines[at..].iter().take(6).map(|line| words(line)).collect::<Vec<_>>()
    };
    let hash = of("hash");
    assert_eq!(hash[0], ["hash", "[sampled]"]);
    assert_eq!(hash[1], ["self", "500", "ms", "50.0", "%"]);
    assert_eq!(hash[2], ["±", "25.0", "ms", "2.5", "%"]);
    assert_eq!(hash[3], ["total", "600", "ms", "60.0", "%"]);
    assert_eq!(hash[4], ["±", "50.0", "ms", "5.0", "%"]);
    assert_ne!(hash[5][0], "calls", "nobody has counted them");
    let parse = of("parse");
    assert_eq!(parse[0], ["parse", "[partly", "sampled]"]);
    assert_eq!((parse[2][0].as_str(), parse[3][0].as_str()), ("±", "total"));
    assert_eq!(parse[4], ["calls", "12"], "its total is exact: {text}");
    assert_eq!(of("main")[2], ["total", "1.00", "s", "100", "%"], "exact");
    assert!(text.contains("±: half of the 95 % interval, of samples, chance"), "{text}");
    assert!(text.contains("Samples: 500 of computing threads at up to 499 Hz, which divide 90"), "{text}");
}

#[test]
fn a_report_without_samples_mentions_none() {
    let text = shown(&report(), Options::default(), &NARROW);
    assert!(!text.contains('±') && !text.contains("ampled") && !text.contains("Samples:"), "{text}");
}

#[test]
fn plus_minus_in_a_report_without_unicode_is_ascii() {
    let text = shown(&sampled_report(), Options::default(), &Style { unicode: false, ..NARROW });
    assert!(text.is_ascii() && text.contains("~: half of the 95 % interval"), "{text}");
}

/// Waits are a table; idle waits are separate.
#[test]
fn a_report_by_wait_lists_kinds_of_waits_and_idle_ones_separately() {
    let share = |name: &str, count| Share { name: name.into(), count };
    let wait = |name: &str, idle| RecordedWait {
        name: name.into(),
        waits: 3_306,
        threads: 4,
        wait_ns: 1_820_000_000,
        longest_ns: 8_060_000,
        ended_by: vec![share("thread", 3_306)],
        sleepers: vec![share("worker", 3_223), share("store_row", 83)],
        idle,
        ..RecordedWait::default()
    };
    let sync = RecordedWait {
        of: vec![
            AwaitedPart { name: "wal/0001".into(), waits: 9, wait_ns: 1_500_000_000 },
            AwaitedPart { name: "index\u{1b}[2J".into(), waits: 1, wait_ns: 320_000_000 },
        ],
        stacks: vec![WaitStack { functions: vec!["fdatasync".into(), "db::store::flush".into()], waits: 3 }],
        ..wait("file sync", false)
    };
    let mut report = report();
    let never = RecordedWait { ended_by: vec![share("not ended", 4)], ..wait("never woken", true) };
    report.recorded.waits = vec![wait("mutex lock", false), sync, wait("epoll", true), never];
    let text = shown(&report, Options { by: By::Wait, ..Options::default() }, &NARROW);
    assert!(text.contains("\n  wal/0001 82 %, index") && !text.contains('\u{1b}'), "{text}");
    assert!(!text.contains("flush"), "{text}");
    let with_stacks = shown(&report, Options { by: By::Wait, stacks: true, ..Options::default() }, &NARROW);
    assert!(with_stacks.contains("\n  100 % fdatasync < store::flush\n"), "{with_stacks}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("mutex lock 1.82 s 3,306 4 8.06 ms thread worker+"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("IDLE ")), "{text}");
    assert!(text.contains(" not ended "), "it was ended by \"ended\": {text}");
    assert!(text.lines().all(|line| width(line) <= 80), "{text}");
}

/// Lines are shown with their source if the source file exists.
#[test]
fn a_report_by_line_shows_the_source_of_each_line() {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/src/present/source.rs:1");
    let mut report = report();
    for result in &mut report.results {
        result.functions = vec![row(own, 0, result.time_ns * 0.6, result.time_ns)];
    }
    let text = shown(&report, Options { by: By::Line, ..Options::default() }, &WIDE);
    let line = text.lines().find(|line| line.starts_with("present/source.rs:1")).expect("a row");
    assert!(line.contains("60 %") && line.contains("//! Lines of source files"), "{text}");
}
