//! What makes two recordings hard to compare: other programs, other load, other machines. (These criteria are longpole's
//! own.)

use super::per_request::{PerRequest, Server};
use super::served::Served;
use crate::program::{FunctionOrigin, Operation, Program};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A smaller difference in the load is none, as a part.
const LOAD: f64 = 0.1;
/// A smaller difference in the number of connections is none: it is an estimate, as a part.
const CONNECTIONS: f64 = 0.25;
/// Recordings of running programs that differ less in length are equally long, as a part.
const LENGTH: f64 = 0.1;
/// Other programs made a difference if their use of CPUs differs by this part of the machine.
const OTHERS: f64 = 0.15;
/// Programs with this part of the smaller one's functions in common are two builds of one program.
const SAME_FUNCTIONS: f64 = 0.5;

/// What differs between two recordings, apart from the program. Each pair is before and after.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", content = "values", rename_all = "snake_case")]
pub enum Unlike {
    /// The main processes have other names, and most functions have other names.
    Programs([String; 2]),
    /// Only one of them serves requests: the first one, or the second one.
    OneServes {
        /// Whether it is the first one.
        first: bool,
    },
    /// Clients sent another number of requests a second, and the server was not the reason.
    Rate([f64; 2]),
    /// Clients used another number of connections.
    Connections([f64; 2]),
    /// Running programs were recorded for other times, nanoseconds.
    Lengths([f64; 2]),
    /// The programs could use other numbers of CPUs.
    Cpus([u32; 2]),
    /// They were recorded on other machines, by host name.
    Hosts([String; 2]),
    /// Programs that were not recorded kept another number of CPUs busy.
    Others([f64; 2]),
}

/// The processes' names, if these are recordings of different programs. Two builds of one program are not: they have one name,
/// or most functions of the one with fewer in common.
pub fn other_programs(before: &Program, after: &Program) -> Option<Unlike> {
    let names = [main_process(before)?, main_process(after)?];
    if names[0] == names[1] {
        return None;
    }
    let [a, b] = [before, after].map(own_functions);
    let fewer = a.len().min(b.len());
    let is_one = fewer > 0 && a.intersection(&b).count() as f64 >= SAME_FUNCTIONS * fewer as f64;
    (!is_one).then(|| Unlike::Programs(names.map(str::to_owned)))
}

/// Name of the process whose threads compute most.
fn main_process(program: &Program) -> Option<&str> {
    let mut computed: BTreeMap<&str, u64> = BTreeMap::new();
    for thread in &program.threads {
        let (name, _) = thread.process.as_deref()?.rsplit_once('/')?;
        let lengths = thread.operations.iter().map(|operation| match operation {
            Operation::Exec(length) | Operation::ExecIn(_, length) => length.0,
            _ => 0,
        });
        let sum = computed.entry(name).or_default();
        *sum = lengths.fold(*sum, u64::saturating_add);
    }
    computed.into_iter().max_by_key(|(_, sum)| *sum).map(|(name, _)| name)
}

fn own_functions(program: &Program) -> BTreeSet<&str> {
    let own = program.functions.iter().filter(|function| function.origin == FunctionOrigin::User);
    own.map(|function| function.name.as_str()).collect()
}

/// What differs between two recordings, apart from the program and its host. `serves`: whether each program serves requests.
/// `cut`: whether each recording ended before its program, so that its length was chosen.
pub fn unlike(programs: [&Program; 2], serves: [bool; 2], cut: [bool; 2]) -> Vec<Unlike> {
    let mut found = Vec::new();
    if serves[0] != serves[1] {
        found.push(Unlike::OneServes { first: serves[0] });
    }
    let lengths = programs.map(|program| program.overhead.map_or(0.0, |cost| cost.wall_ns as f64));
    if cut == [true; 2] && lengths.iter().all(|length| *length > 0.0) && differ(lengths, LENGTH) {
        found.push(Unlike::Lengths(lengths));
    }
    if let [Some(a), Some(b)] = programs.map(|program| program.recorded_cpus)
        && a != b
    {
        found.push(Unlike::Cpus([a, b]));
    }
    let machine = programs.iter().filter_map(|program| program.recorded_cpus).max().unwrap_or(1);
    let others = programs.map(|program| program.recorded.others.iter().map(|other| other.cpus).sum::<f64>());
    if (others[0] - others[1]).abs() >= OTHERS * f64::from(machine) {
        found.push(Unlike::Others(others));
    }
    found
}

/// What differs in the load of two recordings of a server. If clients wait for the server most of the time, it sets the
/// rate: then only the number of connections can be another load.
pub fn other_load(before: Server<'_>, after: Server<'_>, requests: &PerRequest) -> Option<Unlike> {
    let served = [before.served, after.served];
    let connections = match served.map(Served::connections) {
        [Some(a), Some(b)] => Some([a, b]),
        _ => None,
    };
    // The number of open requests is as uncertain as their time.
    let noise = requests.mean.noise.unwrap_or(0.0) / requests.mean.before.max(requests.mean.after).max(1.0);
    let are_others = |[a, b]: [f64; 2]| (a - b).abs() >= 1.0 && differ([a, b], CONNECTIONS + noise);
    if let Some(both) = connections.filter(|both| are_others(*both)) {
        return Some(Unlike::Connections(both));
    }
    let rates = [requests.rate.before, requests.rate.after];
    let is_other = requests.rate.is_clear() && differ(rates, LOAD);
    let is_result = match served.map(|served| served.end.is_loaded()) {
        [false, false] => false,
        [true, true] => true,
        // The server that its clients wait for answers fewer requests: it may be slower.
        [first, _] => connections.is_some() || (rates[0] < rates[1]) == first,
    };
    (is_other && !is_result).then_some(Unlike::Rate(rates))
}

/// Whether two numbers differ by more than this part of the smaller one.
fn differ([a, b]: [f64; 2], part: f64) -> bool {
    a.max(b) > a.min(b) * (1.0 + part)
}
