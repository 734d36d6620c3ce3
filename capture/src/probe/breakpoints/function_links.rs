//! Links that put breakpoints on some functions of a process.

use std::{io, os::fd::BorrowedFd, sync::Arc};

use probe_abi::Cookie;

use super::batched_attach;
use super::function_groups::Group;
use super::link_keeper::{HeldLink, LinkKeeper};
use super::link_process::Point;
use crate::probe::error::ProbeError;
use crate::probe::options::ProbeFunction;

/// A link with few breakpoints, and the functions of these breakpoints.
pub(super) struct SmallLink {
    /// Keeps the breakpoints attached.
    #[expect(dead_code, reason = "it is dropped")]
    pub(super) link: HeldLink,
    /// Functions to which the link's breakpoints belong.
    pub(super) functions: Vec<u32>,
}

/// Attaches `functions` in one link. If the kernel refuses because of an instruction, each half is tried in turn, so
/// that only functions with such an instruction are `refused`.
pub(super) fn attach_some(
    keeper: &Arc<LinkKeeper>,
    program: BorrowedFd<'_>,
    group: &Group,
    generation: u16,
    functions: &[ProbeFunction],
    links: &mut Vec<SmallLink>,
    refused: &mut Vec<u32>,
) -> Result<(), ProbeError> {
    // For an instruction that cannot be probed, the kernel returns EINVAL or ENOTSUPP, which libc does not define.
    const ENOTSUPP: i32 = 524;
    if functions.is_empty() {
        return Ok(());
    }
    match attach_one(keeper, program, group, generation, functions) {
        Ok(link) => {
            let functions = functions.iter().map(|function| function.id).collect();
            links.push(SmallLink { link, functions });
            batched_attach::pause();
        }
        Err(error) => match error.raw_os_error() {
            Some(ENOTSUPP | libc::EINVAL | libc::EOPNOTSUPP) if functions.len() > 1 => {
                let (left, right) = functions.split_at(functions.len() / 2);
                attach_some(keeper, program, group, generation, left, links, refused)?;
                attach_some(keeper, program, group, generation, right, links, refused)?;
            }
            Some(ENOTSUPP | libc::EINVAL | libc::EOPNOTSUPP) => {
                log::debug!(
                    "the kernel does not probe function {} of {}",
                    functions[0].id,
                    group.binary.name()
                );
                refused.extend(functions.iter().map(|function| function.id));
            }
            _ => return Err(ProbeError::of_probe(group.binary.name(), group.pid, &error)),
        },
    }
    Ok(())
}

fn attach_one(
    keeper: &Arc<LinkKeeper>,
    program: BorrowedFd<'_>,
    group: &Group,
    generation: u16,
    functions: &[ProbeFunction],
) -> io::Result<HeldLink> {
    let points = functions.iter().flat_map(|function| {
        function.places().map(move |(offset, exit)| {
            let (id, pair) = (function.id, function.pair.as_ref());
            let frameless = pair.is_some();
            let cookie = Cookie { function: id, exit, frameless, group: group.slot, generation }.to_bits();
            Point { offset, cookie, semaphore: pair.map_or(0, |pair| pair.semaphore(offset)) }
        })
    });
    keeper.attach(program, group.binary.file(), group.pid, points)
}
