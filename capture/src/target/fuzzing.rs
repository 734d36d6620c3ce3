//! The readers of texts of /proc, for the crate `fuzz`.

use super::machine::busy::BusyTimes;
use super::machine::cgroup::folders_in;
use super::machine::cpus::CpuList;
use super::processes::invoked_path::place;
use super::processes::listening::listening;
use super::processes::maps::grouped;
use super::processes::proc_text::{MapLine, Stat, cpu_time_ns, status_field};
use super::processes::process::{comm, without_deleted};

/// Parses a text as each file of /proc.
pub fn proc_text(text: &str) {
    Stat::parse(text);
    for name in ["Tgid", "NSpid", "Uid", "Cpus_allowed_list"] {
        status_field(text, name).map(CpuList::parse);
    }
    cpu_time_ns(text);
    text.lines().filter_map(MapLine::parse).count();
    for module in grouped(text) {
        module.name();
        for &range in &module.ranges {
            module.file_offset(range.start);
            module.address(range.file_offset);
        }
    }
    BusyTimes::parse(text, 10_000_000);
    listening(text);
    comm(text);
    without_deleted(text);
}

/// The same for files whose content is bytes.
pub fn proc_bytes(bytes: &[u8]) {
    place(bytes);
    let text = String::from_utf8_lossy(bytes);
    for controller in ["cpu", "memory"] {
        folders_in(&text, bytes, controller);
    }
}
