//! A session file's description of itself: the program, the machine, and the options.

use crate::plan::{Breakpoints, CapturePlan, TargetPlan};
use recording::{ClockAnchor, Meta};
use std::collections::BTreeMap;

/// Bytes of a command line that a recording keeps.
const MOST_COMMAND: usize = 64 << 10;

/// The description of a recording of these processes, which began at `clock`.
pub fn session_meta(capture: &CapturePlan, pids: &[u32], clock: ClockAnchor) -> Meta {
    let mut meta = Meta::of_this_machine(clock);
    let mut cpu_list = None;
    meta.command = match &capture.target {
        TargetPlan::Launch { command, .. } => {
            let mut room = MOST_COMMAND;
            let fits = |word: &&std::ffi::OsString| {
                room = room.saturating_sub(word.len());
                room > 0
            };
            command.iter().take_while(fits).map(|word| word.to_string_lossy().into_owned()).collect()
        }
        TargetPlan::Attach { pids } => pids.first().map(|&pid| command_line(pid)).unwrap_or_default(),
    };
    meta.pids = pids.to_vec();
    if let TargetPlan::Launch { cpus: Some(cpus), .. } = &capture.target {
        // The CPUs of the command count as the machine on which it was recorded.
        meta.cpu_count = u32::try_from(cpus.len()).unwrap_or(meta.cpu_count);
        cpu_list = Some(cpus.to_string());
    }
    let mut options = BTreeMap::from([
        ("children".to_owned(), capture.children.to_string()),
        ("uprobes".to_owned(), (capture.breakpoints != Breakpoints::None).to_string()),
        ("max-functions".to_owned(), capture.selection.max_functions.to_string()),
    ]);
    if !capture.selection.functions.is_empty() {
        options.insert("functions".to_owned(), capture.selection.functions.join(" "));
    }
    if !capture.selection.exclude.is_empty() {
        options.insert("exclude".to_owned(), capture.selection.exclude.join(" "));
    }
    options.extend(cpu_list.map(|cpus| ("cpu-list".to_owned(), cpus)));
    let numbers = [
        ("max-rate", capture.max_rate_hz),
        ("depth", capture.depth.map(u64::from)),
        ("ring-size", capture.ring_bytes.map(u64::from)),
    ];
    options
        .extend(numbers.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.to_string()))));
    meta.options = options;
    meta
}

/// The present command line of a process; the process may have overwritten it.
fn command_line(pid: u32) -> Vec<String> {
    let mut bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    bytes.truncate(MOST_COMMAND);
    let words = bytes.split(|&byte| byte == 0).filter(|word| !word.is_empty());
    words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}
