//! A predicted run: what threads do on so many CPUs.

use super::columns::Columns;
use super::lanes::{Item, Lanes, quantum, summed};
use super::palette::{Palette, StateColour};
use engine::predict::Timing;
use engine::report::Cpus;
use engine::schedule::{Doing, Why};
use engine::time::Ticks;
use serde::Serialize;

/// States of all threads at most, on one CPU count.
const STATES: usize = 150_000;

/// How coarse it is. Times are nanoseconds from its beginning.
#[derive(Debug, Serialize)]
pub struct PredictedRun {
    length_ns: f64,
    /// Shorter states are summed up; 0: none are.
    quantum_ns: u64,
}

/// A thread's states as they come.
#[derive(Default)]
struct Life {
    items: Vec<Item>,
    until: u64,
}

/// Adds its columns under this name.
pub fn run(
    timing: &Timing<'_>,
    cpus: Cpus,
    name: &str,
    states: &mut Palette<StateColour>,
    columns: &mut Columns,
) -> PredictedRun {
    let mut lives: Vec<Life> = Vec::new();
    lives.resize_with(timing.program().threads.len(), Life::default);
    let none = states.number(StateColour { state: "none", ..StateColour::default() });
    let outcome = timing.run_watched(
        cpus,
        0,
        Box::new(|interval| {
            let Some(life) = lives.get_mut(interval.thread.0 as usize) else { return };
            let (start, end) = (whole(interval.start), whole(interval.end));
            life.items.push(Item { code: none, ns: start.saturating_sub(life.until), more: 0 });
            let code = states.number(colour(interval.doing, interval.cpu));
            life.items.push(Item { code, ns: end.saturating_sub(start.max(life.until)), more: 0 });
            life.until = end.max(life.until);
        }),
    );
    let quantum = quantum(STATES, |quantum| {
        let mut count = 0;
        lives.iter().for_each(|life| summed(life.items.iter().copied(), quantum, |_, _| count += 1));
        count
    });
    let mut lanes = Lanes::default();
    for life in &lives {
        lanes.add(0, life.items.iter().copied(), quantum);
    }
    lanes.finish(name, columns);
    PredictedRun { length_ns: outcome.length.as_ns_f64(), quantum_ns: quantum }
}

/// Points in time are rounded, not lengths: these add up.
pub fn whole(time: Ticks) -> u64 {
    time.0.saturating_add(Ticks::PER_NS / 2) / Ticks::PER_NS
}

fn colour(doing: Doing, cpu: Option<u32>) -> StateColour {
    let (state, reason, object) = match doing {
        Doing::Nothing => ("none", None, None),
        Doing::Busy => ("running", None, None),
        Doing::Spinning(object) => ("spinning", None, Some(object.0)),
        Doing::Ready => ("ready", None, None),
        Doing::Blocked(why) => match why {
            Why::Object(object) => ("blocked", None, Some(object.0)),
            Why::Sleep => ("blocked", Some("sleep"), None),
            Why::Join => ("blocked", Some("thread end"), None),
            Why::Edge => ("blocked", Some("wake-up as recorded"), None),
            Why::Turn => ("blocked", Some("its turn"), None),
        },
    };
    StateColour { state, cpu, reason, object, ..StateColour::default() }
}
