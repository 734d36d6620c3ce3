//! How much of the window is analysed, how deeply, and when: analysing takes a small share of the program's CPU time, however
//! many events come and however expensive each of them is. What an analysis took decides when the next one may begin, and what
//! it gets: few questions about a long stretch rather than all of them about a short one.

use super::analysis::Depth;
use engine::event::Overhead;

/// What analysing may take of the budget, a share of the program's own CPU time: recording needs the rest.
const OF_BUDGET: f64 = 0.5;
/// Of one CPU, however much the program computes.
const MOST_OF_CPU: f64 = 0.02;
/// Of one CPU, though the program hardly runs: its screen would stand still otherwise.
const LEAST_OF_CPU: f64 = 0.002;
/// Numbers get this old before the next analysis gets fewer events instead of coming even later.
const LONGEST_NS: u64 = 3_000_000_000;
/// An analysis that took this part of what can be paid tells what more events cost. The window grows at first, and one of ten
/// seconds took twice what could be paid.
const TELLING: f64 = 0.25;
/// All questions take this many times as long as few of them, at most.
const ALL_QUESTIONS: f64 = 3.0;
/// All of them are asked if that can be paid for so much of the program, which is enough for steady numbers.
const ENOUGH_NS: f64 = 3e9;
/// And for this many times as much where few were asked before: not now these and now those.
const CLEARLY: f64 = 1.3;
/// Fewer events are not worth an analysis: a program that switches 100,000 times a second is covered for 20
/// ms.
const FEWEST: usize = 2_048;
/// How many the first analysis gets. Their cost is unknown yet; the time until the next analysis depends on
/// it.
const FIRST: usize = 4_096;

/// What an analysis took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Its events.
    pub events: usize,
    /// How long its window was, nanoseconds.
    pub window_ns: u64,
    /// CPU time of its thread, nanoseconds.
    pub cpu_ns: u64,
}

/// See the module. Times are nanoseconds of one clock.
#[derive(Clone, Copy, Debug)]
pub struct Pacing {
    refresh_ns: u64,
    /// Between two analyses in the long run.
    longest_ns: u64,
    most: usize,
    events: usize,
    depth: Depth,
    /// When the last one began, and what recording had cost by then.
    began_ns: u64,
    before: Overhead,
    last: Spent,
}

impl Pacing {
    /// The first analysis after `refresh_ns`, later ones no sooner after each other, each of `most` events at most.
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

    /// Whether it is time, when recording has cost this since its start: the last analysis has been its share of the time.
    /// The next one gets as many events as that share pays for within the longest pause.
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

    /// What the next one gets, when the last one, of `events` in `window_ns`, took `cpu_ns` and `paid_ns` can be paid.
    fn plan(&mut self, events: usize, window_ns: u64, cpu_ns: f64, paid_ns: f64) {
        // How much of the program all questions can be asked of.
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
        // Few events in a cheap analysis say nothing about many: most of its cost may be there without any.
        let is_telling = cpu_ns > paid_ns * TELLING;
        self.events = if is_telling { affordable } else { affordable.max(self.events) }.min(self.most);
    }

    /// Events of the next analysis at most.
    pub fn events(&self) -> usize {
        self.events
    }

    /// How much the next analysis is asked.
    pub fn depth(&self) -> Depth {
        self.depth
    }

    /// One begins, when recording has cost this since its start.
    pub fn begins(&mut self, now_ns: u64, cost: Option<&Overhead>) {
        self.began_ns = now_ns;
        self.before = cost.copied().unwrap_or_default();
        self.last = Spent::default();
    }

    /// What the one that began last took.
    pub fn took(&mut self, spent: Spent) {
        self.last = spent;
    }
}

/// What analyses may take of one CPU, by what a program did meanwhile: 0.01 is 10 ms a second. Without a budget, or if what
/// the program did is not known, it is the most that they ever may.
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

    /// What recording has cost a program that keeps this many CPUs busy, at the budget of 2 %.
    fn cost(cpus: f64, now_ns: u64) -> Overhead {
        let target_ns = (cpus * now_ns as f64) as u64;
        Overhead { budget_ppm: Some(20_000), wall_ns: now_ns, target_ns, ..Overhead::default() }
    }

    /// An hour of analysing a program that keeps `cpus` busy with `per_second` events, which cost `each_ns` each, and
    /// `fixed_ns` for any analysis.
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

    /// `top` of a Redis at full load took 29 % of a CPU at first and 141 % after a minute. Later it took 2 % of a CPU, of
    /// programs on one CPU their whole budget.
    #[test]
    fn an_hour_takes_its_share_whatever_events_cost() {
        for (cpus, share) in [(0.0, 0.002), (0.7, 0.007), (1.0, 0.01), (16.0, 0.02)] {
            for per_second in [100, 10_000, 50_000, 500_000] {
                for each_ns in [200, 2_000, 50_000] {
                    for fixed_ns in [0, 1_000_000, 30_000_000, 800_000_000] {
                        let what =
                            format!("{cpus} CPUs, {per_second}/s, {each_ns} ns each, {fixed_ns} ns for any");
                        let hour = hour(cpus, per_second, each_ns, fixed_ns);
                        let (total_ns, last_ns) = (hour.total_ns as f64, hour.last_third_ns as f64);
                        // The last one has not been waited for yet.
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
    fn what_is_cheap_comes_with_every_refresh_and_is_whole() {
        let hour = hour(2.0, 1_000, 1_000, 100_000);
        assert_eq!((hour.analyses, hour.last_events), (3_599, 10_000));
        assert!(hour.all_asked > 3_590, "{}", hour.all_asked);
    }

    /// 10,000 events a second with a hot lock: windows of less than a second, which were up to eight seconds old, and said now this
    /// and now that.
    #[test]
    fn few_questions_are_asked_of_a_long_stretch_rather_than_all_of_a_short_one() {
        let hour = hour(1.5, 10_000, 5_000, 1_000_000);
        assert!((1_150..=1_250).contains(&hour.analyses), "one every three seconds: {}", hour.analyses);
        assert!(hour.last_events >= 20_000, "two seconds of it: {}", hour.last_events);
        assert!(hour.all_asked <= 1, "{}", hour.all_asked);
    }

    #[test]
    fn what_is_dear_comes_after_some_seconds_with_what_can_be_paid() {
        let Hour { total_ns, analyses, last_events: events, .. } = hour(2.0, 50_000, 2_000, 1_000_000);
        assert!((1_150..=1_250).contains(&analyses), "{analyses}");
        assert!((60_000..=80_000).contains(&events), "{events}");
        assert!(total_ns > 3_600 * SECOND / 50 * 9 / 10, "what may be used is used: {total_ns}");
    }

    #[test]
    fn a_long_refresh_pays_for_more() {
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
    fn without_a_budget_it_takes_the_most_that_it_may() {
        let free = Overhead { budget_ppm: None, ..cost(0.1, SECOND) };
        assert_eq!([None, Some(&free)].map(share_of_cpu), [MOST_OF_CPU; 2]);
        assert_eq!(share_of_cpu(Some(&cost(1.0, SECOND))), 0.01);
    }
}
