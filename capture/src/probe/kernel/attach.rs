//! Attaches kernel programs to tracepoints, and closes links.

use std::thread::JoinHandle;

use aya::{
    Ebpf,
    programs::{BtfTracePoint, ProgramError},
};

use super::layout::KernelLayout;
use super::loading::load_together;
use crate::probe::error::{ProbeError, ProbeErrorKind};

/// An attachment, which is removed when this is dropped, however long that takes.
pub(crate) type Link = Box<dyn Send>;

/// Tracepoints in the order of attaching, each for the program with the same name. Exits come before entries, so that
/// the exit of every entry is seen.
const TRACEPOINTS: [&str; 13] = [
    "sched_process_free",
    "sched_process_exit",
    "sched_process_exec",
    "sched_process_fork",
    "task_rename",
    "sched_wakeup_new",
    "irq_handler_exit",
    "irq_handler_entry",
    "hrtimer_expire_exit",
    "hrtimer_expire_entry",
    "softirq_entry",
    "sched_waking",
    "sched_switch",
];

/// Tracepoints for packets, in attaching order: the one at the end of a packet's processing comes first.
const NETWORK: [&str; 3] = ["napi_poll", "netif_receive_skb", "net_dev_start_xmit"];

/// Programs that [`attach_kernel`] attaches, and that must be loaded before.
pub(crate) fn kernel_programs() -> &'static [&'static str] {
    &TRACEPOINTS
}

/// Attaches all tracepoint programs except those for packets. [`kernel_programs`] must have been loaded.
pub(crate) fn attach_kernel(ebpf: &mut Ebpf) -> Result<Vec<Link>, ProbeError> {
    TRACEPOINTS.iter().map(|name| attach_tracepoint(ebpf, name)).collect()
}

/// Attaches the programs that follow packets over the loopback device. Without them such packets count as coming from the
/// network, so a kernel that refuses them is good enough.
pub(crate) fn attach_network(ebpf: &mut Ebpf, kernel: &KernelLayout) -> Vec<Link> {
    let loaded = load_together(ebpf, kernel, &NETWORK);
    let links = loaded.and_then(|()| NETWORK.iter().map(|name| attach_tracepoint(ebpf, name)).collect());
    links.unwrap_or_else(|error| {
        log::debug!("no edges by packets over the loopback device: {error}");
        Vec::new()
    })
}

/// Attaches a loaded program to the tracepoint with the same name.
pub(crate) fn attach_tracepoint(ebpf: &mut Ebpf, name: &str) -> Result<Link, ProbeError> {
    let failed = |error: ProgramError| ProbeError::from_cause(format_args!("tracepoint {name}"), &error);
    let program: &mut BtfTracePoint = program(ebpf, name)?;
    let link = program.attach().map_err(failed)?;
    Ok(Box::new(program.take_link(link).map_err(failed)?))
}

/// The kernel program with this name.
pub(crate) fn program<'a, T>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut T, ProbeError>
where
    &'a mut T: TryFrom<&'a mut aya::programs::Program>,
{
    ebpf.program_mut(name).and_then(|program| program.try_into().ok()).ok_or_else(|| {
        ProbeError::new(
            ProbeErrorKind::Failed,
            format!("the kernel programs have no program {name}"),
            "the object file and this binary are of different versions: build both with ./x build",
        )
    })
}

/// Closes links, each in a thread of its own: closing one waits for all CPUs, and these waits can overlap.
pub(crate) fn close_together(links: Vec<Link>) -> Vec<JoinHandle<()>> {
    let mut threads = Vec::new();
    for link in links {
        // If no thread can be started, the link is closed here.
        match std::thread::Builder::new().name("longpole-detach".into()).spawn(move || drop(link)) {
            Ok(thread) => threads.push(thread),
            Err(error) => log::debug!("no thread to detach in: {error}"),
        }
    }
    threads
}
