//! Programs of the zoo, launched and attached. How long things took is not asked: the machine may be shared.

use longpole_tests::zoo::{Bounds, ENTRIES, Entry, Keep, judge};
use longpole_tests::{binary, skip_unless_built, skip_unless_live};

fn entry(name: &str) -> &'static Entry {
    ENTRIES.iter().find(|entry| entry.name == name).expect("a program of the zoo")
}

fn holds(keep: &Keep, entry: &Entry, program: &str) {
    let launched = keep.launched(entry, program);
    let attached = keep.attached(entry, program, None);
    for (mode, figures) in [("launched", launched), ("attached", attached)] {
        let figures = figures.unwrap_or_else(|why| panic!("{} {mode}: {why}", entry.name));
        let mut cells = judge(entry.leads, &figures, &Bounds::SHARED);
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
    a_loop_that_yields: "yield-lock",
    a_bounded_queue: "bounded-queue",
    a_mutex_of_rust: "rust-std",
    a_channel: "crossbeam",
}
