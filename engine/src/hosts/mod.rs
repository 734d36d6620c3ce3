//! Joins recordings of several hosts to one, in which messages between the hosts wake threads (2001, section 5, draws such edges
//! between processes of one machine; what follows is longpole's own).
//!
//! 1. `exchanges`: finds requests that were recorded at both ends of a TCP connection, by TCP's numbers of their bytes. These are
//!    the same at both ends, whatever addresses lie between them.
//! 2. `clock`: from the times of these, how far one host's clock is ahead of the other's.
//! 3. `renumber`: gives processes, threads, CPUs, functions and stacks numbers that no other host has, and moves times to the
//!    first host's clock.
//! 4. `messages`: marks the wake-ups by which messages ended waits, and adds a record in the sender.
//! 5. `combine`: adds up facts.
//!
//! The joined recording is the time in which all hosts were recorded. What a wait waited for in a host that is not among them
//! stays "network".

mod clock;
mod combine;
mod exchanges;
mod messages;
mod of_host;
mod renumber;

use crate::event::{HostFact, MOST_HOSTS, Recording};
use crate::timeline::{excerpt, extent};
use clock::Clock;
use exchanges::{Both, of_both_ends};
pub use of_host::OfHost;
use probe_abi::Record;
use std::fmt;

/// Why recordings cannot be joined. Hosts are numbered as they were given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JoinError {
    /// There are fewer than two recordings, or more than [`MOST_HOSTS`].
    Count(usize),
    /// The recording has no records of single requests.
    NoRequests(usize),
    /// No request between this host and those before it was recorded at both ends.
    NotConnected(usize),
    /// The recordings have no time in common.
    Apart(usize),
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JoinError::Count(count) => write!(f, "2 to {MOST_HOSTS} recordings can be joined, not {count}"),
            JoinError::NoRequests(_) => write!(f, "the recording has no single requests over TCP"),
            JoinError::NotConnected(_) => {
                write!(f, "no request was recorded both in this recording and in another one")
            }
            JoinError::Apart(_) => write!(f, "the recording has no time in common with the others"),
        }
    }
}

impl JoinError {
    /// Index of the recording that the error is about.
    pub fn recording(&self) -> Option<usize> {
        match self {
            JoinError::Count(_) => None,
            JoinError::NoRequests(place) | JoinError::NotConnected(place) | JoinError::Apart(place) => {
                Some(*place)
            }
        }
    }
}

/// Joins recordings of several hosts; see the module's documentation. The first host's clock is the joined recording's.
///
/// # Errors
/// See [`JoinError`].
pub fn join(mut hosts: Vec<OfHost>) -> Result<Recording, JoinError> {
    if hosts.len() < 2 || hosts.len() > MOST_HOSTS {
        return Err(JoinError::Count(hosts.len()));
    }
    let both = of_both_ends(&hosts).map_err(JoinError::NoRequests)?;
    let clocks = clock::of_hosts(hosts.len(), &both).map_err(JoinError::NotConnected)?;
    let (from_ns, to_ns) = common(&hosts, &clocks)?;
    let mut facts = facts_of(&hosts, &clocks, &both, u64::midpoint(from_ns, to_ns));
    unique_names(&mut facts);
    let sent = messages::mark(&mut hosts, &clocks, &both);
    exchanges::mark_inner(&mut hosts, &both);
    let mut parts: Vec<Recording> = Vec::with_capacity(hosts.len());
    let mut first_function = 0;
    for (((host, clock), fact), sent) in hosts.into_iter().zip(&clocks).zip(&facts).zip(sent) {
        let all = host.recording.events.len() as u64;
        let (from_ns, to_ns) = (clock.own(from_ns), clock.own(to_ns));
        let mut part = excerpt(host.recording, from_ns, to_ns, all);
        messages::add(&mut part.events, sent, (from_ns, to_ns));
        part.events.retain(|event| !matches!(event, Record::Exchange(_)));
        let part = renumber::moved(part, (parts.len(), first_function), fact, clock);
        let ids = part.facts.functions.iter().map(|function| function.id.saturating_add(1));
        first_function = ids.max().unwrap_or(first_function);
        parts.push(part);
    }
    renumber::stacks(&mut parts);
    Ok(combine::combined(parts, facts, from_ns, to_ns))
}

/// The time in which all hosts were recorded, on the first host's clock.
fn common(hosts: &[OfHost], clocks: &[Clock]) -> Result<(u64, u64), JoinError> {
    let (mut from_ns, mut to_ns) = (0, u64::MAX);
    for (place, (host, clock)) in hosts.iter().zip(clocks).enumerate() {
        let (from, to) = extent(&host.recording);
        (from_ns, to_ns) = (from_ns.max(clock.first_host_s(from)), to_ns.min(clock.first_host_s(to)));
        if from_ns >= to_ns {
            return Err(JoinError::Apart(place));
        }
    }
    Ok((from_ns, to_ns))
}

fn facts_of(hosts: &[OfHost], clocks: &[Clock], both: &[Both], middle_ns: u64) -> Vec<HostFact> {
    let mut first_cpu = 0u32;
    let of_host = |(place, (host, clock)): (usize, (&OfHost, &Clock))| {
        let ends = both.iter().filter(|both| both.asks.host == place || both.answers.host == place);
        let fact = HostFact {
            name: host.name.clone(),
            first_cpu,
            cpus: host.cpus.max(1),
            clock_ahead_ns: clock.ahead_ns(clock.own(middle_ns)),
            clock_error_ns: clock.error_ns,
            messages: 2 * ends.count() as u64,
        };
        first_cpu = first_cpu.saturating_add(fact.cpus);
        fact
    };
    hosts.iter().zip(clocks).enumerate().map(of_host).collect()
}

/// Containers and network namespaces of one machine have the same host name.
fn unique_names(hosts: &mut [HostFact]) {
    for place in 0..hosts.len() {
        let (before, rest) = hosts.split_at_mut(place);
        let Some(host) = rest.first_mut() else { return };
        let plain = if host.name.is_empty() { "host".to_owned() } else { host.name.clone() };
        host.name.clone_from(&plain);
        let mut number = 1u32;
        while before.iter().any(|other| other.name == host.name) {
            number = number.saturating_add(1);
            host.name = format!("{plain}-{number}");
        }
    }
}

#[cfg(test)]
mod tests;
