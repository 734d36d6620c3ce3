//! Ranks of an MPI job: processes that pass messages to each other. A rank that waits for a message polls for it, so it
//! keeps its CPU busy. (These criteria are longpole's own.)
//!
//! A stack shows such a wait if it has a blocking call of MPI, and if all code that runs inside this call belongs to MPI,
//! to the libraries under it, or to the C library. Copies of data, reductions and the user's own operators are work.

use crate::event::FunctionFact;
use crate::program::PlaceId;
use crate::program::naming::function_origin::{is_c_library, is_mpi, is_unnamed, without_version};
use crate::program::sampled::sampled_code::SampledCode;
use crate::timeline::{Birth, Thread, Timeline};
use rustc_hash::{FxHashMap, FxHashSet};

/// Calls that return only after another rank has acted. Sends are among them, because they wait for large messages to be
/// taken.
const BLOCKING: [&str; 52] = [
    "MPI_Recv",
    "MPI_Mrecv",
    "MPI_Send",
    "MPI_Ssend",
    "MPI_Rsend",
    "MPI_Sendrecv",
    "MPI_Sendrecv_replace",
    "MPI_Wait",
    "MPI_Waitall",
    "MPI_Waitany",
    "MPI_Waitsome",
    "MPI_Probe",
    "MPI_Mprobe",
    "MPI_Barrier",
    "MPI_Bcast",
    "MPI_Reduce",
    "MPI_Allreduce",
    "MPI_Reduce_scatter",
    "MPI_Reduce_scatter_block",
    "MPI_Gather",
    "MPI_Gatherv",
    "MPI_Allgather",
    "MPI_Allgatherv",
    "MPI_Scatter",
    "MPI_Scatterv",
    "MPI_Alltoall",
    "MPI_Alltoallv",
    "MPI_Alltoallw",
    "MPI_Scan",
    "MPI_Exscan",
    "MPI_Neighbor_allgather",
    "MPI_Neighbor_allgatherv",
    "MPI_Neighbor_alltoall",
    "MPI_Neighbor_alltoallv",
    "MPI_Neighbor_alltoallw",
    "MPI_Comm_create",
    "MPI_Comm_create_group",
    "MPI_Comm_dup",
    "MPI_Comm_free",
    "MPI_Comm_split",
    "MPI_Comm_split_type",
    "MPI_Comm_accept",
    "MPI_Comm_connect",
    "MPI_Comm_disconnect",
    "MPI_Win_create",
    "MPI_Win_allocate",
    "MPI_Win_free",
    "MPI_Win_fence",
    "MPI_Win_start",
    "MPI_Win_complete",
    "MPI_Win_wait",
    "MPI_Finalize",
];

/// Parts of names of functions that copy or compute data inside a call; below, beginnings of names of such binaries.
const WORK: [&str; 12] = [
    "memcpy",
    "memmove",
    "opal_datatype",
    "opal_convertor",
    "ompi_datatype",
    "ompi_op_",
    "MPIR_Localcopy",
    "MPIR_Typerep",
    "process_vm_",
    "writev",
    "sendmsg",
    "yaksu",
];
const WORK_BINARIES: [&str; 2] = ["mca_op_", "libyaksa"];

/// Libraries that MPI calls while it waits, and that other programs use, too.
const UNDER_MPI: [&str; 4] = ["libevent", "libibverbs", "libmlx", "librdmacm"];

/// What a stack shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::program) enum InMpi {
    /// No call of MPI.
    #[default]
    Outside,
    /// A call of MPI that works or does not wait.
    Works,
    /// A call of MPI, with this name, that waits for another rank.
    Waits(&'static str),
    /// Code of MPI, but no call. If the outer frames are missing, the call may be among them.
    CallMissing,
}

/// The ranks of a recording. All count as one job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::program) struct Mpi {
    /// For each stack of the timeline: what it shows; empty without calls of MPI.
    stacks: Vec<InMpi>,
    /// Indices in the timeline of the threads that call MPI, ascending.
    pub(in crate::program) callers: Vec<usize>,
    /// Processes that started the ranks and are no ranks, ascending.
    pub(in crate::program) launchers: Vec<u32>,
}

/// What one frame shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Frame {
    /// A call of MPI by the program; its name, if it waits for other ranks.
    Call(Option<&'static str>),
    /// Other code of MPI.
    Mpi,
    /// Code of a library under MPI, or of the C library.
    Under,
    /// Copies or computes data.
    Work,
    /// Any other code.
    #[default]
    Other,
}

impl Frame {
    fn of(function: &FunctionFact) -> Frame {
        let (name, module) = (function.name.as_str(), function.module.as_str());
        let is_work = || WORK.iter().any(|part| name.contains(part));
        if is_mpi(module) {
            return match called(name) {
                Some(call) => Frame::Call(BLOCKING.into_iter().find(|known| is_call(known, call))),
                None if is_work() || WORK_BINARIES.iter().any(|start| module.starts_with(start)) => {
                    Frame::Work
                }
                None => Frame::Mpi,
            };
        }
        // The C library's copying functions are without names where its symbols are missing.
        let is_unknown = || is_unnamed(name) && module != "[vdso]";
        match is_c_library(module) || UNDER_MPI.iter().any(|start| module.starts_with(start)) {
            true if is_work() || is_unknown() => Frame::Work,
            true => Frame::Under,
            false => Frame::Other,
        }
    }
}

/// The call of MPI that a function implements, without its prefix: `Recv` for `PMPI_Recv`, `recv` for Fortran's
/// `mpi_recv_`.
fn called(name: &str) -> Option<&str> {
    let name = without_version(name);
    let name = name.strip_prefix(['P', 'p']).unwrap_or(name);
    if let Some(call) = name.strip_prefix("MPI_") {
        return Some(call.strip_suffix("_c").unwrap_or(call));
    }
    let call = name.strip_prefix("mpi_")?.strip_suffix('_')?.trim_end_matches('_');
    Some(call.strip_suffix("_f08").unwrap_or(call))
}

fn is_call(known: &str, call: &str) -> bool {
    known.strip_prefix("MPI_").is_some_and(|known| known.eq_ignore_ascii_case(call))
}

/// What a stack shows; its innermost place comes first.
fn in_mpi(stack: &[PlaceId], places: &[Frame]) -> InMpi {
    let frames = || stack.iter().map(|place| places.get(place.0 as usize).copied().unwrap_or_default());
    let mut works = false;
    for frame in frames() {
        match frame {
            Frame::Call(Some(call)) if !works => return InMpi::Waits(call),
            Frame::Call(_) => return InMpi::Works,
            Frame::Mpi | Frame::Under => {}
            Frame::Work | Frame::Other => works = true,
        }
    }
    match frames().next() {
        Some(Frame::Mpi) if !works => InMpi::CallMissing,
        _ => InMpi::Outside,
    }
}

impl Mpi {
    /// Finds the ranks.
    pub(in crate::program) fn of(timeline: &Timeline, sampled: &SampledCode) -> Mpi {
        let places = sampled.of_places(timeline, Frame::of);
        if !places.iter().any(|place| matches!(place, Frame::Call(_))) {
            return Mpi::default();
        }
        let stacks: Vec<InMpi> = sampled.stacks().iter().map(|stack| in_mpi(stack, &places)).collect();
        let calls = |stack: u32| matches!(stacks.get(stack as usize), Some(InMpi::Works | InMpi::Waits(_)));
        let seen: FxHashSet<u32> = timeline
            .threads
            .iter()
            .filter(|thread| thread.samples.iter().any(|sample| calls(sample.stack)))
            .map(|thread| thread.pid)
            .collect();
        // The rank for which all others wait may have no sample in a call: its first thread is assumed to call MPI.
        let loaded = timeline.mappings.iter().filter(|mapping| {
            let file = mapping.path.rsplit('/').next().unwrap_or_default();
            file.starts_with("libmpi") && is_mpi(file)
        });
        let unseen: FxHashSet<u32> =
            loaded.map(|mapping| mapping.pid).filter(|pid| !seen.contains(pid)).collect();
        let does_call = |thread: &Thread| {
            (thread.tid == thread.pid && unseen.contains(&thread.pid))
                || thread.samples.iter().any(|sample| calls(sample.stack))
        };
        let threads = timeline.threads.iter().enumerate();
        let callers: Vec<usize> =
            threads.filter(|(_, thread)| does_call(thread)).map(|(index, _)| index).collect();
        let ranks: FxHashSet<u32> = callers
            .iter()
            .filter_map(|index| timeline.threads.get(*index))
            .map(|thread| thread.pid)
            .collect();
        Mpi { stacks, callers, launchers: launchers(timeline, &ranks) }
    }

    /// What a stack shows, by its index in the timeline.
    pub(in crate::program) fn stack(&self, stack: u32) -> InMpi {
        self.stacks.get(stack as usize).copied().unwrap_or_default()
    }
}

/// The processes from which ranks descend, except ranks.
fn launchers(timeline: &Timeline, ranks: &FxHashSet<u32>) -> Vec<u32> {
    let parents: FxHashMap<u32, u32> = timeline
        .threads
        .iter()
        .filter_map(|thread| {
            let Birth::By(creator) = thread.birth else { return None };
            let creator = timeline.threads.get(creator as usize)?;
            (creator.pid != thread.pid).then_some((thread.pid, creator.pid))
        })
        .collect();
    let mut found: Vec<u32> = Vec::new();
    for rank in ranks {
        let mut child = *rank;
        while let Some(parent) = parents.get(&child).filter(|parent| !found.contains(parent)) {
            child = *parent;
            found.push(child);
        }
    }
    found.retain(|pid| !ranks.contains(pid));
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The innermost function comes first, each with its binary.
    fn stack(frames: &[(&str, &str)]) -> InMpi {
        let frame = |(name, module): &(&str, &str)| {
            Frame::of(&FunctionFact {
                name: (*name).to_owned(),
                module: (*module).to_owned(),
                ..FunctionFact::default()
            })
        };
        let places: Vec<Frame> = frames.iter().map(frame).collect();
        let stack: Vec<PlaceId> = (0..places.len() as u32).map(PlaceId).collect();
        in_mpi(&stack, &places)
    }

    #[test]
    fn a_stack_waits_if_a_blocking_call_runs_nothing_but_mpi() {
        const MAIN: (&str, &str) = ("main", "app");
        let (open, mpich) = ("libmpi.so.40.30.4", "libmpich.so.12.2.2");
        let vader = ("[mca_btl_vader.so]", "mca_btl_vader.so");
        assert_eq!(stack(&[vader, ("PMPI_Ssend", open), MAIN]), InMpi::Waits("MPI_Ssend"));
        for (name, module) in [
            ("sched_yield", "libc.so.6"),
            ("[vdso]", "[vdso]"),
            ("event_base_loop", "libevent_core-2.1.so.7"),
            ("[libuct.so.0.0.0]", "libuct.so.0.0.0"),
        ] {
            assert_eq!(stack(&[(name, module), ("PMPI_Wait", mpich)]), InMpi::Waits("MPI_Wait"), "{name}");
        }
        for (name, module) in [
            ("__memmove_avx_unaligned_erms", "libc.so.6"),
            ("[libc.so.6]", "libc.so.6"),
            ("opal_datatype_copy_content_same_ddt", "libopen-pal.so.40"),
            ("[mca_op_avx.so]", "mca_op_avx.so"),
            ("own_operator", "app"),
        ] {
            assert_eq!(stack(&[(name, module), ("PMPI_Reduce", open)]), InMpi::Works, "{name}");
        }
        // The innermost call decides: MPI-IO tests and waits inside calls of its own.
        assert_eq!(stack(&[("PMPI_Test", open), ("MPI_Wait", open)]), InMpi::Works);
        assert_eq!(stack(&[vader]), InMpi::CallMissing);
        assert_eq!(stack(&[vader, MAIN]), InMpi::Outside);
        assert_eq!(stack(&[("PMPI_Recv", "app"), MAIN]), InMpi::Outside, "not MPI's own function");
    }

    #[test]
    fn calls_have_names_in_c_and_fortran() {
        let module = "libmpi_mpifh.so.40";
        for name in
            ["MPI_Alltoallv", "PMPI_Alltoallv", "PMPI_Alltoallv_c", "mpi_alltoallv_", "pmpi_alltoallv__"]
        {
            assert_eq!(stack(&[(name, module)]), InMpi::Waits("MPI_Alltoallv"), "{name}");
        }
        assert_eq!(stack(&[("mpi_alltoallv_f08_", module)]), InMpi::Waits("MPI_Alltoallv"));
        for name in ["MPI_Isend", "mpi_irecv_", "MPI_Init", "MPI_Win_lock", "MPI_Comm_c2f"] {
            assert_eq!(stack(&[(name, module)]), InMpi::Works, "{name}");
        }
        assert_eq!(stack(&[("mpi_recv", module)]), InMpi::CallMissing);
    }

    #[test]
    fn launchers_are_the_ranks_ancestors() {
        let thread = |pid: u32, birth: Birth| Thread { pid, tid: pid, birth, ..Thread::default() };
        let threads = vec![
            thread(1, Birth::BeforeWindow),
            thread(2, Birth::By(0)),
            thread(3, Birth::By(1)),
            thread(4, Birth::By(1)),
            thread(5, Birth::By(0)),
        ];
        let timeline = Timeline { threads, ..Timeline::default() };
        assert_eq!(launchers(&timeline, &[3, 4].into_iter().collect()), [1, 2]);
    }
}
