//! The thread that names addresses. It finds the binary of an address at once, since the process may end. Names are
//! read later and together, since that may take long.

use super::known_addresses::{AddressKind, Ask};
use super::poll_intervals::PollIntervals;
use super::spaces::{Binary, Spaces, Spot};
use crate::live::main_loop::Message;
use crate::live::probes::NEW_PROCESS_DELAY;
use crate::threads;
use engine::event::AddressFact;
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use symbols::Parsers;
use tokio::sync::mpsc::UnboundedSender;

/// Wait before names are read: more addresses may come and are read in one go.
const GATHER: Duration = Duration::from_millis(200);
/// Mappings are read again after this long for unknown code, which is a new library, and for data, which is mostly on the heap.
const CODE_AGAIN: Duration = Duration::from_millis(20);
const DATA_AGAIN: Duration = Duration::from_secs(10);
/// Sends addresses to the thread and receives names.
#[derive(Debug)]
pub struct Namer {
    asks: Option<Sender<Vec<Ask>>>,
    names: Receiver<Vec<AddressFact>>,
}

impl Namer {
    /// Starts the thread. `launched`: the process at the gate and the program that it will run. The program is opened
    /// now, since the process may end before the thread reads its mappings.
    pub fn start(
        poll_intervals: PollIntervals,
        news: UnboundedSender<Message>,
        launched: Option<(u32, PathBuf)>,
    ) -> io::Result<Namer> {
        let (asks, inbox) = channel();
        let (outbox, names) = channel();
        threads::spawn("names", news, (), move || {
            threads::behind_others();
            run(poll_intervals, launched, &inbox, &outbox);
        })?;
        Ok(Namer { asks: Some(asks), names })
    }

    /// Passes on questions.
    pub fn ask(&self, asks: Vec<Ask>) {
        if let Some(sender) = self.asks.as_ref().filter(|_| !asks.is_empty()) {
            // A thread that has ended has reported the reason itself.
            let _ = sender.send(asks);
        }
    }

    /// Names found since the last call.
    pub fn take(&self) -> Vec<AddressFact> {
        self.names.try_iter().flatten().collect()
    }

    /// The remaining names. Waits for them, but not forever.
    pub fn finish(mut self) -> Vec<AddressFact> {
        self.asks = None;
        super::rest(&self.names, "some locks have addresses in place of names")
    }
}

/// An address whose binary is known and whose name is not yet read.
struct Open {
    pid: u32,
    since_ns: u64,
    address: u64,
    kind: AddressKind,
    spot: Spot,
}

fn run(
    poll_intervals: PollIntervals,
    launched: Option<(u32, PathBuf)>,
    inbox: &Receiver<Vec<Ask>>,
    outbox: &Sender<Vec<AddressFact>>,
) {
    let mut spaces = Spaces::expecting(launched, Parsers::of_longpole());
    let mut open: Vec<Open> = Vec::new();
    let mut not_before = poll_intervals.first(Instant::now());
    // Processes with a new program or a new mapping, and the time at which their mappings are to be read.
    let mut young: VecDeque<(Instant, u32)> = VecDeque::new();
    loop {
        let settles = young.front().map(|(at, _)| *at);
        let due = (!open.is_empty()).then_some(not_before);
        let received = match settles.into_iter().chain(due).min() {
            None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(at) => inbox.recv_timeout(at.saturating_duration_since(Instant::now())),
        };
        while let Some((_, pid)) = young.pop_front_if(|(at, _)| *at <= Instant::now()) {
            spaces.settle(pid);
        }
        match received {
            Ok(asks) => {
                if open.is_empty() {
                    not_before = not_before.max(Instant::now() + GATHER);
                }
                for ask in asks {
                    if let Ask::Program { pid, .. } | Ask::Mapped { pid } = ask
                        && young.back().is_none_or(|(_, last)| *last != pid)
                    {
                        young.push_back((Instant::now() + NEW_PROCESS_DELAY, pid));
                    }
                    open.extend(place(&mut spaces, ask));
                }
            }
            Err(RecvTimeoutError::Timeout) if due.is_none_or(|due| due > Instant::now()) => {}
            Err(over) => {
                let began = Instant::now();
                let facts = name(std::mem::take(&mut open));
                not_before = poll_intervals.again(began);
                let sent = facts.is_empty() || outbox.send(facts).is_ok();
                if over == RecvTimeoutError::Disconnected || !sent {
                    return;
                }
            }
        }
    }
}

fn place(spaces: &mut Spaces, ask: Ask) -> Option<Open> {
    match ask {
        Ask::Program { pid, since_ns, like, first_page } => {
            spaces.begin(pid, since_ns, like, first_page);
            None
        }
        Ask::Mapped { pid } => {
            spaces.mapped(pid);
            None
        }
        Ask::Address { pid, since_ns, address, kind } => {
            let again = if kind == AddressKind::Return { CODE_AGAIN } else { DATA_AGAIN };
            let spot = spaces.find(pid, since_ns, address, again)?;
            Some(Open { pid, since_ns, address, kind, spot })
        }
    }
}

/// Reads the names of all these addresses, one binary after the other. Addresses without a name are omitted.
fn name(open: Vec<Open>) -> Vec<AddressFact> {
    let mut groups: Vec<(Binary, Vec<Open>)> = Vec::new();
    for open in open {
        match groups.iter_mut().find(|(binary, _)| Rc::ptr_eq(binary, &open.spot.binary)) {
            Some((_, group)) => group.push(open),
            None => groups.push((Rc::clone(&open.spot.binary), vec![open])),
        }
    }
    let mut facts = Vec::new();
    for (binary, group) in groups {
        let module = group.first().map(|open| open.spot.module.clone()).unwrap_or_default();
        if let Err(error) = binary.borrow_mut().read(&module) {
            log::debug!("no names of {module}: {error}");
            continue;
        }
        let mut placed = binary.borrow_mut();
        let placed_id = placed.build_id();
        let (calls, objects): (Vec<Open>, Vec<Open>) =
            group.into_iter().partition(|open| open.kind == AddressKind::Return);
        let fact = |open: &Open, name, location| AddressFact {
            pid: open.pid,
            address: open.address,
            since_ns: open.since_ns,
            name,
            location,
            module: (open.kind == AddressKind::Return).then(|| open.spot.path.clone()),
            build_id: (open.kind == AddressKind::Return).then(|| placed_id.clone()).flatten(),
            linked: (open.kind == AddressKind::Return).then_some(open.spot.linked),
        };
        facts.extend(objects.iter().map(|open| fact(open, placed.variable(open.spot.linked), None)));
        let returns: Vec<u64> = calls.iter().map(|open| open.spot.linked).collect();
        let found = if returns.is_empty() { Vec::new() } else { placed.calls(&returns) };
        facts.extend(calls.iter().zip(found).map(|(open, call)| fact(open, call.function, call.location)));
    }
    // A call with a known place in its binary stays: it can be named later on a machine that has more symbols.
    facts.retain(|fact| fact.name.is_some() || fact.location.is_some() || fact.linked.is_some());
    facts
}
