//! Two recordings of a server side by side: what one request takes before and after.

use super::result::{BeforeAfter, ItemRow, items, together};
use super::served::{Measured, Served};
use super::spread::of_means;
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

/// Compares recordings of a server before a change with recordings after it.
pub fn per_request(sides: [&[Server<'_>]; 2]) -> PerRequest {
    let change = |of: fn(&Served) -> Measured| {
        changed(sides.map(|side| side.iter().map(|server| of(server.served)).collect()))
    };
    let cpu =
        sides.map(|side| side.iter().map(|server| server.served.cpu_ns).collect::<Option<Vec<Measured>>>());
    PerRequest {
        ports: sides.map(|side| side.first().map_or(String::new(), |server| server.served.end.name.clone())),
        requests: sides.map(|side| side.iter().map(|server| server.served.end.count).sum()),
        rate: change(|served| served.rate),
        mean: change(|served| served.mean_ns),
        p99: change(|served| served.p99_ns),
        unread: change(|served| served.unread_ns),
        cpu: match cpu {
            [Some(before), Some(after)] => Some(changed([before, after])),
            _ => None,
        },
        functions: functions(sides),
        locks: items(sides, 1, |server| vec![server.lock_waits()]),
    }
}

/// The means of both sides' recordings. With one recording on each side, its own chance counts.
fn changed(sides: [Vec<Measured>; 2]) -> BeforeAfter {
    let values = sides.each_ref().map(|side| side.iter().map(|number| number.value).collect::<Vec<f64>>());
    let change = of_means([&values[0], &values[1]]);
    let within = match [&sides[0][..], &sides[1][..]] {
        [[before], [after]] => before.chance.zip(after.chance),
        _ => None,
    };
    let within = within.and_then(|(a, b)| together([Some(a), Some(b)]));
    BeforeAfter { noise: change.noise.or(within), ..change }
}

fn functions(sides: [&[Server<'_>]; 2]) -> Vec<ItemRow> {
    let samples = sides.map(|side| side.iter().map(Server::samples).collect::<Option<Vec<_>>>());
    let [Some(before), Some(after)] = &samples else { return Vec::new() };
    let sides = [&before[..], &after[..]];
    let mut rows = items(sides, 1, |(run, cpu)| {
        let names = run.functions.iter().map(|function| &function.name);
        vec![names.map(|name| (name.clone(), share(run, *cpu, name).value)).collect()]
    });
    for row in &mut rows {
        row.changes = vec![changed(
            sides.map(|side| side.iter().map(|(run, cpu)| share(run, *cpu, &row.name)).collect()),
        )];
    }
    rows
}

/// A function's part of the CPU time of a request.
fn share(run: &CpuRun, cpu: Measured, name: &str) -> Measured {
    let found = run.functions.iter().find(|function| function.name == name);
    let part = found.map_or(0, |function| function.samples) as f64 / run.samples.max(1) as f64;
    // A binomial share; one more sample than there are, so that none is certain.
    let count = run.samples as f64 + 1.0;
    let likely = (part * run.samples as f64 + 1.0) / count;
    let sampled = 2.0 * (likely * (1.0 - likely) / count).max(0.0).sqrt() * cpu.value;
    let chance = together([Some(sampled), cpu.chance.map(|chance| chance * part)]);
    Measured { value: part * cpu.value, chance }
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
