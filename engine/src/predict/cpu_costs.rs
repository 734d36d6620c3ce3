//! CPU time of the same work on other numbers of CPUs, from runs of the command on them. (This method is longpole's
//! own.)
//!
//! Threads that run at once share caches, memory and cache lines, so a function takes more CPU time on more CPUs. Runs
//! of the command on several CPU counts show how much more. Between two measured counts, CPU time is interpolated
//! linearly. Beyond the largest count it grows as it did between the last two counts, as in the universal scalability
//! law (Gunther, 1993, term *kappa*), until each thread has a CPU.
//!
//! The state of a machine varies, so all ratios are between runs with the same round number, made one after the other.

use crate::cpus::Cpus;
use crate::event::CpuRun;
use crate::program::{ComputeFactors, Program};
use rustc_hash::FxHashMap;
use serde::Serialize;

/// A smaller change of all CPU time may be chance.
const LITTLE: f64 = 0.05;
/// Two counts of samples differ if their difference is more than this many standard deviations.
const SURE: f64 = 3.0;
/// Largest share of the CPUs that other programs may use: with more, the program's threads run together less than they
/// would alone.
const MOST_BY_OTHERS: f64 = 0.1;
/// Largest factor by which a function may cost more or less.
const MOST: f64 = 64.0;

/// Median, minimum and maximum of several runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// The median.
    pub middle: f64,
    /// The minimum.
    pub least: f64,
    /// The maximum.
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

/// The runs of the command on one CPU count.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CountCosts {
    /// Number of CPUs.
    pub cpus: u32,
    /// Number of runs.
    pub runs: usize,
    /// Time from the start to the end of a run, nanoseconds.
    pub time_ns: Spread,
    /// CPU time of all threads, nanoseconds.
    pub cpu_ns: Spread,
    /// The part of the CPUs' time that other programs or a hypervisor used.
    pub others: f64,
    /// Time on the smallest CPU count, divided by the time here.
    pub speedup: Spread,
    /// CPU time here, divided by that on the smallest CPU count.
    pub growth: Spread,
    /// For each function: its CPU time, nanoseconds, and the number of samples from which that was computed.
    #[serde(skip)]
    functions: FxHashMap<String, (f64, u64)>,
}

/// Losses on the largest number of CPUs against the smallest, as shares of all CPUs' time there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Losses {
    /// CPU time beyond that on the smallest number of CPUs.
    pub coherence: f64,
    /// Idle time of the CPUs.
    pub contention: f64,
    /// Time that other programs or a hypervisor used.
    pub others: f64,
}

/// Costs by CPU count, from all runs.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuCosts {
    /// The CPU counts, ascending; at least two.
    pub counts: Vec<CountCosts>,
}

/// A function with more CPU time on the largest CPU count than on the smallest.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Grown {
    /// Its name.
    pub function: String,
    /// CPU time on the smallest number of CPUs, nanoseconds.
    pub few_ns: f64,
    /// CPU time on the largest number of CPUs, nanoseconds.
    pub many_ns: f64,
}

impl CpuCosts {
    /// The costs; `None` if the program was not run on two numbers of CPUs.
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

    /// The costs on the smallest CPU count and on the largest one.
    pub fn ends(&self) -> Option<(&CountCosts, &CountCosts)> {
        self.counts.first().zip(self.counts.last())
    }

    /// Losses on the largest number of CPUs.
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

    /// Whether CPU time grows with the CPUs in each pair of runs, and by more than chance in the median.
    pub fn grows(&self) -> bool {
        !self.is_disturbed()
            && self
                .ends()
                .is_some_and(|(_, many)| many.growth.middle > 1.0 + LITTLE && many.growth.least > 1.0)
    }

    /// Whether other programs used too much of the CPUs for any conclusion.
    pub fn is_disturbed(&self) -> bool {
        self.counts.iter().any(|count| count.others > MOST_BY_OTHERS)
    }

    /// Functions whose CPU time grows, the largest growth first.
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

    /// For each function of the program: its CPU time on `cpus` CPUs as a multiple of the recorded CPU time. `None`: no
    /// change.
    pub(crate) fn factors(&self, program: &Program, cpus: Cpus) -> Option<ComputeFactors> {
        let recorded = program.recorded_cpus?;
        if !self.changes() || cpus == Cpus::count(recorded)? {
            return None;
        }
        // No thread uses more CPUs than there are threads.
        let cpus = cpus.or(usize::MAX).min(program.threads.len().max(1)) as f64;
        let (here, there) = (self.at(f64::from(recorded)), self.at(cpus));
        let ratio = |now: f64, then: f64| {
            if now > 0.0 && then > 0.0 { (then / now).clamp(1.0 / MOST, MOST) } else { 1.0 }
        };
        // Functions without a ratio of their own grow as all other code does.
        let elsewhere = ratio(here.elsewhere, there.elsewhere);
        let of = |name: &str| match (here.functions.get(name), there.functions.get(name)) {
            (Some(now), Some(then)) => ratio(*now, *then),
            _ => elsewhere,
        };
        let functions = program.functions.iter().map(|function| of(&function.name)).collect();
        Some(ComputeFactors { functions, elsewhere: ratio(here.all, there.all) })
    }

    /// Whether CPU time changes with the CPUs by more than chance, in either direction.
    fn changes(&self) -> bool {
        !self.is_disturbed()
            && self.ends().is_some_and(|(_, many)| {
                let Spread { middle, least, most } = many.growth;
                (middle - 1.0).abs() > LITTLE && (least > 1.0 || most < 1.0)
            })
    }

    /// CPU times on this number of CPUs, interpolated or extrapolated.
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
    /// Functions that change by more than samples vary.
    functions: FxHashMap<&'a str, f64>,
    /// Everything else.
    elsewhere: f64,
}

impl CountCosts {
    /// CPU time of a function, nanoseconds, computed from its samples; `None` without samples.
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

/// Whether two CPU times differ by more than chance, given the numbers of samples from which they were computed.
fn differ((a_ns, a_count): (f64, u64), (b_ns, b_count): (f64, u64)) -> bool {
    // The error of a number of samples is its square root; for 0 samples it is one sample.
    let error = |ns: f64, count: u64, each: f64| if count > 0 { ns / (count as f64).sqrt() } else { each };
    let each = if b_count > 0 { b_ns / b_count as f64 } else { a_ns / a_count.max(1) as f64 };
    let deviation = error(a_ns, a_count, each).hypot(error(b_ns, b_count, each));
    (a_ns - b_ns).abs() > SURE * deviation
}

/// The program with its compute times on this number of CPUs, by measured costs; `None`: compute times stay as
/// recorded.
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

    /// A program in which `f` takes three times the CPU time on two CPUs, and `g` the same CPU time.
    fn growing() -> Program {
        let mut runs = Vec::new();
        for round in 0..3 {
            runs.push(run((1, round, 200 + u64::from(round), 200), [500, 500]));
            runs.push(run((2, round, 210, 400), [1500, 500]));
        }
        program(runs)
    }

    #[test]
    fn a_function_that_grows_is_named_and_costs_less_on_one_cpu() {
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
        // The program has two threads, so more than two CPUs change nothing.
        assert_eq!(costs.factors(&program, Cpus::Infinite).expect("factors").functions, [1.0, 1.0]);
    }

    #[test]
    fn costs_are_interpolated_between_cpu_counts_and_grow_beyond_them() {
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
    fn runs_that_differ_among_themselves_show_no_growth() {
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
