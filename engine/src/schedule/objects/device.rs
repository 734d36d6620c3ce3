//! Devices: a wait takes its recorded length, from when one of the device's servers is free.

use std::collections::VecDeque;

use super::table::Table;
use crate::program::ObjectId;
use crate::schedule::actor::Flow;
use crate::schedule::core::Core;
use crate::schedule::machine::{Machine, Why};
use crate::time::Ticks;

#[derive(Debug, Default)]
struct Device {
    /// Servers in use.
    busy: u32,
    /// Threads that wait for a server, with the lengths of their requests; they are served in order of arrival.
    queue: VecDeque<(u32, u64)>,
}

/// All devices.
#[derive(Debug)]
pub(in crate::schedule) struct Devices {
    states: Table<Device>,
    /// For each object: how many threads the device serves at once; 0 or missing: any number.
    servers: Vec<u32>,
    /// The device that serves each thread; empty if no device is limited.
    served_by: Vec<Option<ObjectId>>,
}

impl Devices {
    pub(in crate::schedule) fn new(objects: usize) -> Devices {
        Devices { states: Table::new(objects), servers: Vec::new(), served_by: Vec::new() }
    }

    /// Limits how many threads each device serves at once.
    pub(in crate::schedule) fn limit(&mut self, servers: &[u32], threads: usize) {
        self.servers = servers.to_vec();
        if servers.iter().any(|servers| *servers > 0) {
            self.served_by = vec![None; threads];
        }
    }

    pub(in crate::schedule) fn io<M: Machine>(
        &mut self,
        core: &mut Core<'_, M>,
        thread: u32,
        object: ObjectId,
        length: Ticks,
    ) -> Flow {
        core.actors[thread as usize].next += 1;
        if !M::COSTS {
            core.begin_step(thread);
        }
        core.machine.block(thread, Why::Object(object));
        let servers = self.servers.get(object.0 as usize).copied().unwrap_or(0);
        if servers > 0 {
            let device = self.states.at(object);
            if device.busy >= servers {
                device.queue.push_back((thread, length.0));
                return Flow::Stop;
            }
            device.busy += 1;
            self.served_by[thread as usize] = Some(object);
        }
        serve(core, thread, object, length.0);
        Flow::Stop
    }

    /// The thread's wait by the clock is over; a server that served it turns to the next thread.
    pub(in crate::schedule) fn expired<M: Machine>(&mut self, core: &mut Core<'_, M>, thread: u32) {
        if let Some(object) = self.served_by.get_mut(thread as usize).and_then(Option::take) {
            let device = self.states.at(object);
            match device.queue.pop_front() {
                Some((next, length)) => {
                    self.served_by[next as usize] = Some(object);
                    // `next` arrived earlier, so the end of this service decides when the service of `next` begins.
                    core.actors[next as usize].point = core.actors[thread as usize].point;
                    core.machine.serve_after(next, thread, object);
                    serve(core, next, object, length);
                }
                None => device.busy = device.busy.saturating_sub(1),
            }
        }
        core.wake(thread, None);
    }
}

/// A server begins to serve the thread.
fn serve<M: Machine>(core: &mut Core<'_, M>, thread: u32, object: ObjectId, length: u64) {
    if !M::DECIDES {
        core.usage.served(object, length);
    }
    core.wait_by_clock(thread, length, Why::Object(object));
}
