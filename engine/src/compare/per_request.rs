//! Two recordings of a server side by side: what one request takes before and after.

use super::result::{BeforeAfter, ItemRow, items, together};
use super::served::{Measured, Served};
use crate::event::CpuRun;
use crate::program::{Program, cpu_run};
use crate::timeline::Timeline;

/// What one request takes, before and after. Times are nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PerRequest {
    /// The ports, by name.
    pub ports: [String; 2],
    /// Requests that are recorded, in number.
    pub requests: [u64; 2],
    /// Requests a second.
    pub rate: BeforeAfter,
    /// Mean time from a request until its answer begins.
    pub mean: BeforeAfter,
    /// 99th percentile of that time.
    pub p99: BeforeAfter,
    /// Mean time of a request unread in the socket.
    pub unread: BeforeAfter,
    /// CPU time of all threads of the program for each request; `None`: not known.
    pub cpu: Option<BeforeAfter>,
    /// CPU time of functions for each request, by samples: standard functions count for their callers. The largest change first.
    pub functions: Vec<ItemRow>,
    /// Time that threads waited for locks, for each request. The largest change first.
    pub locks: Vec<ItemRow>,
}

/// A recording of a server.
#[derive(Clone, Copy, Debug)]
pub struct Server<'r> {
    /// Its program.
    pub program: &'r Program,
    /// Its timeline; `None`: functions and chance are not known.
    pub timeline: Option<&'r Timeline>,
    /// Its requests.
    pub served: &'r Served,
}

/// Compares two recordings of a server.
pub fn per_request(before: Server<'_>, after: Server<'_>) -> PerRequest {
    let both = [before, after];
    let change = |of: fn(&Served) -> Measured| changed(both.map(|server| of(server.served)));
    let cpu = [before.served.cpu_ns, after.served.cpu_ns];
    PerRequest {
        ports: both.map(|server| server.served.end.name.clone()),
        requests: both.map(|server| server.served.end.count),
        rate: change(|served| served.rate),
        mean: change(|served| served.mean_ns),
        p99: change(|served| served.p99_ns),
        unread: change(|served| served.unread_ns),
        cpu: match cpu {
            [Some(before), Some(after)] => Some(changed([before, after])),
            _ => None,
        },
        functions: functions(&both),
        locks: items([0, 1], 1, |which| vec![both[which].lock_waits()]),
    }
}

fn changed([before, after]: [Measured; 2]) -> BeforeAfter {
    let noise = before.chance.zip(after.chance).and_then(|(a, b)| together([Some(a), Some(b)]));
    BeforeAfter { before: before.value, after: after.value, noise }
}

fn functions(both: &[Server<'_>; 2]) -> Vec<ItemRow> {
    let runs = both.each_ref().map(Server::samples);
    let [Some(a), Some(b)] = &runs else { return Vec::new() };
    let shares = [a, b].map(|(run, cpu)| {
        let share = |samples: u64| samples as f64 / run.samples.max(1) as f64;
        move |name: &str| {
            let found = run.functions.iter().find(|function| function.name == name);
            let part = share(found.map_or(0, |function| function.samples));
            // A binomial share; one more sample than there are, so that none is certain.
            let count = run.samples as f64 + 1.0;
            let likely = (part * run.samples as f64 + 1.0) / count;
            let sampled = 2.0 * (likely * (1.0 - likely) / count).max(0.0).sqrt() * cpu.value;
            let chance = together([Some(sampled), cpu.chance.map(|chance| chance * part)]);
            Measured { value: part * cpu.value, chance }
        }
    });
    let names = |which: usize| {
        let (run, _) = [a, b][which];
        let row = |name: &str| (name.to_owned(), shares[which](name).value);
        vec![run.functions.iter().map(|function| row(&function.name)).collect()]
    };
    let mut rows = items([0, 1], 1, names);
    for row in &mut rows {
        row.changes = vec![changed([shares[0](&row.name), shares[1](&row.name)])];
    }
    rows
}

impl Server<'_> {
    /// Samples of functions, and the CPU time for each request, nanoseconds.
    fn samples(&self) -> Option<(CpuRun, Measured)> {
        let run = cpu_run(self.timeline?, self.program, (1, 0), 0).filter(|run| run.samples > 0)?;
        Some((run, self.served.cpu_ns?))
    }

    /// Time that threads waited for each lock, for each request, nanoseconds.
    fn lock_waits(&self) -> Vec<(String, f64)> {
        let length_ns = self.program.overhead.map_or(0, |cost| cost.wall_ns) as f64;
        let requests = (self.served.rate.value * length_ns / 1e9).max(1.0);
        let facts = self.program.locks.iter().filter(|fact| fact.waited.0 > 0);
        facts
            .filter_map(|fact| {
                let name = self.program.objects.get(fact.object.0 as usize)?;
                Some((name.clone(), fact.waited.as_ns_f64() / requests))
            })
            .collect()
    }
}
