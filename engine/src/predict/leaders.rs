//! Which function comes first at which CPU count, by the extended critical path.

use super::result::Crossover;
use crate::attribution::{Attribution, Grouping};
use crate::critical_path::CriticalPath;
use crate::report::Cpus;

/// The function with the largest TET for each CPU count, with its share of the ideal time. The first of equal ones.
pub(super) fn leaders(path: &CriticalPath<'_>, cpus: &[Cpus]) -> Vec<Option<(String, f64)>> {
    let functions = &path.program().functions;
    let attribution = Attribution::of(path.program(), Grouping::Function);
    let mut leaders = Vec::with_capacity(cpus.len());
    for weights in path.weights(cpus) {
        let totals = weights.totals(&attribution);
        for (place, cpus) in weights.cpus().iter().enumerate() {
            let mut best: Option<(usize, i128)> = None;
            for index in 0..functions.len() {
                let tet = totals.tet(&weights, index, place).value;
                if tet > 0 && best.is_none_or(|(_, most)| tet > most) {
                    best = Some((index, tet));
                }
            }
            let time = path.time(*cpus).value;
            leaders.push(best.map(|(index, tet)| {
                let share = if time > 0 { tet as f64 / time as f64 } else { 0.0 };
                (functions[index].name.clone(), share)
            }));
        }
    }
    leaders
}

/// Where the leader changes, going up the CPU counts.
pub(super) fn crossovers(leaders: &[(Cpus, Option<&(String, f64)>)]) -> Vec<Crossover> {
    let mut sorted: Vec<(Cpus, &String)> =
        leaders.iter().filter_map(|(cpus, leader)| leader.map(|(name, _)| (*cpus, name))).collect();
    sorted.sort_by_key(|(cpus, _)| *cpus);
    let changes = sorted.windows(2).filter_map(|pair| match pair {
        [(_, before), (cpus, after)] if before != after => {
            Some(Crossover { cpus: *cpus, function: (*after).clone(), over: (*before).clone() })
        }
        _ => None,
    });
    changes.collect()
}
