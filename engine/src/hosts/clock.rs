//! How far one host's clock is ahead of another's, from messages both ways (as NTP estimates it: RFC 5905, section 8).
//!
//! A request leaves at `a` and arrives at `b` on the other host's clock; its answer leaves there at `c` and arrives at `d`. If
//! both messages are under way for the same time, the other clock is ahead by ((b − a) + (c − d)) / 2. The error is at most half
//! of the time that both are under way, (d − a) − (c − b): so the fastest requests count. Clocks run at different speeds, so
//! this is done for stretches of the recording, with straight lines in between.

use super::exchanges::Both;

/// The largest number of stretches.
const MOST_STRETCHES: usize = 32;
/// The least number of requests in a stretch: then some of them met no queue.
const FEWEST: usize = 16;
/// This part of a stretch's requests, the fastest ones, decides.
const FASTEST: usize = 4;

/// A host's clock, compared with the first host's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Clock {
    /// Times on this clock, ascending, and how far it was ahead then, nanoseconds.
    knots: Vec<(u64, i64)>,
    /// Half the time that both messages of the deciding requests were under way, nanoseconds.
    pub(super) error_ns: u64,
}

impl Clock {
    /// How far this clock is ahead when it shows `own_ns`, nanoseconds.
    pub(super) fn ahead_ns(&self, own_ns: u64) -> i64 {
        let after = self.knots.partition_point(|(time, _)| *time <= own_ns);
        // Before the first knot and after the last one, the line through the nearest two goes on.
        let right = after.clamp(1, self.knots.len().saturating_sub(1).max(1));
        match (self.knots.get(right - 1), self.knots.get(right)) {
            (Some(left), Some(right)) => line(*left, *right, own_ns),
            (Some((_, ahead)), None) => *ahead,
            _ => 0,
        }
    }

    /// The first host's time when this clock shows `own_ns`.
    pub(super) fn first_host_s(&self, own_ns: u64) -> u64 {
        own_ns.saturating_add_signed(self.ahead_ns(own_ns).saturating_neg())
    }

    /// What this clock shows at the first host's time.
    pub(super) fn own(&self, first_ns: u64) -> u64 {
        // The clocks' speeds differ by less than a thousandth: each round has a thousandth of the error before.
        let mut own_ns = first_ns;
        for _ in 0..4 {
            own_ns = first_ns.saturating_add_signed(self.ahead_ns(own_ns));
        }
        own_ns
    }
}

fn line((left, before): (u64, i64), (right, after): (u64, i64), at: u64) -> i64 {
    let share = (at as f64 - left as f64) / (right as f64 - left as f64);
    if !share.is_finite() {
        return before;
    }
    before.saturating_add(((after as f64 - before as f64) * share) as i64)
}

/// One request's estimate.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    /// The time on the other host's clock.
    time: u64,
    /// How far that clock is ahead.
    ahead: i64,
    /// Time under way.
    under_way: u64,
}

/// The clocks of all hosts. The error is the index of a host that no request connects with the first one.
pub(super) fn of_hosts(count: usize, both: &[Both]) -> Result<Vec<Clock>, usize> {
    let mut clocks: Vec<Option<Clock>> = vec![None; count];
    if let Some(first) = clocks.first_mut() {
        *first = Some(Clock::default());
    }
    // Each host that is found may connect others with the first one.
    let connected = |clocks: &[Option<Clock>]| {
        let mut unknown = (0..count).filter(|place| clocks.get(*place).is_some_and(Option::is_none));
        unknown.find_map(|place| Some((place, of_host(place, clocks, both)?)))
    };
    while let Some((place, found)) = connected(&clocks) {
        if let Some(clock) = clocks.get_mut(place) {
            *clock = Some(found);
        }
    }
    let unknown = clocks.iter().position(Option::is_none);
    unknown.map_or_else(|| Ok(clocks.into_iter().flatten().collect()), Err)
}

/// The clock of a host by its requests to and from one host whose clock is known: that with the most requests.
fn of_host(place: usize, clocks: &[Option<Clock>], both: &[Both]) -> Option<Clock> {
    let known = clocks.iter().enumerate().filter_map(|(other, clock)| Some((other, clock.as_ref()?)));
    let estimates = known.map(|(other, clock)| {
        let all: Vec<Estimate> =
            both.iter().filter_map(|both| estimate(both, place, (other, clock))).collect();
        (all, clock.error_ns)
    });
    let (mut estimates, error_ns) = estimates.max_by_key(|(all, _)| all.len())?;
    if estimates.is_empty() {
        return None;
    }
    estimates.sort_unstable_by_key(|estimate| estimate.time);
    let stretches = (estimates.len() / FEWEST).clamp(1, MOST_STRETCHES);
    let mut clock = Clock { knots: Vec::with_capacity(stretches), error_ns: 0 };
    let length = estimates.len().div_ceil(stretches);
    for stretch in estimates.chunks_mut(length) {
        stretch.sort_unstable_by_key(|estimate| estimate.under_way);
        let fastest = stretch.len().div_ceil(FASTEST);
        let Some(fastest) = stretch.get_mut(..fastest) else { continue };
        let error = fastest.last().map_or(0, |slowest| slowest.under_way / 2);
        fastest.sort_unstable_by_key(|estimate| estimate.ahead);
        let Some(middle) = fastest.get(fastest.len() / 2).copied() else { continue };
        if clock.knots.last().is_none_or(|(time, _)| *time < middle.time) {
            clock.knots.push((middle.time, middle.ahead));
        }
        clock.error_ns = clock.error_ns.max(error);
    }
    clock.error_ns = clock.error_ns.saturating_add(error_ns);
    Some(clock)
}

/// How far the clock of `place` is ahead of the first host's by this request between it and `other`.
fn estimate(both: &Both, place: usize, (other, clock): (usize, &Clock)) -> Option<Estimate> {
    let (asks, answers) = (&both.asks.exchange, &both.answers.exchange);
    let to_first = |time| i128::from(clock.first_host_s(time));
    let (a, b, c, d) = (asks.sent_ns, answers.arrived_ns, answers.sent_ns, asks.arrived_ns);
    let (time, ahead) = if (both.asks.host, both.answers.host) == (other, place) {
        (b, (i128::from(b) - to_first(a) + i128::from(c) - to_first(d)) / 2)
    } else if (both.asks.host, both.answers.host) == (place, other) {
        (a, (i128::from(a) - to_first(b) + i128::from(d) - to_first(c)) / 2)
    } else {
        return None;
    };
    let under_way = (i128::from(d) - i128::from(a)) - (i128::from(c) - i128::from(b));
    // A thread may be interrupted between sending a message and the record, so a time may be a little too late.
    let under_way = u64::try_from(under_way.unsigned_abs()).ok()?;
    Some(Estimate { time, ahead: i64::try_from(ahead).ok()?, under_way })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_two_knots_and_beyond_them_a_clock_runs_on_a_line() {
        let clock = Clock { knots: vec![(1_000, 100), (2_000, 110)], error_ns: 0 };
        assert_eq!([0, 1_000, 1_500, 3_000].map(|time| clock.ahead_ns(time)), [90, 100, 105, 120]);
        for time in [500, 1_500, 9_000] {
            assert!(clock.own(clock.first_host_s(time)).abs_diff(time) <= 1);
        }
        assert_eq!(Clock::default().ahead_ns(5), 0);
        assert_eq!(Clock { knots: vec![(7, -3)], error_ns: 0 }.first_host_s(10), 13);
    }
}
