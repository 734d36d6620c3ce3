//! Puts programs on tracepoints, and takes links off.

use std::{thread::JoinHandle, time::Instant};

use aya::{
    Ebpf,
    programs::{BtfTracePoint, ProgramError, ProgramInfo},
};

use super::error::{ProbeError, ProbeErrorKind};

/// Something that ends when it is dropped, however long that takes.
pub(crate) type Link = Box<dyn Send>;

/// Where programs of the same names go. An end comes before its start, so that no pair begins without being ended.
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

/// Where packets are told apart: what ends the taking in of one comes first.
const NETWORK: [&str; 3] = ["napi_poll", "netif_receive_skb", "net_dev_start_xmit"];

/// Attaches everything that is not a function of the target.
pub(crate) fn attach_kernel(ebpf: &mut Ebpf, btf: &aya::Btf) -> Result<Vec<Link>, ProbeError> {
    let mut links = Vec::new();
    // Without them a packet over the loopback device comes from the network.
    for name in NETWORK {
        match attach_tracepoint(ebpf, btf, name) {
            Ok(link) => links.push(link),
            Err(error) => {
                log::debug!("no edges by packets over the loopback device: {error}");
                links.clear();
                break;
            }
        }
    }
    for name in TRACEPOINTS {
        links.push(attach_tracepoint(ebpf, btf, name)?);
    }
    Ok(links)
}

fn attach_tracepoint(ebpf: &mut Ebpf, btf: &aya::Btf, name: &str) -> Result<Link, ProbeError> {
    let failed = |error: ProgramError| ProbeError::from_cause(format_args!("tracepoint {name}"), &error);
    let program = load_for_tracepoint(ebpf, btf, name, name)?;
    let link = program.attach().map_err(failed)?;
    Ok(Box::new(program.take_link(link).map_err(failed)?))
}

/// Loads a program with a tracepoint's arguments.
pub(crate) fn load_for_tracepoint<'a>(
    ebpf: &'a mut Ebpf,
    btf: &aya::Btf,
    name: &str,
    tracepoint: &str,
) -> Result<&'a mut BtfTracePoint, ProbeError> {
    let program: &mut BtfTracePoint = program(ebpf, name)?;
    let begun = Instant::now();
    program
        .load(tracepoint, btf)
        .map_err(|error| ProbeError::from_cause(format_args!("program {name}"), &error))?;
    log_loading(name, begun, program.info());
    Ok(program)
}

/// What the kernel's check of a program took: it is most of what attaching takes.
pub(crate) fn log_loading(name: &str, begun: Instant, info: Result<ProgramInfo, ProgramError>) {
    let steps = info.ok().and_then(|info| info.verified_instruction_count()).unwrap_or(0);
    log::debug!("{name}: loaded in {:.1} ms, {steps} steps checked", begun.elapsed().as_secs_f64() * 1e3);
}

/// A program by its name.
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

/// Closes links, each in a thread of its own: the kernel waits in each for all CPUs, and they can wait together.
pub(crate) fn close_together(links: Vec<Link>) -> Vec<JoinHandle<()>> {
    let mut threads = Vec::new();
    for link in links {
        // If there is no thread to be had the link is closed here and now.
        match std::thread::Builder::new().name("longpole-detach".into()).spawn(move || drop(link)) {
            Ok(thread) => threads.push(thread),
            Err(error) => log::debug!("no thread to detach in: {error}"),
        }
    }
    threads
}
