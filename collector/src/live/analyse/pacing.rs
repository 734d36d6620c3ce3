//! How much of the window is analysed, how deeply, and when. Analyses take a small share of the program's CPU time,
//! whatever the number of events and the cost of each event. The cost of an analysis decides when the next one may
//! begin, and how many events that one gets. Few questions about a long stretch are better than all questions about a
//! short one.

use super::analysis::Depth;
use engine::event::Overhead;

/// Share of the overhead budget that analyses may take; the other part is for recording.
const OF_BUDGET: f64 = 0.5;
/// Largest share of one CPU that analyses take, even if the program computes much.
const MOST_OF_CPU: f64 = 0.02;
/// Share of one CPU that analyses may always take: otherwise the screen of a program that hardly runs would never
/// change.
const LEAST_OF_CPU: f64 = 0.002;
/// Longest time between analyses: if they cost more, they get fewer events instead of coming later.
const LONGEST_NS: u64 = 3_000_000_000;
/// Only an analysis that took this share of its allowed cost shows what more events would cost. The cost of a cheaper
/// analysis is mostly fixed, and the window still grows at first.
const TELLING: f64 = 0.25;
/// All questions take at most this many times as long as few questions.
const ALL_QUESTIONS: f64 = 3.0;
/// All questions are asked if the budget is enough for a window of this length, ns; a window of this length gives
/// steady numbers.
const ENOUGH_NS: f64 = 3e9;
/// Factor for that length if the last analysis asked few questions: otherwise the depth would go back and forth.
const CLEARLY: f64 = 1.3;
/// Fewest events of an analysis: they cover 20 ms of a program that switches 100,000 times a second.
const FEWEST: usize = 2_048;
/// Events of the first analysis. Their cost is still unknown, and decides when the next one comes.
const FIRST: usize = 4_096;

/// The cost of an analysis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Events analysed.
    pub events: usize,
    /// Length of the window, nanoseconds.
    pub window_ns: u64,
    /// CPU time of the analysis thread, nanoseconds.
    pub cpu_ns: u64,
}

/// See the module. Times are nanoseconds of one clock.
#[derive(Clone, Copy, Debug)]
pub struct Pacing {
    refresh_ns: u64,
    /// Longest time between two analyses.
    longest_ns: u64,
    most: usize,
    events: usize,
    depth: Depth,
    /// Time at which the last analysis began, and the cost of recording until then.
    began_ns: u64,
    before: Overhead,
    last: Spent,
}

impl Pacing {
    /// The first analysis is due after `refresh_ns`, which is also the least time between two. Each has `most` events at most.
    pub fn new(start_ns: u64, refresh_ns: u64, most: usize) -> Pacing {
        let refresh_ns = refresh_ns.max(1);
        Pacing {
            refresh_ns,
            longest_ns: refresh_ns.max(LONGEST_NS),
            most,
            events: FIRST.min(most),
            depth: Depth::Brief,
            began_ns: start_ns,
            before: Overhead::default(),
            last: Spent::default(),
        }
    }

    /// Whether the next analysis is due, given the cost of recording so far: the last analysis must not exceed its share of
    /// the time since. If so, plans as many events as that share pays for within the longest time between analyses.
    pub fn is_due(&mut self, now_ns: u64, cost: Option<&Overhead>) -> bool {
        let since_ns = now_ns.saturating_sub(self.began_ns);
        let share = share_of_cpu(cost.map(|cost| cost.since(&self.before)).as_ref());
        let Spent { events, window_ns, cpu_ns } = self.last;
        if since_ns < self.refresh_ns || cpu_ns as f64 > since_ns as f64 * share {
            return false;
        }
        if events > 0 {
            let paid_ns = self.longest_ns as f64 * share;
            self.plan(events, window_ns, cpu_ns.max(1) as f64, paid_ns);
        }
        true
    }

    /// Plans the next analysis: the last one, of `events` in `window_ns`, took `cpu_ns`; the next one may take `paid_ns`.
    fn plan(&mut self, events: usize, window_ns: u64, cpu_ns: f64, paid_ns: f64) {
        // The time that all questions about this window would take, and the length of window for which the budget must
        // be enough.
        let (all_ns, enough_ns) = match self.depth {
            Depth::Brief => (cpu_ns * ALL_QUESTIONS, ENOUGH_NS * CLEARLY),
            Depth::Full | Depth::Whole => (cpu_ns, ENOUGH_NS),
        };
        let (depth, cpu_ns) = match self.depth {
            _ if window_ns as f64 * paid_ns / all_ns >= enough_ns => (Depth::Full, all_ns),
            Depth::Brief => (Depth::Brief, cpu_ns),
            Depth::Full | Depth::Whole => (Depth::Brief, cpu_ns / ALL_QUESTIONS),
        };
        self.depth = depth;
        let affordable = ((events as f64 * paid_ns / cpu_ns) as usize).clamp(FEWEST, self.most.max(FEWEST));
        // A cheap analysis of few events does not show what many cost: most of its cost may be fixed.
        let is_telling = cpu_ns > paid_ns * TELLING;
        self.events = if is_telling { affordable } else { affordable.max(self.events) }.min(self.most);
    }

    /// Largest number of events in the next analysis.
    pub fn events(&self) -> usize {
        self.events
    }

    /// Depth of the next analysis.
    pub fn depth(&self) -> Depth {
        self.depth
    }

    /// Notes that an analysis begins, and what recording has cost so far.
    pub fn begins(&mut self, now_ns: u64, cost: Option<&Overhead>) {
        self.began_ns = now_ns;
        self.before = cost.copied().unwrap_or_default();
        self.last = Spent::default();
    }

    /// Notes what that analysis took.
    pub fn took(&mut self, spent: Spent) {
        self.last = spent;
    }
}

/// Share of one CPU that analyses may take (0.01 is 10 ms in a second), given the program's recent CPU time. If there
/// is no budget, or that CPU time is not known, it is the largest share allowed.
fn share_of_cpu(recent: Option<&Overhead>) -> f64 {
    let of_program = |cost: &Overhead| {
        let budget = f64::from(cost.budget_ppm?) / 1e6;
        (cost.wall_ns > 0).then(|| OF_BUDGET * budget * cost.target_ns as f64 / cost.wall_ns as f64)
    };
    recent.and_then(of_program).unwrap_or(MOST_OF_CPU).clamp(LEAST_OF_CPU, MOST_OF_CPU)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[derive(Default)]
    struct Hour {
        total_ns: u64,
        last_third_ns: u64,
        dearest_ns: u64,
        analyses: u32,
        last_events: usize,
        all_asked: u32,
    }

    /// Cost of recording a program that keeps this many CPUs busy, with a budget of 2 %.
    fn cost(cpus: f64, now_ns: u64) -> Overhead {
        let target_ns = (cpus * now_ns as f64) as u64;
        Overhead { budget_ppm: Some(20_000), wall_ns: now_ns, target_ns, ..Overhead::default() }
    }

    /// An hour of analyses of a program that keeps `cpus` busy. It has `per_second` events, which cost `each_ns` each, and
    /// each analysis costs `fixed_ns` more.
    fn hour(cpus: f64, per_second: u64, each_ns: u64, fixed_ns: u64) -> Hour {
        let mut pacing = Pacing::new(0, SECOND, 1_000_000);
        let mut hour = Hour::default();
        for tenth in 0..36_000u64 {
            let now_ns = tenth * SECOND / 10;
            let cost = cost(cpus, now_ns);
            if !pacing.is_due(now_ns, Some(&cost)) {
                continue;
            }
            let window = (per_second * tenth.min(100) / 10) as usize;
            let events = window.min(pacing.events());
            let times = if pacing.depth() == Depth::Full { 5 } else { 2 };
            let cpu_ns = (fixed_ns + each_ns * events as u64) * times / 5;
            pacing.begins(now_ns, Some(&cost));
            let window_ns = events as u64 * SECOND / per_second;
            pacing.took(Spent { events, window_ns, cpu_ns });
            hour.total_ns += cpu_ns;
            hour.last_third_ns += if tenth >= 24_000 { cpu_ns } else { 0 };
            hour.dearest_ns = hour.dearest_ns.max(cpu_ns);
            hour.analyses += 1;
            hour.last_events = events;
            hour.all_asked += u32::from(pacing.depth() == Depth::Full);
        }
        hour
    }

    /// Analyses stay within their share of the CPU, even for a busy server with many expensive events.
    #[test]
    fn analyses_keep_their_share_of_the_cpu_whatever_events_cost() {
        for (cpus, share) in [(0.0, 0.002), (0.7, 0.007), (1.0, 0.01), (16.0, 0.02)] {
            for per_second in [100, 10_000, 50_000, 500_000] {
                for each_ns in [200, 2_000, 50_000] {
                    for fixed_ns in [0, 1_000_000, 30_000_000, 800_000_000] {
                        let what =
                            format!("{cpus} CPUs, {per_second}/s, {each_ns} ns each, {fixed_ns} ns for any");
                        let hour = hour(cpus, per_second, each_ns, fixed_ns);
                        let (total_ns, last_ns) = (hour.total_ns as f64, hour.last_third_ns as f64);
                        // The hour may end with an analysis whose share of the time has not passed yet.
                        let (budget_ns, dearest_ns) = (share * 3.6e12, hour.dearest_ns as f64);
                        assert!(total_ns <= budget_ns + dearest_ns, "{total_ns}: {what}");
                        assert!(
                            last_ns <= budget_ns / 3.0 + dearest_ns,
                            "it does not grow, {last_ns}: {what}"
                        );
                        assert!(
                            hour.dearest_ns <= fixed_ns + each_ns * FIRST.max(hour.last_events) as u64,
                            "{what}"
                        );
                        assert!(hour.analyses > 0 && hour.last_events > 0, "{what}");
                    }
                }
            }
        }
    }

    #[test]
    fn cheap_analyses_come_with_every_refresh_and_ask_all_questions() {
        let hour = hour(2.0, 1_000, 1_000, 100_000);
        assert_eq!((hour.analyses, hour.last_events), (3_599, 10_000));
        assert!(hour.all_asked > 3_590, "{}", hour.all_asked);
    }

    /// 10,000 events a second with a hot lock. Windows of less than a second would give other answers each time.
    #[test]
    fn a_long_window_with_few_questions_is_preferred_to_a_short_one() {
        let hour = hour(1.5, 10_000, 5_000, 1_000_000);
        assert!((1_150..=1_250).contains(&hour.analyses), "one every three seconds: {}", hour.analyses);
        assert!(hour.last_events >= 20_000, "two seconds of it: {}", hour.last_events);
        assert!(hour.all_asked <= 1, "{}", hour.all_asked);
    }

    #[test]
    fn expensive_analyses_come_less_often_with_as_many_events_as_affordable() {
        let Hour { total_ns, analyses, last_events: events, .. } = hour(2.0, 50_000, 2_000, 1_000_000);
        assert!((1_150..=1_250).contains(&analyses), "{analyses}");
        assert!((60_000..=80_000).contains(&events), "{events}");
        assert!(total_ns > 3_600 * SECOND / 50 * 9 / 10, "what may be used is used: {total_ns}");
    }

    #[test]
    fn a_long_refresh_interval_pays_for_more_events() {
        let mut pacing = Pacing::new(0, 60 * SECOND, 1_000_000);
        assert!(!pacing.is_due(60 * SECOND - 1, None) && pacing.is_due(60 * SECOND, None));
        pacing.begins(60 * SECOND, None);
        pacing.took(Spent { events: 16_384, window_ns: SECOND, cpu_ns: 16_384 * 2_000 });
        assert!(!pacing.is_due(120 * SECOND - 1, None) && pacing.is_due(120 * SECOND, None));
        assert_eq!(pacing.events(), 200_000, "all questions cost three times as much");
        pacing.begins(120 * SECOND, None);
        pacing.took(Spent { events: 200_000, window_ns: 10 * SECOND, cpu_ns: 3_600 * SECOND });
        let (just_before, then) = ((180_120 - 1) * SECOND, (180_120 + 1) * SECOND);
        assert!(!pacing.is_due(just_before, None) && pacing.is_due(then, Some(&cost(2.0, then))));
        assert_eq!(pacing.events(), 2_048);
    }

    #[test]
    fn without_a_budget_analyses_take_the_largest_share_allowed() {
        let free = Overhead { budget_ppm: None, ..cost(0.1, SECOND) };
        assert_eq!([None, Some(&free)].map(share_of_cpu), [MOST_OF_CPU; 2]);
        assert_eq!(share_of_cpu(Some(&cost(1.0, SECOND))), 0.01);
    }
}
