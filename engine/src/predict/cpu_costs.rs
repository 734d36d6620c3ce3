//! What the same work costs on other numbers of CPUs, where the command was run on them, too (ours).
//!
//! Threads that run at once share caches, memory and cache lines, so that a function takes more CPU time on more CPUs. Runs of the
//! command on several CPU counts show how much more. Between two of these counts the time is on a straight line. Beyond the largest
//! it goes on growing as it did from the last but one, as in the universal scalability law (Gunther, 1993, term *kappa*), until each
//! thread has a CPU.
//!
//! Runs of one machine differ, so all ratios are of runs with the same number, which were made one after the other.

use crate::cpus::Cpus;
use crate::event::CpuRun;
use crate::program::{ComputeFactors, Program};
use rustc_hash::FxHashMap;
use serde::Serialize;

/// A smaller change of all CPU time may be the machine's.
const LITTLE: f64 = 0.05;
/// Two counts of samples differ if they do by this many standard deviations.
const SURE: f64 = 3.0;
/// Where other programs have a larger share of the CPUs, threads of this one run together less than they do alone.
const MOST_BY_OTHERS: f64 = 0.1;
/// No function costs more, or less, by a larger factor.
const MOST: f64 = 64.0;

/// The middle of several runs, the smallest and the largest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// The middle.
    pub middle: f64,
    /// The smallest.
    pub least: f64,
    /// The largest.
    pub most: f64,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Option<Spread> {
        values.retain(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let at = |place: usize| values.get(place).copied().unwrap_or(least);
        let middle = f64::midpoint(at((values.len() - 1) / 2), at(values.len() / 2));
        Some(Spread { middle, least, most })
    }
}

/// The runs on one CPU count.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CountCosts {
    /// How many CPUs.
    pub cpus: u32,
    /// How many runs.
    pub runs: usize,
    /// From start to end, nanoseconds.
    pub time_ns: Spread,
    /// CPU time of all threads, nanoseconds.
    pub cpu_ns: Spread,
    /// The part of the CPUs' time that other programs, or a hypervisor, had.
    pub others: f64,
    /// Time on the smallest CPU count, divided by the time here.
    pub speedup: Spread,
    /// CPU time here, divided by that on the smallest CPU count.
    pub growth: Spread,
    /// CPU time of functions, nanoseconds, and the samples that it is known by.
    #[serde(skip)]
    functions: FxHashMap<String, (f64, u64)>,
}

/// Where the time of the largest number of CPUs goes that is not what the smallest one takes, as shares of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Losses {
    /// CPU time that the same work does not take on the smallest number of CPUs.
    pub coherence: f64,
    /// The CPUs are idle.
    pub contention: f64,
    /// Other programs, or a hypervisor, have them.
    pub others: f64,
}

/// What all runs show.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuCosts {
    /// The CPU counts, ascending; at least two.
    pub counts: Vec<CountCosts>,
}

/// A function whose CPU time grows from the smallest CPU count to the largest.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Grown {
    /// Its name.
    pub function: String,
    /// CPU time on the smallest number of CPUs, nanoseconds.
    pub few_ns: f64,
    /// On the largest one.
    pub many_ns: f64,
}

impl CpuCosts {
    /// `None`: the program was not run on two numbers of CPUs.
    pub fn of(program: &Program) -> Option<CpuCosts> {
        let runs = &program.machine.as_ref()?.cpu_runs;
        let mut counts: Vec<u32> = runs
            .iter()
            .filter(|run| run.cpus > 0 && run.cpu_ns > 0 && run.time_ns > 0)
            .map(|run| run.cpus)
            .collect();
        counts.sort_unstable();
        counts.dedup();
        let first = *counts.first()?;
        let counts: Vec<CountCosts> =
            counts.iter().filter_map(|cpus| CountCosts::of(runs, *cpus, first)).collect();
        (counts.len() > 1).then_some(CpuCosts { counts })
    }

    /// The smallest CPU count and the largest one.
    pub fn ends(&self) -> Option<(&CountCosts, &CountCosts)> {
        self.counts.first().zip(self.counts.last())
    }

    /// Where the time of the largest number of CPUs goes.
    pub fn losses(&self) -> Losses {
        let Some((few, many)) = self.ends() else { return Losses::default() };
        let all = many.time_ns.middle * f64::from(many.cpus);
        let share = |ns: f64| (ns / all).clamp(0.0, 1.0);
        Losses {
            coherence: share(many.cpu_ns.middle - few.cpu_ns.middle),
            contention: share(all - many.cpu_ns.middle - many.others * all),
            others: many.others,
        }
    }

    /// Whether CPU time grows with the CPUs in each pair of runs, and on the whole by more than runs differ.
    pub fn grows(&self) -> bool {
        !self.is_disturbed()
            && self
                .ends()
                .is_some_and(|(_, many)| many.growth.middle > 1.0 + LITTLE && many.growth.least > 1.0)
    }

    /// Whether other programs had so much of the CPUs that nothing follows from these runs.
    pub fn is_disturbed(&self) -> bool {
        self.counts.iter().any(|count| count.others > MOST_BY_OTHERS)
    }

    /// Functions whose CPU time grows, that which grows most first.
    pub fn grown(&self) -> Vec<Grown> {
        let Some((few, many)) = self.ends() else { return Vec::new() };
        let grown = |(name, (many_ns, count)): (&String, &(f64, u64))| {
            let (few_ns, few_count) = few.functions.get(name).copied().unwrap_or_default();
            let is_grown = *many_ns > few_ns && differ((few_ns, few_count), (*many_ns, *count));
            is_grown.then(|| Grown { function: name.clone(), few_ns, many_ns: *many_ns })
        };
        let mut all: Vec<Grown> = many.functions.iter().filter_map(grown).collect();
        all.sort_by(|a, b| {
            (b.many_ns - b.few_ns).total_cmp(&(a.many_ns - a.few_ns)).then(a.function.cmp(&b.function))
        });
        all
    }

    /// How many times the recorded CPU time each function of the program takes on this many CPUs; `None`: as recorded.
    pub(crate) fn factors(&self, program: &Program, cpus: Cpus) -> Option<ComputeFactors> {
        let recorded = program.recorded_cpus?;
        if !self.changes() || cpus == Cpus::count(recorded)? {
            return None;
        }
        // More CPUs than threads are used by nobody.
        let cpus = cpus.or(usize::MAX).min(program.threads.len().max(1)) as f64;
        let (here, there) = (self.at(f64::from(recorded)), self.at(cpus));
        let ratio = |now: f64, then: f64| {
            if now > 0.0 && then > 0.0 { (then / now).clamp(1.0 / MOST, MOST) } else { 1.0 }
        };
        // What has no ratio of its own grows as the rest does.
        let elsewhere = ratio(here.elsewhere, there.elsewhere);
        let of = |name: &str| match (here.functions.get(name), there.functions.get(name)) {
            (Some(now), Some(then)) => ratio(*now, *then),
            _ => elsewhere,
        };
        let functions = program.functions.iter().map(|function| of(&function.name)).collect();
        Some(ComputeFactors { functions, elsewhere: ratio(here.all, there.all) })
    }

    /// Whether CPU time changes with the CPUs by more than runs differ, in one direction or the other.
    fn changes(&self) -> bool {
        !self.is_disturbed()
            && self.ends().is_some_and(|(_, many)| {
                let Spread { middle, least, most } = many.growth;
                (middle - 1.0).abs() > LITTLE && (least > 1.0 || most < 1.0)
            })
    }

    /// CPU times on any number of CPUs.
    fn at(&self, cpus: f64) -> Costs<'_> {
        let place = self.counts.iter().position(|count| f64::from(count.cpus) >= cpus);
        let last = self.counts.len().saturating_sub(1);
        let upper = place.unwrap_or(last).clamp(1, last.max(1));
        let (Some(a), Some(b)) = (self.counts.get(upper - 1), self.counts.get(upper)) else {
            return Costs::default();
        };
        let (first, second) = (f64::from(a.cpus), f64::from(b.cpus));
        let along = ((cpus - first) / (second - first)).max(0.0);
        let on_line = |from: f64, to: f64| (from + (to - from) * along).max(0.0);
        let mut costs = Costs { all: on_line(a.cpu_ns.middle, b.cpu_ns.middle), ..Costs::default() };
        costs.elsewhere = costs.all;
        for (name, now) in &a.functions {
            let Some(then) = b.functions.get(name).filter(|then| differ(*now, **then)) else { continue };
            let ns = on_line(now.0, then.0);
            costs.elsewhere -= ns;
            costs.functions.insert(name, ns);
        }
        costs
    }
}

/// CPU times on one number of CPUs, nanoseconds.
#[derive(Default)]
struct Costs<'a> {
    all: f64,
    /// Of functions that change by more than samples do by chance.
    functions: FxHashMap<&'a str, f64>,
    /// Of everything else.
    elsewhere: f64,
}

impl CountCosts {
    /// CPU time of a function, nanoseconds, as far as samples found it.
    pub fn ns_of(&self, function: &str) -> Option<f64> {
        self.functions.get(function).map(|(ns, _)| *ns)
    }

    fn of(runs: &[CpuRun], cpus: u32, first: u32) -> Option<CountCosts> {
        let here: Vec<&CpuRun> = runs.iter().filter(|run| run.cpus == cpus).collect();
        let of = |value: fn(&CpuRun) -> u64| Spread::of(here.iter().map(|run| value(run) as f64).collect());
        let ratio = |value: fn(&CpuRun) -> u64| {
            let pairs = here.iter().filter_map(|run| {
                let one = runs.iter().find(|one| one.cpus == first && one.round == run.round)?;
                Some(value(run) as f64 / value(one) as f64)
            });
            Spread::of(pairs.collect())
        };
        let (time_ns, cpu_ns) = (of(|run| run.time_ns)?, of(|run| run.cpu_ns)?);
        let slower = ratio(|run| run.time_ns)?;
        let others = here.iter().map(|run| run.others_ns as f64 / (run.time_ns as f64 * f64::from(cpus)));
        let others = Spread::of(others.collect())?.middle;
        let samples: u64 = here.iter().map(|run| run.samples).sum();
        let mut counts: FxHashMap<String, u64> = FxHashMap::default();
        for function in here.iter().flat_map(|run| &run.functions) {
            *counts.entry(function.name.clone()).or_insert(0) += function.samples;
        }
        let each = cpu_ns.middle / samples.max(1) as f64;
        let functions =
            counts.into_iter().map(|(name, count)| (name, (count as f64 * each, count))).collect();
        Some(CountCosts {
            cpus,
            runs: here.len(),
            time_ns,
            cpu_ns,
            others,
            speedup: Spread {
                middle: 1.0 / slower.middle,
                least: 1.0 / slower.most,
                most: 1.0 / slower.least,
            },
            growth: ratio(|run| run.cpu_ns)?,
            functions,
        })
    }
}

/// Whether two CPU times, known by these numbers of samples, differ by more than by chance.
fn differ((a_ns, a_count): (f64, u64), (b_ns, b_count): (f64, u64)) -> bool {
    // A count of samples varies by its root, and is hardly known where it is 0.
    let error = |ns: f64, count: u64, each: f64| if count > 0 { ns / (count as f64).sqrt() } else { each };
    let each = if b_count > 0 { b_ns / b_count as f64 } else { a_ns / a_count.max(1) as f64 };
    let deviation = error(a_ns, a_count, each).hypot(error(b_ns, b_count, each));
    (a_ns - b_ns).abs() > SURE * deviation
}

/// The program as it computes on this many CPUs by what runs on several counts cost; `None`: as recorded.
pub(super) fn at_cost(program: &Program, costs: &CpuCosts, cpus: Cpus) -> Option<Program> {
    costs.factors(program, cpus).map(|factors| program.clone().with_compute(&factors))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::FunctionSamples;
    use crate::program::MachineFacts;

    const MS: u64 = 1_000_000;

    /// CPUs, round, time and CPU time in ms, samples of `f` and `g`.
    fn run((cpus, round, time, cpu): (u32, u32, u64, u64), counts: [u64; 2]) -> CpuRun {
        let of = |(name, samples): (&str, u64)| FunctionSamples { name: name.into(), samples };
        let functions = ["f", "g"].into_iter().zip(counts).map(of).collect();
        CpuRun {
            cpus,
            round,
            time_ns: time * MS,
            cpu_ns: cpu * MS,
            others_ns: 0,
            samples: counts.iter().sum(),
            functions,
        }
    }

    /// Two threads; `f` computes 300 ms and `g` 100 ms on 2 CPUs.
    fn program(cpu_runs: Vec<CpuRun>) -> Program {
        let thread = r#"{"name":"T","ops":[["exec","f",150000000],["exec","g",50000000]]}"#;
        let text = format!(
            r#"{{"format":"longpole-program","version":1,"threads":[{thread},{}]}}"#,
            thread.replace("\"T\"", "\"U\"")
        );
        let mut program = crate::program::json::read(&text).expect("a program");
        program.recorded_cpus = Some(2);
        program.machine = Some(MachineFacts { cpu_runs, ..MachineFacts::default() });
        program
    }

    /// `f` takes three times the CPU time on two CPUs, `g` the same.
    fn growing() -> Program {
        let mut runs = Vec::new();
        for round in 0..3 {
            runs.push(run((1, round, 200 + u64::from(round), 200), [500, 500]));
            runs.push(run((2, round, 210, 400), [1500, 500]));
        }
        program(runs)
    }

    #[test]
    fn what_grows_is_named_and_costs_less_on_one_cpu() {
        let program = growing();
        let costs = CpuCosts::of(&program).expect("costs");
        assert!(costs.grows());
        let (few, many) = costs.ends().expect("ends");
        assert_eq!((few.cpus, many.cpus, many.runs), (1, 2, 3));
        assert_eq!(many.growth, Spread { middle: 2.0, least: 2.0, most: 2.0 });
        assert!((many.speedup.middle - 201.0 / 210.0).abs() < 1e-9);
        let losses = costs.losses();
        assert!(
            (losses.coherence - 200.0 / 420.0).abs() < 1e-9
                && (losses.contention - 20.0 / 420.0).abs() < 1e-9
        );
        let grown = costs.grown();
        assert_eq!(grown.iter().map(|grown| grown.function.as_str()).collect::<Vec<_>>(), ["f"]);
        assert!((grown[0].many_ns / grown[0].few_ns - 3.0).abs() < 1e-9);
        let factors = costs.factors(&program, Cpus::ONE).expect("factors");
        assert!((factors.functions[0] - 1.0 / 3.0).abs() < 1e-9, "{factors:?}");
        assert!((factors.functions[1] - 1.0).abs() < 1e-9, "{factors:?}");
        assert!((factors.elsewhere - 0.5).abs() < 1e-9);
        assert_eq!(costs.factors(&program, Cpus::count(2).expect("two")), None);
        // There are two threads.
        assert_eq!(costs.factors(&program, Cpus::Infinite).expect("factors").functions, [1.0, 1.0]);
    }

    #[test]
    fn between_counts_the_cost_is_on_a_line_and_beyond_them_it_grows_on() {
        let mut program = growing();
        let costs = CpuCosts::of(&program).expect("costs");
        program.threads = program.threads.iter().cycle().take(8).cloned().collect();
        let four = costs.factors(&program, Cpus::count(4).expect("four")).expect("factors");
        // 100 ms, 300 ms, and on four 700 ms.
        assert!((four.functions[0] - 7.0 / 3.0).abs() < 1e-9, "{four:?}");
        let at = costs.at(1.5);
        assert!((at.functions["f"] / MS as f64 - 200.0).abs() < 1e-6);
    }

    #[test]
    fn runs_that_differ_as_much_among_themselves_say_nothing() {
        let runs = vec![
            run((1, 0, 200, 200), [500, 500]),
            run((2, 0, 110, 230), [520, 500]),
            run((1, 1, 200, 210), [500, 500]),
            run((2, 1, 110, 205), [510, 490]),
        ];
        let program = program(runs);
        let costs = CpuCosts::of(&program).expect("costs");
        assert!(!costs.grows() && costs.grown().is_empty());
        assert_eq!(costs.factors(&program, Cpus::ONE), None);
        let mut disturbed = growing();
        let runs = disturbed.machine.iter_mut().flat_map(|machine| &mut machine.cpu_runs);
        runs.for_each(|run| run.others_ns = run.time_ns / 4);
        let costs = CpuCosts::of(&disturbed).expect("costs");
        assert!(!costs.grows() && costs.factors(&disturbed, Cpus::ONE).is_none());
        assert!((costs.losses().others - 0.125).abs() < 1e-9);
        let one = Program { machine: None, ..program };
        assert_eq!(CpuCosts::of(&one), None);
    }
}
