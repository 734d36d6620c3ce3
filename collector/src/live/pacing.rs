//! How much of the window is analysed, and when: analysing takes a small share of one CPU, however many events come and
//! however expensive each of them is. What an analysis took decides when the next one may begin, and how many events it gets.

/// Analysing may take one part in this many of the time: 2 % of one CPU.
const ONE_IN: u64 = 50;
/// Numbers get this old before the next analysis gets fewer events instead of coming even later.
const LONGEST_NS: u64 = 5_000_000_000;
/// Fewer events are not worth an analysis: a program that switches 100,000 times a second is covered for 40
/// ms.
const FEWEST: usize = 4_096;
/// How many the first analysis gets. Their cost is unknown yet; the time until the next analysis depends on
/// it.
const FIRST: usize = 16_384;

/// What an analysis took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Its events.
    pub events: usize,
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
    /// When the last one began.
    began_ns: u64,
    next_ns: u64,
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
            began_ns: start_ns,
            next_ns: start_ns.saturating_add(refresh_ns),
        }
    }

    /// Whether it is time.
    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.next_ns
    }

    /// Events of the next analysis at most.
    pub fn events(&self) -> usize {
        self.events
    }

    /// One begins.
    pub fn begins(&mut self, now_ns: u64) {
        self.began_ns = now_ns;
        self.next_ns = now_ns.saturating_add(self.refresh_ns);
    }

    /// What the one that began last took. The next one waits until this one has been its share of the time, and gets as
    /// many events as that share pays for within the longest pause.
    pub fn took(&mut self, spent: Spent) {
        let pause_ns = spent.cpu_ns.saturating_mul(ONE_IN).max(self.refresh_ns);
        self.next_ns = self.began_ns.saturating_add(pause_ns);
        let paid_ns = self.longest_ns / ONE_IN;
        let affordable = (spent.events as u128 * u128::from(paid_ns)) / u128::from(spent.cpu_ns.max(1));
        let affordable =
            usize::try_from(affordable).unwrap_or(usize::MAX).clamp(FEWEST, self.most.max(FEWEST));
        // Few events in a cheap analysis say nothing about many: most of its cost may be there without any.
        let too_dear = spent.cpu_ns > paid_ns;
        self.events = if too_dear { affordable } else { affordable.max(self.events) }.min(self.most);
    }
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
    }

    /// An hour of analysing a program with `per_second` events, which cost `each_ns` each, and `fixed_ns` for
    /// any analysis.
    fn hour(per_second: u64, each_ns: u64, fixed_ns: u64) -> Hour {
        let mut pacing = Pacing::new(0, SECOND, 1_000_000);
        let mut hour = Hour::default();
        for tenth in 0..36_000u64 {
            let now_ns = tenth * SECOND / 10;
            if !pacing.is_due(now_ns) {
                continue;
            }
            let window = (per_second * tenth.min(100) / 10) as usize;
            let events = window.min(pacing.events());
            let cpu_ns = fixed_ns + each_ns * events as u64;
            pacing.begins(now_ns);
            pacing.took(Spent { events, cpu_ns });
            hour.total_ns += cpu_ns;
            hour.last_third_ns += if tenth >= 24_000 { cpu_ns } else { 0 };
            hour.dearest_ns = hour.dearest_ns.max(cpu_ns);
            hour.analyses += 1;
            hour.last_events = events;
        }
        hour
    }

    /// `top` of a Redis at full load took 29 % of a CPU at first and 141 % after a minute.
    #[test]
    fn an_hour_takes_its_share_whatever_events_cost() {
        for per_second in [100, 10_000, 50_000, 500_000] {
            for each_ns in [200, 2_000, 50_000] {
                for fixed_ns in [0, 1_000_000, 30_000_000, 800_000_000] {
                    let what = format!("{per_second}/s, {each_ns} ns each, {fixed_ns} ns beside");
                    let hour = hour(per_second, each_ns, fixed_ns);
                    let (total_ns, last_ns) = (hour.total_ns, hour.last_third_ns);
                    // The last one has not been waited for yet.
                    let budget_ns = 3_600 * SECOND / ONE_IN;
                    assert!(total_ns <= budget_ns + hour.dearest_ns, "{total_ns}: {what}");
                    assert!(
                        last_ns <= budget_ns / 3 + hour.dearest_ns,
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

    #[test]
    fn what_is_cheap_comes_with_every_refresh_and_is_whole() {
        let hour = hour(1_000, 1_000, 100_000);
        assert_eq!((hour.analyses, hour.last_events), (3_599, 10_000));
    }

    #[test]
    fn what_is_dear_comes_after_some_seconds_with_what_can_be_paid() {
        let Hour { total_ns, analyses, last_events: events, .. } = hour(50_000, 2_000, 1_000_000);
        assert!((680..=760).contains(&analyses), "{analyses}");
        assert!((45_000..=50_000).contains(&events), "{events}");
        assert!(total_ns > 3_600 * SECOND / ONE_IN * 9 / 10, "what may be used is used: {total_ns}");
    }

    #[test]
    fn a_long_refresh_pays_for_more() {
        let mut pacing = Pacing::new(0, 60 * SECOND, 1_000_000);
        assert!(!pacing.is_due(60 * SECOND - 1) && pacing.is_due(60 * SECOND));
        pacing.begins(60 * SECOND);
        pacing.took(Spent { events: 16_384, cpu_ns: 16_384 * 2_000 });
        assert_eq!(pacing.events(), 600_000);
        assert!(!pacing.is_due(120 * SECOND - 1) && pacing.is_due(120 * SECOND));
        pacing.took(Spent { events: 600_000, cpu_ns: u64::MAX });
        assert_eq!(pacing.events(), 4_096);
        assert!(!pacing.is_due(u64::MAX - 1));
    }
}
