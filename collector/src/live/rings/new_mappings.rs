//! New mappings of processes, as changes for the main loop.

use crate::live::main_loop::{ChangeKind, ProcessChange};
use capture::probe::NewMapping;
use capture::target::is_c_library;
use std::collections::BTreeMap;

/// One change for each process, with the time of the process's first mapping.
pub(super) fn mapped(mappings: Vec<NewMapping>) -> Vec<ProcessChange> {
    let mut changes: BTreeMap<u32, (u64, bool)> = BTreeMap::new();
    for NewMapping { pid, time_ns, path, .. } in mappings {
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        // A mapping without a file is code that the program generated, not a library. Process 0 stands for lost
        // records: any process may have mapped anything.
        let is_file = path.starts_with(b"/") && !path.starts_with(b"//") && !path.starts_with(b"/memfd:");
        if pid != 0 && !is_file {
            continue;
        }
        let is_libc = pid == 0 || is_c_library(&String::from_utf8_lossy(name));
        let (first_ns, libc) = changes.entry(pid).or_insert((time_ns, false));
        *first_ns = time_ns.min(*first_ns);
        *libc |= is_libc;
    }
    let change = |(pid, (time_ns, libc))| ProcessChange { pid, time_ns, kind: ChangeKind::Mapped { libc } };
    changes.into_iter().map(change).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_mappings_of_a_process_are_one_change() {
        let new = |pid, time_ns, path: &str| NewMapping {
            pid,
            time_ns,
            path: path.into(),
            ..NewMapping::default()
        };
        let changes = mapped(vec![
            new(7, 30, "/lib/libm.so.6"),
            new(7, 20, "/lib/libc.so.6"),
            new(8, 40, "/opt/plugin.so"),
            new(9, 50, "//anon"),
            new(9, 51, "/memfd:code (deleted)"),
            new(9, 52, "[vdso]"),
        ]);
        let change = |pid, time_ns, libc| ProcessChange { pid, time_ns, kind: ChangeKind::Mapped { libc } };
        assert_eq!(changes, [change(7, 20, true), change(8, 40, false)]);
        assert_eq!(mapped(vec![new(0, 5, "")]), [change(0, 5, true)], "something was missed");
    }
}
