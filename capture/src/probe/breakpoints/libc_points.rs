//! Finds the places of probes in a C library's file, and the cookie by which the kernel program knows what each probe
//! is for.

use std::collections::BTreeMap;

use engine::event::{GapReason, Note, NoteKind, OperationsTried};
use probe_abi::{
    LibcCookie, LibcFunction, LibcSite, ObjectFrom, OutcomeFrom, Part, SecondFrom, SyncFamily, SyncOperation,
};

use symbols::{CodePlace, ErrnoPlace, LibcCall, LibcFunctions};

use super::libc_files::LibcFile;
use super::lock_probes::COUNTERS_PER_PROCESS;

/// A device number in the kernel's encoding: 12 bits of major number, 20 of minor number.
pub(crate) fn kernel_device(device: u64) -> u64 {
    u64::from(libc::major(device)) << 20 | u64::from(libc::minor(device))
}

/// A file's sites, to which the probes of its calls refer: the loader's start, then one for each function. A function
/// that is recorded as one operation has a site for each `ret`.
pub(crate) fn sites_of(file: &LibcFile) -> Vec<LibcSite> {
    let functions = &file.functions;
    let (errno_known, errno_slot, errno_distance) = match functions.errno {
        Some(ErrnoPlace::At(distance)) => (1, 0, distance),
        Some(ErrnoPlace::In(slot)) => (1, slot, 0),
        None => (0, 0, 0),
    };
    let (text_from, text_to) = if functions.is_static && !file.is_loader { (0, 0) } else { functions.text };
    let site = |entry: u64| LibcSite {
        entry,
        text_from,
        text_to,
        errno_slot,
        errno_distance,
        errno_known,
        layout: functions.layout as u32,
    };
    let start = functions.start.map_or(0, |place| place.address);
    std::iter::once(site(start)).chain(seen(functions).map(|(_, place)| site(place.address))).collect()
}

/// The places that have a site: entries of functions, or the `ret`s of functions that are recorded as one operation.
fn seen(functions: &LibcFunctions) -> impl Iterator<Item = (&LibcCall, CodePlace)> {
    functions.functions.iter().flat_map(|call| {
        let places = if call.entry_is_closed { call.leaves.clone() } else { vec![call.entry] };
        places.into_iter().map(move |place| (call, place))
    })
}

/// Offsets of probes in the file, each with the probe's cookie.
pub(crate) fn points(
    slot: usize,
    file: &LibcFile,
    first_site: u16,
    families: &[SyncFamily],
    with_start: bool,
) -> Vec<(u64, LibcCookie)> {
    let no_function = LibcFunction {
        operation: 0,
        object: ObjectFrom::Nothing,
        second: SecondFrom::Nothing,
        outcome: OutcomeFrom::Nothing,
        looks_at_mutex: false,
    };
    let no_call = |part| LibcCookie { part, function: no_function, site: first_site, counters: 0 };
    let mut points = Vec::new();
    if let (true, true, Some(start)) = (file.is_loader, with_start, file.functions.start) {
        points.push((start.offset, no_call(Part::Loader)));
    }
    let mut shared_places = BTreeMap::new();
    for (site, (call, place)) in (first_site.saturating_add(1)..).zip(seen(&file.functions)) {
        let family = call.operation.family();
        if !families.contains(&family) {
            continue;
        }
        let part = match call.operation {
            SyncOperation::ThreadExit => Part::Gone,
            _ if call.entry_is_closed => Part::Whole,
            _ => Part::Enter,
        };
        let counters = u16::try_from(slot * COUNTERS_PER_PROCESS + family as usize).unwrap_or(0);
        points.push((place.offset, LibcCookie { part, function: call.function, site, counters }));
        if !call.entry_is_closed {
            // Several functions may share such a place, which must get only one probe.
            shared_places.extend(call.leaves.iter().map(|place| (place.offset, Part::Leave)));
            shared_places.extend(call.ran.iter().map(|place| (place.offset, Part::Ran)));
        }
    }
    points.extend(shared_places.into_iter().map(|(offset, part)| (offset, no_call(part))));
    points
}

/// A note that operations of a family are missing from here on. `tried`: the family never had probes, for this reason.
pub(crate) fn off_note(time_ns: u64, pid: u32, family: SyncFamily, tried: Option<OperationsTried>) -> Note {
    let reason = GapReason::OperationsOff { family: family as u8, tried };
    Note { time_ns, kind: NoteKind::Gap { pid, cpu: None, until_ns: u64::MAX, lost: 0, reason } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{path::Path, sync::Arc};
    use symbols::binary::Binary;

    fn call(operation: SyncOperation, entry: u64, leaves: &[u64], entry_is_closed: bool) -> LibcCall {
        let place = |offset: u64| CodePlace { address: offset + 0x1000, offset };
        let function = LibcFunction {
            operation: operation as u8,
            object: ObjectFrom::Argument,
            second: SecondFrom::Nothing,
            outcome: OutcomeFrom::Error,
            looks_at_mutex: false,
        };
        LibcCall {
            name: "f",
            operation,
            function,
            entry: place(entry),
            entry_is_closed,
            leaves: leaves.iter().map(|&offset| place(offset)).collect(),
            ran: Vec::new(),
        }
    }

    fn file() -> LibcFile {
        let functions = vec![
            call(SyncOperation::MutexLock, 100, &[110, 150], false),
            call(SyncOperation::MutexTimedLock, 120, &[150], false),
            call(SyncOperation::SpinLock, 200, &[210, 220], true),
            call(SyncOperation::ThreadExit, 300, &[], false),
        ];
        LibcFile {
            id: 3,
            name: "libc.so.6".into(),
            file: Arc::new(Binary::open(Path::new("/dev/null"), "libc.so.6").expect("open")),
            functions: Arc::new(LibcFunctions { functions, ..LibcFunctions::default() }),
            is_loader: false,
        }
    }

    #[test]
    fn each_place_in_a_libc_gets_one_probe_and_each_call_a_site() {
        let file = file();
        let points = points(2, &file, 40, &SyncFamily::ALL, true);
        let parts: Vec<(u64, Part, u16)> =
            points.iter().map(|(offset, cookie)| (*offset, cookie.part, cookie.site)).collect();
        assert_eq!(
            parts,
            [
                (100, Part::Enter, 41),
                (120, Part::Enter, 42),
                (210, Part::Whole, 43),
                (220, Part::Whole, 44),
                (300, Part::Gone, 45),
                (110, Part::Leave, 40),
                (150, Part::Leave, 40),
            ]
        );
        let sites = sites_of(&file);
        assert_eq!(sites.len(), 6);
        assert_eq!(sites[3].entry, 0x1000 + 210, "of what is seen as a whole it is where it is seen");
        assert_eq!(points[0].1.counters, 2 * COUNTERS_PER_PROCESS as u16 + SyncFamily::Mutex as u16);
        assert_eq!(points[2].1.counters, 2 * COUNTERS_PER_PROCESS as u16 + SyncFamily::Spin as u16);
    }

    #[test]
    fn a_lock_family_that_is_off_has_no_probe() {
        let points = points(0, &file(), 0, &[SyncFamily::Thread], true);
        assert_eq!(points.len(), 1);
        assert_eq!(points[0].0, 300);
    }

    #[test]
    fn device_numbers_are_those_of_the_kernel() {
        assert_eq!(kernel_device(libc::makedev(0, 4)), 4);
        assert_eq!(kernel_device(libc::makedev(8, 300)), 8 << 20 | 300);
    }
}
