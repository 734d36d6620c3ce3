//! Measures the cost of a hit of a function probe on this machine, by three small functions of longpole itself. The
//! kernel programs and maps for this are separate ones, so that a recording can begin at the same time.

use std::arch::naked_asm;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use aya::Ebpf;
use engine::event::{HitCost, HitCosts};
use probe_abi::Record;

use symbols::binary::Binary;

use crate::probe::breakpoints::{FunctionProbes, LinkKeeper};
use crate::probe::error::{ProbeError, ProbeErrorKind};
use crate::probe::kernel::KernelLayout;
use crate::probe::load::{LoadOptions, load};
use crate::probe::options::ProbeFunction;
use crate::probe::sources::{Rings, now_ns};

/// Number of hits of each kind: enough for a steady median, and two milliseconds if a hit takes 10 µs. The records of a
/// batch fit into the smallest ring.
const BATCHES: usize = 4;
const BATCH: usize = 50;
/// Bytes of each ring: enough for the records of several batches.
const RING_BYTES: usize = 64 << 10;
/// The functions' first number, beyond all numbers with counters: no rate limit applies to them.
pub(crate) const FIRST_NUMBER: u32 = u32::MAX - 3;

/// A function whose first instruction the kernel emulates.
#[unsafe(naked)]
extern "C" fn emulated() {
    naked_asm!("push rbp", "pop rbp", "ret")
}

/// A function whose first instruction the kernel must single-step.
#[unsafe(naked)]
extern "C" fn stepped() {
    naked_asm!("mov eax, 1", "ret")
}

/// A function whose exit follows its entry by one byte.
#[unsafe(naked)]
extern "C" fn returning() {
    naked_asm!("nop", "ret")
}

/// Starts the thread that measures.
pub(crate) fn begin(
    kernel: Arc<KernelLayout>,
    keeper: Arc<LinkKeeper>,
) -> io::Result<JoinHandle<Result<HitCosts, ProbeError>>> {
    std::thread::Builder::new().name("longpole-cost".into()).spawn(move || {
        // `loaded` lives until the end, since the reader of the programs' warnings uses one of its maps.
        let mut loaded = load(
            &kernel,
            &LoadOptions {
                children: false,
                exchanges: false,
                thread_contexts: false,
                ring_bytes: RING_BYTES,
                max_rate_hz: 0,
                max_depth: 0,
                functions: 0,
                sampling: None,
            },
        )?;
        loaded.programs(&kernel, &[])?;
        let mut functions =
            FunctionProbes::new(Arc::clone(&loaded.shared), keeper, loaded.first_libc_counters);
        loaded.shared.track(std::process::id());
        measure(&mut loaded.ebpf, &mut functions, &mut Rings::new(loaded.rings))
    })
}

/// Measures the three functions. The programs are attached to nothing else.
fn measure(
    ebpf: &mut Ebpf,
    functions: &mut FunctionProbes,
    rings: &mut Rings,
) -> Result<HitCosts, ProbeError> {
    let kinds: [extern "C" fn(); 3] = [emulated, stepped, returning];
    let failed = |what: &str| ProbeError::new(ProbeErrorKind::Failed, what, "run `longpole doctor`");
    let own = Binary::open(Path::new("/proc/self/exe"), "longpole")
        .map_err(|error| failed(&format!("longpole cannot open its own program: {error}")))?;
    let (own, mut probes) = (Arc::new(own), Vec::new());
    for (kind, id) in kinds.into_iter().zip(FIRST_NUMBER..) {
        let offset = own_offset(kind as *const () as usize)
            .ok_or_else(|| failed("longpole cannot find its own code in memory"))?;
        // The third function has an entry probe on its `ret`. For the kernel an exit is no different from an entry, and
        // hardly for the programs.
        let entry_offset = if id == FIRST_NUMBER + 2 { offset + 1 } else { offset };
        probes.push(ProbeFunction {
            id,
            pid: None,
            binary: Arc::clone(&own),
            entry_offset,
            exit_offsets: Vec::new(),
            entry_stepped: false,
            exits_stepped: false,
            pair: None,
        });
    }
    let plain = kinds.map(|kind| {
        let calls = (0..BATCHES).flat_map(|_| time_calls(kind));
        median(calls.map(|(from, until)| until - from).collect()).middle
    });
    let own = std::process::id();
    functions.add(ebpf, own, now_ns(), probes)?;
    let measured = kinds.map(|kind| {
        let (mut calls, mut records) = (Vec::new(), Vec::new());
        for batch in 0..=BATCHES {
            let timed = time_calls(kind);
            let mut times = Vec::new();
            rings.drain(&mut |_, bytes| times.extend(Record::decode(bytes).map(|r| r.header().time_ns)));
            // The first batch runs with cold caches and does not count.
            if batch > 0 {
                calls.extend(timed);
                records.append(&mut times);
            }
        }
        (calls, records)
    });
    // Removing the probes takes some ten milliseconds, for which no other thread must wait.
    functions.remove_processes(&|_| true);
    let mut costs = [HitCost::default(); 3];
    for ((cost, (calls, mut records)), plain) in costs.iter_mut().zip(measured).zip(plain) {
        *cost = cost_of(&calls, &mut records, plain)
            .ok_or_else(|| failed("probes on longpole's own functions were not hit"))?;
    }
    let [entry, entry_stepped, exit] = costs;
    Ok(HitCosts { entry, entry_stepped, exit })
}

fn time_calls(function: extern "C" fn()) -> Vec<(u64, u64)> {
    let time = |_| {
        let from = now_ns();
        std::hint::black_box(function)();
        (from, now_ns())
    };
    (0..BATCH).map(time).collect()
}

/// The cost of a hit, from the beginning and end of each call and the times of the records. A call without a probe takes
/// `plain` nanoseconds; half of that (reading the clock) lies on each side of the record's time.
fn cost_of(timed: &[(u64, u64)], times: &mut [u64], plain: u64) -> Option<HitCost> {
    times.sort_unstable();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for &(from, until) in timed {
        let at = times.partition_point(|time| *time < from);
        if let Some(time) = times.get(at).filter(|time| **time <= until) {
            before.push(time - from);
            after.push(until - time);
        }
    }
    if before.len() < timed.len() / 2 {
        return None;
    }
    let (before, after) = (median(before), median(after));
    let own = |side: u64| u32::try_from(side.saturating_sub(plain / 2)).unwrap_or(u32::MAX);
    Some(HitCost {
        before_ns: own(before.middle),
        after_ns: own(after.middle),
        spread_ns: u32::try_from(before.spread.saturating_add(after.spread)).unwrap_or(u32::MAX),
    })
}

struct Median {
    middle: u64,
    /// Distance from the lower to the upper quartile.
    spread: u64,
}

fn median(mut values: Vec<u64>) -> Median {
    values.sort_unstable();
    let at = |part: usize| values.get(values.len() * part / 4).copied().unwrap_or(0);
    Median { middle: at(2), spread: at(3) - at(1) }
}

/// The offset in this process's program file of an address.
fn own_offset(address: usize) -> Option<u64> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let own = std::fs::read_link("/proc/self/exe").ok()?;
    maps.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let offset = words.nth(1)?;
        let path = words.nth(2)?;
        let start = usize::from_str_radix(start, 16).ok()?;
        let end = usize::from_str_radix(end, 16).ok()?;
        let offset = u64::from_str_radix(offset, 16).ok()?;
        let ours = Path::new(path) == own && (start..end).contains(&address);
        ours.then(|| offset + (address - start) as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hit_s_cost_is_divided_at_its_record() {
        let timed: Vec<(u64, u64)> = (0..100).map(|call| (call * 1_000, call * 1_000 + 600)).collect();
        let mut times: Vec<u64> = timed.iter().map(|(from, _)| from + 400).collect();
        let cost = cost_of(&timed, &mut times, 100).expect("hits");
        assert_eq!((cost.before_ns, cost.after_ns, cost.spread_ns), (350, 150, 0));
        // If a few records are missing, a cost is still measured; if too many are missing, there is none.
        assert!(cost_of(&timed, &mut times[..60].to_vec(), 100).is_some());
        assert_eq!(cost_of(&timed, &mut times[..40].to_vec(), 100), None);
        assert_eq!(cost_of(&timed, &mut [], 100), None);
    }

    #[test]
    fn the_calibration_function_is_found_in_this_program() {
        let offset = own_offset(emulated as *const () as usize).expect("mapped");
        let bytes = std::fs::read("/proc/self/exe").expect("program");
        let at = usize::try_from(offset).expect("small");
        assert_eq!(bytes[at..at + 3], [0x55, 0x5d, 0xc3]);
        assert_eq!(own_offset(0), None);
    }
}
