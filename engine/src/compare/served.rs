//! What a recording tells of one request of a server, and how much chance is in that. (longpole's own method.)
//!
//! The recording of a server is a window of its life: how long it is, and how much work arrives in it, says nothing about
//! the program. So two recordings of a server are compared by what one request takes.
//!
//! **Chance.** Requests follow each other in stretches of equal number, ten or five of them. The spread of the stretches'
//! numbers gives the spread of their mean (method of batch means), with Student's factor for so few numbers; the larger
//! result counts. Without single requests, the spread of the CPU time in equal times stands for all of them.
//!
//! Whole recordings of one server differ by more, since other programs come and go: chance is at least [`Between`], from three
//! recordings of 3 s of each of 26 servers, on two CPUs that other programs kept busy for a sixth to nearly all of the
//! time. The dependence on their use of the CPUs (its root) and on the length (its inverse root) is an assumption.

use crate::percentile::rank;
use crate::program::{Endpoint, Program, is_answered_at};
use crate::time::Timestamp;
use crate::timeline::{State, Timeline};

/// Numbers of stretches, each with the factor that covers 19 of 20 differences (Student's t for one stretch less).
const STRETCHES: [(usize, f64); 2] = [(10, 2.26), (5, 2.78)];
/// Fewest requests in a stretch: with fewer, stretches show no more than single requests.
const FEWEST: usize = 4;
/// How far two recordings of one server differ, as parts of the numbers, if other programs use all CPUs: 19 of 20 differences
/// are smaller.
struct Between {
    rate: f64,
    time: f64,
    slowest: f64,
    cpu: f64,
}

const BETWEEN: Between = Between { rate: 0.49, time: 0.57, slowest: 0.78, cpu: 0.35 };
/// Length of these recordings, nanoseconds.
const MEASURED_NS: f64 = 3e9;
/// Use of the CPUs by others that is always assumed.
const OTHERS: f64 = 0.005;
/// Buckets of a histogram are this much wide.
const BUCKET: f64 = 0.25;
/// With fewer than this part of the requests recorded one by one, percentiles come from a histogram.
const NEARLY_ALL: f64 = 0.95;

/// A number of one recording, and its chance: the half-width of a 95 % interval; `None`: not known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// The number.
    pub value: f64,
    /// Its chance, in the number's unit.
    pub chance: Option<f64>,
}

/// What one request of a server takes in a recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Served {
    /// The requests' port, and their sums.
    pub end: Endpoint,
    /// Requests a second.
    pub rate: Measured,
    /// Mean time of a request, nanoseconds.
    pub mean_ns: Measured,
    /// 99th percentile of the requests' times, nanoseconds.
    pub p99_ns: Measured,
    /// Mean time of a request unread in the socket, nanoseconds.
    pub unread_ns: Measured,
    /// CPU time of all recorded threads for each request, nanoseconds, without the cost of recording; `None`: not known.
    pub cpu_ns: Option<Measured>,
}

impl Served {
    /// The requests that a program serves at an endpoint. `timeline`: that of the same recording; without it, chance is not known.
    pub fn of(program: &Program, timeline: Option<&Timeline>, end: &Endpoint) -> Served {
        let end = end.clone();
        let single = timeline.map(|timeline| Single::of(timeline, &end)).unwrap_or_default();
        let parts = |count| timeline.map_or_else(Vec::new, |timeline| single.stretches(timeline, count));
        let stretches = STRETCHES.map(|(count, factor)| (parts(count), factor));
        let others = root_of_others(program);
        let measured = |value: f64, between: f64, of: fn(&Stretch) -> f64| {
            let spreads = stretches.iter().filter_map(|(stretches, factor)| spread(stretches, of, *factor));
            let within = spreads.max_by(f64::total_cmp);
            Measured { value, chance: within.map(|within| value * within.max(between * others)) }
        };
        let unread_ns = end.queued * end.mean_ns;
        let mut p99_ns = measured(end.p99_ns as f64, BETWEEN.slowest, |stretch| stretch.p99_ns);
        if (single.requests.len() as f64) < NEARLY_ALL * end.count as f64 {
            p99_ns.chance = p99_ns.chance.map(|chance| chance + BUCKET * p99_ns.value);
        }
        let cpu_ns = cpus(program, timeline, &single).map(|cpus| cpus * 1e9 / end.per_second);
        Served {
            rate: measured(end.per_second, BETWEEN.rate, |stretch| stretch.rate),
            mean_ns: measured(end.mean_ns, BETWEEN.time, |stretch| stretch.mean_ns),
            p99_ns,
            unread_ns: measured(unread_ns, BETWEEN.slowest, |stretch| stretch.unread_ns),
            cpu_ns: cpu_ns.map(|value| measured(value, BETWEEN.cpu, |stretch| stretch.cpu_ns)),
            end,
        }
    }

    /// Connections that clients use: open requests, divided by the share of the time in which a connection has one. `None`:
    /// not known.
    pub fn connections(&self) -> Option<f64> {
        self.end.load.filter(|load| *load > 0.0).map(|load| self.end.open / load)
    }
}

/// The root of the part of the CPUs' time that other programs used, less for a longer recording.
fn root_of_others(program: &Program) -> f64 {
    let machine = f64::from(program.recorded_cpus.unwrap_or(1).max(1));
    let cpus: f64 = program.recorded.others.iter().map(|other| other.cpus).sum();
    let length_ns = program.overhead.map_or(MEASURED_NS, |cost| cost.wall_ns.max(1) as f64);
    let all = (cpus / machine).clamp(0.0, 1.0) + OTHERS;
    (all * (MEASURED_NS / length_ns).min(1.0)).sqrt()
}

/// CPUs that the program keeps busy while requests are counted, on average, without the cost of recording.
fn cpus(program: &Program, timeline: Option<&Timeline>, single: &Single) -> Option<f64> {
    let cost = program.overhead.filter(|cost| cost.wall_ns > 0 && cost.target_ns > 0)?;
    let target_ns = cost.target_ns as f64;
    let counted_ns = single.length_ns();
    Some(match timeline {
        Some(timeline) if counted_ns > 0.0 => {
            let own = target_ns / (target_ns + cost.in_threads_ns() as f64);
            own * single.busy_ns(timeline, 0, single.requests.len() - 1) / counted_ns
        }
        _ => target_ns / cost.wall_ns as f64,
    })
}

/// A request that was answered: when, and how long it took until then and unread, nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Answered {
    at: Timestamp,
    took_ns: u64,
    unread_ns: u64,
}

/// Requests that were recorded one by one, in the order of their answers.
#[derive(Clone, Debug, Default)]
struct Single {
    requests: Vec<Answered>,
    /// Indexes of the requests before a pause in counting.
    pauses: Vec<usize>,
}

/// Requests that follow each other.
#[derive(Clone, Copy, Debug, Default)]
struct Stretch {
    /// Requests in a nanosecond.
    rate: f64,
    mean_ns: f64,
    p99_ns: f64,
    unread_ns: f64,
    cpu_ns: f64,
}

impl Single {
    fn of(timeline: &Timeline, end: &Endpoint) -> Single {
        let answered = timeline.socket_requests.iter().filter_map(|request| {
            let (_, at) = request.answered.filter(|_| is_answered_at(request, end))?;
            let since = |from: Timestamp, to: Timestamp| to.0.saturating_sub(from.0);
            let (took_ns, unread_ns) = (since(request.arrived, at), since(request.arrived, request.read));
            Some(Answered { at, took_ns, unread_ns })
        });
        let requests: Vec<Answered> = answered.collect();
        // Nothing is recorded in a pause: pauses are the longest times between answers.
        let mut between: Vec<usize> = (0..requests.len().saturating_sub(1)).collect();
        between.sort_by_key(|&place| {
            std::cmp::Reverse(requests[place + 1].at.0.saturating_sub(requests[place].at.0))
        });
        between.truncate(timeline.requests.as_ref().map_or(0, |requests| requests.pauses as usize));
        Single { requests, pauses: between }
    }

    /// Time from the first answer to the last one without pauses, nanoseconds.
    fn length_ns(&self) -> f64 {
        self.requests.len().checked_sub(1).map_or(0.0, |last| self.between_ns(0, last))
    }

    /// Time between two answers without pauses, nanoseconds.
    fn between_ns(&self, from: usize, to: usize) -> f64 {
        self.pieces(from, to).map(|(from, to)| to.0.saturating_sub(from.0) as f64).sum()
    }

    /// Running time of all threads between two answers without pauses, nanoseconds.
    fn busy_ns(&self, timeline: &Timeline, from: usize, to: usize) -> f64 {
        self.pieces(from, to).map(|(from, to)| busy_ns(timeline, from, to)).sum()
    }

    /// The time between two answers, in pieces without pauses.
    fn pieces(&self, from: usize, to: usize) -> impl Iterator<Item = (Timestamp, Timestamp)> + '_ {
        let mut cuts: Vec<usize> =
            self.pauses.iter().copied().filter(|cut| (from..to).contains(cut)).collect();
        cuts.sort_unstable();
        let starts = std::iter::once(from).chain(cuts.clone().into_iter().map(|cut| cut + 1));
        let at = |place: usize| self.requests[place].at;
        starts.zip(cuts.into_iter().chain([to])).map(move |(from, to)| (at(from), at(to)))
    }

    /// The requests in this many stretches of equal number; if there are too few single ones, stretches of equal length.
    fn stretches(&self, timeline: &Timeline, count: usize) -> Vec<Stretch> {
        let size = self.requests.len().saturating_sub(1) / count;
        if size < FEWEST {
            return of_equal_length(timeline, count);
        }
        let stretch = |number: usize| {
            // From the answer before the first one of the stretch.
            let (from, to) = (number * size, (number + 1) * size);
            let requests = &self.requests[from + 1..=to];
            let mean = |of: fn(&Answered) -> u64| {
                requests.iter().map(|request| of(request) as f64).sum::<f64>() / size as f64
            };
            let mut times: Vec<u64> = requests.iter().map(|request| request.took_ns).collect();
            times.sort_unstable();
            Stretch {
                rate: size as f64 / self.between_ns(from, to),
                mean_ns: mean(|request| request.took_ns),
                p99_ns: rank(size, 99).map_or(0.0, |place| times[place] as f64),
                unread_ns: mean(|request| request.unread_ns),
                cpu_ns: self.busy_ns(timeline, from, to) / size as f64,
            }
        };
        (0..count).map(stretch).collect()
    }
}

/// Stretches of equal length, whose CPU time stands for all numbers.
fn of_equal_length(timeline: &Timeline, count: usize) -> Vec<Stretch> {
    let (start, length) = (timeline.start.0, timeline.end.0.saturating_sub(timeline.start.0) / count as u64);
    let stretch = |number: u64| {
        let from = start + number * length;
        let busy = busy_ns(timeline, Timestamp(from), Timestamp(from + length));
        Stretch { rate: busy, mean_ns: busy, p99_ns: busy, unread_ns: busy, cpu_ns: busy }
    };
    (0..count as u64).map(stretch).collect()
}

/// Running time of all threads in a part of the recording, nanoseconds.
fn busy_ns(timeline: &Timeline, from: Timestamp, to: Timestamp) -> f64 {
    let spans = timeline.threads.iter().flat_map(|thread| {
        let first = thread.intervals.partition_point(|interval| interval.start <= from).saturating_sub(1);
        thread.spans_from(first).take_while(move |(start, ..)| *start < to)
    });
    let running = spans.filter(|(.., state)| matches!(state, State::Running { .. }));
    running.map(|(start, end, _)| end.min(to).0.saturating_sub(start.max(from).0) as f64).sum()
}

/// Half-width of the 95 % interval around the mean of stretches, as a part of the mean; `None`: not known.
fn spread(stretches: &[Stretch], of: fn(&Stretch) -> f64, factor: f64) -> Option<f64> {
    let count = stretches.len() as f64;
    let mean = stretches.iter().map(of).sum::<f64>() / count;
    let squares: f64 = stretches.iter().map(|stretch| (of(stretch) - mean).powi(2)).sum();
    let part = factor * (squares / (count - 1.0) / count).sqrt() / mean;
    (stretches.len() > 1 && part.is_finite()).then_some(part)
}
