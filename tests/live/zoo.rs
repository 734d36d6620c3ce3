//! Programs of the zoo, launched and attached. Times are not judged, because the machine may be shared.

use longpole_tests::zoo::{Bounds, ENTRIES, Entry, Keep, judge, missing};
use longpole_tests::{binary, skip_if, skip_unless_built, skip_unless_live};

fn entry(name: &str) -> &'static Entry {
    ENTRIES.iter().find(|entry| entry.name == name).expect("a program of the zoo")
}

fn holds(keep: &Keep, entry: &Entry, program: &str) {
    let launched = keep.launched(entry, program);
    let attached = keep.attached(entry, program, None);
    for (mode, figures) in [("launched", launched), ("attached", attached)] {
        let figures = figures.unwrap_or_else(|why| panic!("{} {mode}: {why}", entry.name));
        let mut cells = judge(&entry.truth, &figures, &Bounds::SHARED);
        assert!(cells.len() >= 6, "{cells:?}");
        cells.retain(|cell| !cell.holds);
        assert!(cells.is_empty(), "{} {mode}: {cells:#?}", entry.name);
    }
}

macro_rules! programs {
    ($($test:ident: $name:literal,)*) => {$(
        #[test]
        fn $test() {
            skip_unless_live!();
            let folder = tempfile::tempdir().unwrap();
            let keep = Keep::new(binary(), folder.path(), 1, false).unwrap();
            let entry = entry($name);
            let program = skip_unless_built!(keep.build(entry));
            holds(&keep, entry, &program);
        }
    )*};
}

programs! {
    a_lock_that_yields_in_a_loop_has_right_answers: "yield-lock",
    a_bounded_queue_has_right_answers: "bounded-queue",
    a_mutex_of_rust_has_right_answers: "rust-std",
    a_crossbeam_channel_has_right_answers: "crossbeam",
}

/// Records a program on two CPUs, launched and attached, and checks the predicted gain of the second CPU.
fn gains(keep: &Keep, entry: &Entry, program: &str, range: std::ops::Range<f64>) {
    let launched = keep.launched(entry, program);
    let attached = keep.attached(entry, program, None);
    for (mode, figures) in [("launched", launched), ("attached", attached)] {
        let figures = figures.unwrap_or_else(|why| panic!("{} {mode}: {why}", entry.name));
        assert_eq!(figures.recorded, [figures.alone], "{} {mode}", entry.name);
        for answers in &figures.answers {
            assert!(range.contains(&answers.speedup), "{} {mode}: {answers:?}", entry.name);
            assert_eq!(answers.deadlock, None, "{} {mode}", entry.name);
        }
    }
}

macro_rules! runtimes {
    ($($test:ident: $name:literal gains $range:expr,)*) => {$(
        #[test]
        fn $test() {
            skip_unless_live!();
            let entry = entry($name);
            skip_if!(missing(entry));
            let folder = tempfile::tempdir().unwrap();
            let keep = Keep::new(binary(), folder.path(), 1, false).unwrap();
            let program = skip_unless_built!(keep.build(entry));
            gains(&keep, entry, &program, $range);
        }
    )*};
}

// For each runtime, one program that scales and one that does not. The runtime's own threads and locks show only as
// waits, and must not hide the difference. The bounds allow what a busy machine leaves of speed-ups of 1.9, and of 1.0
// to 1.25.
runtimes! {
    java_fork_and_join_gains_from_a_second_cpu: "java-fork" gains 1.5..2.1,
    java_behind_a_monitor_gains_nothing_from_a_second_cpu: "java-monitor" gains 0.8..1.45,
    java_behind_a_lock_gains_nothing_from_a_second_cpu: "java-lock" gains 0.8..1.45,
    independent_goroutines_gain_from_a_second_cpu: "go-tiles" gains 1.5..2.1,
    go_behind_a_mutex_gains_nothing_from_a_second_cpu: "go-mutex" gains 0.8..1.45,
    independent_node_workers_gain_from_a_second_cpu: "node-apart" gains 1.4..2.1,
    node_behind_a_lock_gains_nothing_from_a_second_cpu: "node-lock" gains 0.8..1.45,
    python_outside_the_gil_gains_from_a_second_cpu: "python-zlib" gains 1.5..2.1,
    python_behind_the_gil_gains_nothing_from_a_second_cpu: "python-threads" gains 0.8..1.2,
    independent_tokio_tasks_gain_from_a_second_cpu: "tokio" gains 1.5..2.1,
    tokio_behind_a_mutex_gains_nothing_from_a_second_cpu: "tokio-mutex" gains 0.8..1.5,
}
