//! Finds where Go's runtime keeps its goroutines, and the layout of a goroutine in memory. The source is the DWARF of
//! the unit `runtime`, with the types and variables of Go's `runtime/runtime2.go`, `proc.go` and `chan.go`.

use super::members::address;
use super::split::Slice;
use crate::catch_panic::catch_panic;
use crate::elf::{Bytes, ElfFile, debug_sections};
use gimli::{Dwarf, EndianSlice, LittleEndian, constants as dw};
use serde::{Deserialize, Serialize};

/// Largest distance of a member from the start of its type that is accepted, in bytes.
const FARTHEST: u64 = 2_000;
/// Largest number of units whose names are read.
const MOST_UNITS: usize = 100_000;

/// Where the runtime of a Go program keeps its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoRuntime {
    /// Linked address of `runtime.allgs`, a slice of pointers to all goroutines.
    pub goroutines: u64,
    /// Linked address of `runtime.waitReasonStrings`, an array of strings.
    pub reasons: u64,
    /// Distances of a goroutine's members from its start, in bytes.
    pub goroutine: GoroutineMembers,
    /// Distance of the channel's pointer from the start of a `sudog`, in bytes. A `sudog` is the runtime's entry for a
    /// goroutine that waits.
    pub channel: u32,
    /// Distance of the field with a channel's capacity from the channel's start, in bytes.
    pub capacity: u32,
}

/// Distances of members from the start of a goroutine (`runtime.g`), in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoroutineMembers {
    /// `stack`: the first address of the stack, and the address after its last byte (u64 each).
    pub stack: u32,
    /// `atomicstatus`, u32.
    pub status: u32,
    /// `waitreason`, u8.
    pub reason: u32,
    /// `startpc`, the first instruction of the function that the goroutine runs, u64.
    pub start: u32,
    /// `waiting`, the first `sudog` of a goroutine that waits for channels, u64.
    pub waiting: u32,
    /// `sched.sp`, u64.
    pub stack_pointer: u32,
    /// `sched.pc`, u64.
    pub instruction: u32,
    /// `sched.bp`, u64.
    pub frame_pointer: u32,
}

impl GoroutineMembers {
    /// Number of bytes from a goroutine's start to the end of its last member here, at most some kilobytes.
    pub fn bytes(&self) -> usize {
        let GoroutineMembers {
            stack,
            status,
            reason,
            start,
            waiting,
            stack_pointer,
            instruction,
            frame_pointer,
        } = *self;
        let ends = [
            stack.saturating_add(8),
            status,
            reason,
            start,
            waiting,
            stack_pointer,
            instruction,
            frame_pointer,
        ];
        ends.iter().max().map_or(0, |last| *last as usize + 8)
    }
}

impl GoRuntime {
    /// Finds Go's runtime in this binary. `None`: the runtime is not there, or the debug information is missing or not
    /// understood.
    pub fn of(elf: &ElfFile) -> Option<GoRuntime> {
        elf.section(b".gopclntab").or_else(|| elf.section(b".data.rel.ro.gopclntab"))?;
        let sections = debug_sections(elf).ok()?;
        catch_panic(|| {
            let dwarf = sections.borrow(|bytes: &Bytes| EndianSlice::new(bytes, LittleEndian));
            in_dwarf(&dwarf)
        })?
    }

    /// Whether all distances are small enough. The check is needed because a child process without rights may have
    /// given them.
    pub fn is_plausible(&self) -> bool {
        self.goroutine.bytes() as u64 <= 2 * FARTHEST
            && u64::from(self.channel.max(self.capacity)) <= FARTHEST
            && self.goroutines != 0
    }
}

fn in_dwarf(dwarf: &Dwarf<Slice<'_>>) -> Option<GoRuntime> {
    let mut found = Found::default();
    let mut units = dwarf.units();
    let mut left = MOST_UNITS;
    while let Some(header) = units.next().ok()?.filter(|_| left > 0) {
        left -= 1;
        let Ok(unit) = dwarf.unit(header) else { continue };
        // Each assembly file of the runtime has a unit with that name, too.
        if unit.name.is_some_and(|name| name.slice() == b"runtime") {
            found.read(dwarf, &unit).ok()?;
            if let Some(runtime) = found.runtime() {
                return Some(runtime);
            }
        }
    }
    None
}

/// A wanted member: its type's name, its own name, and where to store its distance.
type Wanted<'a> = (&'static [u8], &'static [u8], &'a mut Option<u32>);

/// The addresses and distances found so far.
#[derive(Default)]
struct Found {
    /// Distances of members, in the order of [`wanted`].
    members: [Option<u32>; 11],
    goroutines: Option<u64>,
    reasons: Option<u64>,
}

impl Found {
    fn read(&mut self, dwarf: &Dwarf<Slice<'_>>, unit: &gimli::Unit<Slice<'_>>) -> gimli::Result<()> {
        let mut entries = unit.entries();
        // The name and position of the type to which the next member entries belong.
        let mut of: Option<(Slice<'_>, isize)> = None;
        while let Some(entry) = entries.next_dfs()? {
            let name =
                || entry.attr_value(dw::DW_AT_name).and_then(|name| dwarf.attr_string(unit, name).ok());
            of = of.filter(|(_, depth)| entry.depth() > *depth);
            match entry.tag() {
                dw::DW_TAG_structure_type => of = name().map(|name| (name, entry.depth())),
                dw::DW_TAG_member => {
                    let (Some((of, _)), Some(name)) = (of, name()) else { continue };
                    let at = entry.attr_value(dw::DW_AT_data_member_location);
                    let at = at.and_then(|at| at.udata_value()).filter(|at| *at <= FARTHEST);
                    let place = wanted(&mut self.members)
                        .into_iter()
                        .find(|(kind, member, _)| of.slice() == *kind && name.slice() == *member);
                    if let (Some((.., place)), Some(at)) = (place, at) {
                        *place = place.or(u32::try_from(at).ok());
                    }
                }
                dw::DW_TAG_variable => match name().map(|name| name.slice()) {
                    Some(b"runtime.allgs") => self.goroutines = address(dwarf, unit, entry),
                    Some(b"runtime.waitReasonStrings") => self.reasons = address(dwarf, unit, entry),
                    _ => {}
                },
                _ => {}
            }
        }
        Ok(())
    }

    /// Go's runtime; `None` as long as a part of it has not been found.
    fn runtime(&self) -> Option<GoRuntime> {
        let [stack, status, reason, start, waiting, sched, sp, pc, bp, channel, capacity] = self.members;
        let goroutine = GoroutineMembers {
            stack: stack?,
            status: status?,
            reason: reason?,
            start: start?,
            waiting: waiting?,
            stack_pointer: sched?.saturating_add(sp?),
            instruction: sched?.saturating_add(pc?),
            frame_pointer: sched?.saturating_add(bp?),
        };
        Some(GoRuntime {
            goroutines: self.goroutines?,
            reasons: self.reasons?,
            goroutine,
            channel: channel?,
            capacity: capacity?,
        })
    }
}

fn wanted(found: &mut [Option<u32>; 11]) -> [Wanted<'_>; 11] {
    let [stack, status, reason, start, waiting, sched, sp, pc, bp, channel, capacity] = found;
    [
        (b"runtime.g", b"stack", stack),
        (b"runtime.g", b"atomicstatus", status),
        (b"runtime.g", b"waitreason", reason),
        (b"runtime.g", b"startpc", start),
        (b"runtime.g", b"waiting", waiting),
        (b"runtime.g", b"sched", sched),
        (b"runtime.gobuf", b"sp", sp),
        (b"runtime.gobuf", b"pc", pc),
        (b"runtime.gobuf", b"bp", bp),
        (b"runtime.sudog", b"c", channel),
        (b"runtime.hchan", b"dataqsiz", capacity),
    ]
}
