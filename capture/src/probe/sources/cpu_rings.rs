//! The rings that the kernel programs write to: one for each CPU, so that CPUs do not wait for each other. All together
//! they have as much memory as a machine of that size can spare.

use std::{
    io,
    ops::RangeInclusive,
    os::fd::{AsFd as _, AsRawFd, FromRawFd as _, OwnedFd},
};

use aya::{
    Ebpf,
    maps::{Map, MapData, RingBuf},
};

use crate::probe::error::ProbeError;
use crate::target::machine::memory;

/// Names of the kernel programs' arrays of rings.
pub(crate) const RECORDS: &str = "RINGS";
pub(crate) const SAMPLES: &str = "SAMPLE_RINGS";

/// Least and largest size of a ring, bytes. The least one holds some milliseconds of a busy CPU; a size above the
/// largest is a mistake.
const EACH: RangeInclusive<usize> = 4096..=1 << 28;
/// Largest size of all rings together, bytes, whatever size the user wants.
const MOST_OF_ALL: usize = 2 << 30;
/// Default size: at a million records a second 8 MiB hold a sixth of a second; 1 MiB holds the records between
/// two turns at four hundred thousand a second.
const USUAL: RangeInclusive<usize> = 1 << 20..=8 << 20;
const USUAL_OF_ALL: usize = 256 << 20;

/// Bytes of a CPU's ring unless the user asks otherwise.
pub fn usual_bytes() -> usize {
    let cpus = aya::util::nr_cpus().map_or(1, |cpus| cpus.get() as usize);
    share(cpus.min(probe_abi::MAX_RINGS), at_hand(USUAL_OF_ALL), USUAL)
}

/// Bytes for all rings together: at most `most`, and at most an eighth of the memory that this process may still
/// take. The kernel allocates all of it at once, and a process over its limit is killed.
pub(crate) fn at_hand(most: usize) -> usize {
    let available = memory::available_bytes(std::process::id()).map_or(usize::MAX, |bytes| bytes as usize);
    most.min(available / 8)
}

/// Bytes of each of `rings` rings if the user asks for `wanted`: a power of two.
pub(crate) fn bytes(rings: usize, wanted: usize) -> usize {
    let wanted = wanted.clamp(*EACH.start(), *EACH.end()).next_power_of_two();
    wanted.min(share(rings, MOST_OF_ALL, EACH))
}

/// Bytes of each of `rings` rings that share `of` bytes: a power of two within the bounds `each`.
pub(crate) fn share(rings: usize, of: usize, each: RangeInclusive<usize>) -> usize {
    let share = (of / rings.max(1)).clamp(*each.start(), *each.end());
    1 << share.ilog2()
}

/// New rings that are to be put into one of the programs' arrays.
pub(crate) struct Placing {
    array: OwnedFd,
    name: &'static str,
    rings: Vec<OwnedFd>,
}

/// Makes rings of `bytes` bytes each. The programs write to them once they have been put into the programs'
/// array.
pub(crate) fn make(
    ebpf: &Ebpf,
    array: &'static str,
    rings: usize,
    bytes: usize,
) -> Result<(Vec<RingBuf<MapData>>, Placing), ProbeError> {
    let failed = |error: &(dyn std::error::Error + 'static)| {
        ProbeError::from_cause(format_args!("map {array}"), error)
    };
    let Some(Map::ArrayOfMaps(places)) = ebpf.map(array) else {
        return Err(crate::probe::error::no_map(array));
    };
    let places = places.fd().as_fd().try_clone_to_owned().map_err(|error| failed(&error))?;
    let mut placing = Placing { array: places, name: array, rings: Vec::with_capacity(rings) };
    let mut made = Vec::with_capacity(rings);
    for _ in 0..rings {
        let map = create(bytes).map_err(|error| failed(&error))?;
        placing.rings.push(map.try_clone().map_err(|error| failed(&error))?);
        let map = MapData::from_fd(map).and_then(Map::from_map_data).map_err(|error| failed(&error))?;
        made.push(RingBuf::try_from(map).map_err(|error| failed(&error))?);
    }
    Ok((made, placing))
}

/// `union bpf_attr` for `BPF_MAP_UPDATE_BATCH`.
#[repr(C)]
struct Batch {
    from: u64,
    to: u64,
    keys: u64,
    values: u64,
    count: u32,
    map: i32,
    element_flags: u64,
    flags: u64,
}

impl Placing {
    /// Puts all rings into the array with one call. After each change the kernel waits until no CPU can still use the
    /// old content, which takes a tenth of a second and more on a busy machine.
    pub(crate) fn put(self) -> Result<(), ProbeError> {
        const UPDATE_BATCH: libc::c_int = 26;
        let keys: Vec<u32> = (0..self.rings.len() as u32).collect();
        let values: Vec<i32> = self.rings.iter().map(AsRawFd::as_raw_fd).collect();
        let mut batch = Batch {
            from: 0,
            to: 0,
            keys: keys.as_ptr() as u64,
            values: values.as_ptr() as u64,
            count: keys.len() as u32,
            map: self.array.as_raw_fd(),
            element_flags: 0,
            flags: 0,
        };
        // SAFETY: the kernel reads `batch`, whose length it gets, and the keys and values that `batch` counts. It
        // writes only to the batch's `count`. All of them live until it returns.
        match unsafe { libc::syscall(libc::SYS_bpf, UPDATE_BATCH, &raw mut batch, size_of::<Batch>()) } {
            0 => Ok(()),
            _ => Err(ProbeError::from_cause(format_args!("map {}", self.name), &io::Error::last_os_error())),
        }
    }
}

/// `union bpf_attr` for `BPF_MAP_CREATE`, up to the last field that a ring needs.
#[repr(C)]
struct Wanted {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

fn create(bytes: usize) -> io::Result<OwnedFd> {
    const CREATE: libc::c_int = 0;
    const RING: u32 = 27;
    let entries = u32::try_from(bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
    let wanted = Wanted { kind: RING, key_bytes: 0, value_bytes: 0, entries, flags: 0 };
    // SAFETY: the kernel reads `wanted`, whose length it gets.
    let made = unsafe { libc::syscall(libc::SYS_bpf, CREATE, &raw const wanted, size_of::<Wanted>()) };
    let made = i32::try_from(made).map_err(|_| io::ErrorKind::InvalidData)?;
    if made < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor with no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(made) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::sources::sampling_clock;
    use engine::event::CallGraph;

    /// Each CPU has its own ring, since CPUs that share one wait for each other at each record.
    #[test]
    fn every_cpu_has_a_ring_and_all_together_are_bounded() {
        for cpus in [1, 2, 3, 8, 16, 17, 64, 128, 192, 256, 1024] {
            let usual = share(cpus, USUAL_OF_ALL, USUAL);
            assert!(usual.is_power_of_two() && usual >= 1 << 20);
            assert!(usual * cpus <= USUAL_OF_ALL || usual == 1 << 20, "{cpus} CPUs: {usual}");
            let largest = bytes(cpus, usize::MAX);
            assert!(largest.is_power_of_two() && largest * cpus <= MOST_OF_ALL, "{cpus} CPUs: {largest}");
            for how in [CallGraph::Fp, CallGraph::Auto, CallGraph::Dwarf] {
                let of_samples = sampling_clock::ring_bytes(how, cpus, |most| most);
                let of_little = sampling_clock::ring_bytes(how, cpus, |most| most.min(16 << 20));
                assert!(of_little * cpus <= 16 << 20 || of_little <= 256 << 10, "{cpus}: {of_little}");
                assert!(
                    of_samples.is_power_of_two() && of_samples * cpus <= 256 << 20,
                    "{cpus}: {of_samples}"
                );
            }
        }
        assert_eq!([2, 16, 64].map(|cpus| share(cpus, USUAL_OF_ALL, USUAL) >> 20), [8, 8, 4]);
        assert_eq!([0, 5000, 64 << 10].map(|wanted| bytes(64, wanted)), [4096, 8192, 64 << 10]);
    }
}
