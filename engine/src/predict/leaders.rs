//! The function with the largest share of the extended critical path, by CPU count.

use super::result::Crossover;
use super::timing::{PathFacts, Visitor};
use crate::attribution::Attribution;
use crate::cpus::Cpus;
use crate::critical_path::Weights;
use crate::program::Program;

/// For each CPU count: the function with the largest TET, and its share of the time. Of equal functions, the first.
pub(super) struct Leaders<'p> {
    program: &'p Program,
    attribution: &'p Attribution,
    /// The leading function for each CPU count, in the order of visits.
    pub(super) found: Vec<Led>,
}

/// The path on one CPU count, the leading function on it, and that function's share of the time.
#[derive(Clone, Debug)]
pub(crate) struct Led {
    pub(crate) path: PathFacts,
    pub(crate) leader: Option<(String, f64)>,
}

impl<'p> Leaders<'p> {
    pub(super) fn of(program: &'p Program, attribution: &'p Attribution) -> Leaders<'p> {
        Leaders { program, attribution, found: Vec::new() }
    }
}

impl Visitor for Leaders<'_> {
    fn visit<const N: usize>(&mut self, weights: &Weights<'_, N>, paths: &[PathFacts]) {
        let functions = &self.program.functions;
        let totals = weights.totals(self.attribution);
        for path in paths {
            let mut best: Option<(usize, f64)> = None;
            for index in 0..functions.len() {
                let own = path.mean(|place| totals.tet(weights, index, place).as_ns_f64()).ns;
                if own > 0.0 && best.is_none_or(|(_, most)| own > most) {
                    best = Some((index, own));
                }
            }
            let leader = best.map(|(index, own)| {
                let share = if path.time_ns > 0.0 { own / path.time_ns } else { 0.0 };
                (functions[index].name.clone(), share)
            });
            self.found.push(Led { path: path.clone(), leader });
        }
    }
}

/// CPU counts at which the leading function changes, ascending.
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
