//! The layout of the screen: snapshots, and that it fits.

use super::{About, unrecorded, write};
use crate::cell::width;
use crate::present::style::Style;
use engine::experiment::Edit;
use engine::limit::{
    Fix, FunctionShare, FunctionUse, Limit, LimitKind, Limits, LockUse, NotSimulated, ThreadUse,
};
use engine::program::ObjectId;
use engine::report::{CpuResult, Cpus, Finding, FunctionRow, Names, Report};
use longpole_tests::check_golden;

const NARROW: Style = Style { colour: false, unicode: true, width: 80 };

fn result(cpus: u32, time_ns: f64) -> CpuResult {
    let row = |name: &str, share: f64| FunctionRow {
        function: name.into(),
        tet_ns: time_ns * share,
        tetid_ns: time_ns,
        tet_error_ns: Some(time_ns * 0.015),
        ..FunctionRow::default()
    };
    CpuResult {
        cpus: Cpus::count(cpus).unwrap_or(Cpus::Infinite),
        time_ns,
        may_be_ns: None,
        speedup: 1.0,
        locks_held_ns: Vec::new(),
        waits: Vec::new(),
        functions: vec![
            row("digest_row(unsigned int)", 0.62),
            row("parse_row(int)", 0.36),
            row("clone3", 0.001),
        ],
        segments: Vec::new(),
    }
}

fn hot() -> (Report, Limits, About) {
    let results = [(1, 3.18e9), (2, 3.49e9), (4, 3.49e9), (16, 3.491e9), (0, 3.49e9)];
    let report = Report {
        results: results.map(|(cpus, time)| result(cpus, time)).to_vec(),
        recorded_cpus: Some(2),
        findings: vec![
            Finding::Uncontended { objects: 1, all_locks: false, rust: false, go: false },
            Finding::ProbesRemoved { functions: Names { names: vec!["f".into()], more: 0 } },
        ],
        ..Report::default()
    };
    let holder = Some(FunctionShare { function: "digest_row(unsigned int)".into(), share: 0.97 });
    let lock = |cpus: u32, time_ns: f64, without_ns: f64| {
        let kind = LimitKind::Lock {
            lock: "mutex registry.gate".into(),
            locks: 1,
            waiting: 2.9,
            threads: 4,
            holder: holder.clone(),
        };
        Limit { without_ns, ..Limit::known(Cpus::count(cpus).expect("a count"), time_ns, kind) }
    };
    let fix = |edit, gain: f64, runs: (f64, f64)| Fix {
        edit,
        lock: None,
        function: Some("digest_row(unsigned int)".into()),
        location: Some("/home/me/hot.c:10".into()),
        gain,
        runs,
        band: (runs.0 - 0.07, runs.1 + 0.07),
        gain_at_largest: Some(gain + 0.1),
    };
    let limits = Limits {
        traffic: Vec::new(),
        others: Vec::new(),
        children: None,
        asleep: None,
        costs: None,
        more_threads: None,
        at: vec![lock(2, 3.49e9, 1.7e9), lock(16, 3.49e9, 0.9e9)],
        fixes: vec![
            fix(Edit::SplitLock(ObjectId(0), 8), 0.49, (0.49, 0.49)),
            fix(Edit::Scale(vec![engine::program::FunctionRef(0)], 0.5), 0.32, (0.02, 0.32)),
        ],
        locks: vec![LockUse {
            lock: "mutex registry.gate".into(),
            locks: 1,
            held_share: 0.63,
            as_recorded: false,
            waits: 10_234,
            waited_ns: 9.2e9,
            under: holder.into_iter().collect(),
        }],
        functions: vec![FunctionUse {
            function: "digest_row(unsigned int)".into(),
            computes: 0.62,
            tenth: Some(engine::limit::Tenth { faster: 0.06, slower: 0.064 }),
            kernel: None,
        }],
        threads: vec![ThreadUse {
            names: (1..=4).map(|number| format!("w/{number}")).collect(),
            running: 0.25,
            ready: 0.01,
            spinning: 0.0,
            lock: 0.73,
            other: 0.01,
        }],
    };
    (report, limits, About { name: "hot".into(), file: "hot.lp".into(), threads: 5, ..About::default() })
}

fn shown(of: &(Report, Limits, About), all: bool, style: &Style) -> String {
    let mut out = Vec::new();
    write(&of.0, &of.1, &of.2, all, style, &mut out).expect("written");
    String::from_utf8(out).expect("text")
}

#[test]
fn the_first_screen_in_80_columns_is_its_snapshot() {
    let text = shown(&hot(), false, &NARROW);
    check_golden(concat!(env!("CARGO_MANIFEST_DIR"), "/src/present/snapshots/screen-80.txt"), &text);
}

/// Changes for a lock of a library, for one that was not recorded, and for one that does not limit have different
/// words.
#[test]
fn fixes_that_are_not_for_the_limiting_lock_have_their_own_words() {
    let (report, mut limits, about) = hot();
    let part = engine::experiment::ComputePart { thread: 0, from: 0, to: 1, function: None };
    let change = |edit, function: Option<&str>| {
        let fix = &limits.fixes[0];
        Fix { edit, function: function.map(str::to_owned), ..fix.clone() }
    };
    let call = engine::program::FunctionRef(0);
    limits.fixes = vec![
        change(Edit::Processes(vec![ObjectId(0)]), None),
        change(Edit::Divide(part.clone(), 4), None),
        change(Edit::Divide(part, 4), Some("digest_row(unsigned int)")),
        change(Edit::FewerCalls(call, 0.5), Some("__GI___libc_write")),
        change(Edit::MoveOut(call, vec![ObjectId(0)]), Some("rust_locks::update_ledger")),
    ];
    let text = shown(&(report, limits, about), false, &NARROW);
    for (what, gain) in [
        ("processes instead of threads", "up to -49 %"),
        ("divide that work among 4 threads", "-49 %"),
        ("divide digest_row among 4 threads", "-49 %"),
        ("half as many calls of write", "-49 ±7 %"),
        ("move update_ledger out of the lock", "-49 ±7 %"),
    ] {
        let line = text.lines().find(|line| line.contains(what)).unwrap_or_else(|| panic!("{what}: {text}"));
        assert!(line.contains(gain) && line.contains("(-59 % on 16 CPUs)"), "{line}");
    }
}

/// The text has not only "not known", but also the lock's name, its waits, and the overhead with which the lock is
/// recorded.
#[test]
fn a_lock_that_was_not_recorded_is_named_with_the_overhead_to_record_it() {
    let (report, mut limits, about) = hot();
    for limit in &mut limits.at {
        limit.kind = LimitKind::LocksNotRecorded {
            word: "futex registry.gate".into(),
            waiting: 0.54,
            is_lock: true,
            why: NotSimulated::NotRecorded,
            cost: Some(0.39),
        };
    }
    limits.fixes.clear();
    let text = shown(&(report, limits, about), false, &NARROW);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("LIMIT probably lock registry.gate: a thread waits 54 % of the time for it."),
        "{text}"
    );
    assert!(words.contains("or give --overhead 60%."), "{text}");
    assert!(words.contains("NEXT longpole record --overhead 60% -p hot"), "{text}");
    assert_eq!(
        [unrecorded::overhead_for(0.001), unrecorded::overhead_for(0.95), unrecorded::overhead_for(f64::NAN)],
        [Some("5%".to_owned()), None, None]
    );
}

/// The lock that three of four threads wait for is in the first lines.
#[test]
fn the_limit_the_fix_and_the_holder_are_in_the_first_lines() {
    let text = shown(&hot(), false, &NARROW);
    let top: Vec<&str> = text.lines().take(8).collect();
    let words = top.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("LIMIT lock registry.gate: 3 of 4 threads wait for it."), "{text}");
    assert!(
        words.contains("Its holder runs digest_row (hot.c:10) 97 % of the time. More CPUs will not help."),
        "{text}"
    );
    assert!(words.contains("FIX split the lock in 8 -49 ±7 %"), "{text}");
    assert!(words.contains("+5 to -39 %"), "runs differ: {text}");
    assert!(!text.contains("clone3") && !text.contains("unsigned"), "{text}");
    assert!(text.contains("SURE   fair, 2 notes (longpole notes hot.lp)"), "{text}");
    assert!(
        text.contains("acquisitions of 1 object are not visible") && !text.contains("called too often"),
        "{text}"
    );
    assert!(shown(&hot(), true, &NARROW).contains("clone3"), "--all has it");
}

#[test]
fn the_first_screen_fits_and_is_safe_with_hostile_names() {
    let mut of = hot();
    let evil = "evil\u{1b}[2J\u{7}\nname\u{202e}";
    of.0.results[1].functions[0].function = evil.into();
    of.0.findings[0] = Finding::Other { kind: "new".into(), text: evil.into() };
    of.1.locks[0].lock = evil.into();
    of.1.threads[0].names = vec![evil.into()];
    of.1.fixes[0].function = Some(evil.into());
    of.2.name = evil.into();
    of.2.file = evil.into();
    for columns in [40, 80, 120] {
        for unicode in [true, false] {
            let style = Style { unicode, width: columns, ..NARROW };
            let text = shown(&of, false, &style);
            assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
            assert!(!text.contains('\u{202e}') && (unicode || text.is_ascii()), "{text:?}");
            assert!(text.lines().count() <= 40, "{text}");
            for line in text.lines() {
                assert!(width(line) <= columns, "{columns}: {line:?} in {text}");
            }
        }
    }
}

/// A function under FIX always has a row.
#[test]
fn a_function_under_fix_has_a_row_however_unsure_it_is() {
    // Each of two threads that are always busy is the longest in half of the runs: 45 ±54 %.
    let mut of = hot();
    for row in of.0.results.iter_mut().flat_map(|result| &mut result.functions) {
        row.tet_error_ns = Some(2e10);
    }
    let text = shown(&of, false, &NARROW);
    let rows = text.split("FUNCTIONS").nth(1).unwrap_or_default();
    assert!(rows.contains("digest_row"), "{text}");
    assert!(!rows.contains("parse_row"), "what is not above is as unsure, and is left out: {text}");
    // With ten samples of two threads, the lower bound would be negative: `≥-125 %`.
    assert!(rows.contains(" ≥0 %") && !rows.contains("≥-"), "{text}");
}

/// `make` and servers spend most of their time in the kernel: a column shows in which functions that is.
#[test]
fn the_column_kernel_is_shown_where_functions_run_in_the_kernel() {
    let of = |kernel| {
        let mut of = hot();
        of.1.functions.iter_mut().for_each(|used| used.kernel = kernel);
        let text = shown(&of, false, &NARROW);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        text.split("FUNCTIONS").nth(1).unwrap_or_default().to_owned()
    };
    let rows = of(Some(0.38));
    assert!(rows.contains(" CPU kernel  limits") && rows.contains(" 62 %   38 %  "), "{rows}");
    assert!(!of(None).contains("kernel") && !of(Some(0.01)).contains("kernel"));
}

#[test]
fn the_screen_of_an_empty_recording_is_short_and_not_sure() {
    let nothing = Limit::known(Cpus::ONE, 0.0, LimitKind::Nothing);
    let of = (
        Report::default(),
        Limits { at: vec![nothing], ..Limits::default() },
        About { name: "idle".into(), file: "idle.lp".into(), threads: 1, ..About::default() },
    );
    let text = shown(&of, false, &NARROW);
    assert!(text.contains("LIMIT  nothing to make faster") && text.lines().count() < 8, "{text}");
    assert!(text.contains("SURE   not known"), "a recording of 5 ms without a thread was sure: {text}");
}
