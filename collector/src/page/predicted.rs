//! A predicted run: the states of threads on a number of CPUs, and the critical path.

use super::colours::{PathColour, StateColour};
use super::columns::Columns;
use super::lanes::Lanes;
use super::path::{self, PathJson};
use crate::level_of_detail::{Item, quantum, summed};
use crate::palette::Palette;
use engine::predict::Timing;
use engine::program::Program;
use engine::report::Cpus;
use engine::schedule::{Interval, SimulatedState, Why};
use engine::view::path_and_run;
use serde::Serialize;

/// Largest number of states of all threads for one of [`USUAL`] CPU counts; with more CPU counts, all share the room
/// for [`USUAL`].
const STATES: usize = 150_000;
/// Usual number of CPU counts.
pub const USUAL: usize = 6;

/// Length and level of detail. Times are nanoseconds from the run's start.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PredictedRun {
    length_ns: f64,
    /// States shorter than this are summed up; 0: none are.
    quantum_ns: u64,
}

/// The page's data for one CPU count, with codes of its own.
#[derive(Debug)]
pub struct Simulated {
    run: PredictedRun,
    lanes: Lanes,
    states: Palette<StateColour>,
    path: PathJson,
    path_lanes: Lanes,
    path_colours: Palette<PathColour>,
}

impl Simulated {
    /// Runs a program on this number of CPUs; `runs` is the number of all such runs. Functions that only samples show
    /// are calls in the run.
    pub fn on(timing: &Timing<'_>, cpus: Cpus, runs: usize) -> Simulated {
        let threads = timing.program().threads.len();
        let mut lives = Lives::of(timing.program(), cpus != Cpus::Infinite);
        let (path, length) = path_and_run(timing, cpus, &mut |interval| lives.tell(interval));
        let (path, path_lanes, path_colours) = path::path(&path, threads, runs);
        let quantum = lives.quantum(STATES * USUAL / runs.max(USUAL));
        let mut lanes = Lanes::default();
        for life in &lives.lives {
            lanes.add(0, life.items.iter().copied(), quantum);
        }
        let run = PredictedRun { length_ns: length.as_ns_f64(), quantum_ns: quantum };
        Simulated { run, lanes, states: lives.states, path, path_lanes, path_colours }
    }

    /// Adds the run's columns, under names with this number.
    pub fn finish(
        &self,
        number: usize,
        (states, path_colours): (&mut Palette<StateColour>, &mut Palette<PathColour>),
        columns: &mut Columns,
    ) -> (PredictedRun, PathJson) {
        let numbers = states.take(&self.states);
        let of = |numbers: &[u32], code: u32| numbers.get(code as usize).copied().unwrap_or(0);
        self.lanes.finish(&format!("predicted{number}"), |code| of(&numbers, code), columns);
        let numbers = path_colours.take(&self.path_colours);
        self.path_lanes.finish(&format!("path{number}"), |code| of(&numbers, code), columns);
        (self.run, self.path.clone())
    }
}

/// States of a thread, added in order.
#[derive(Debug, Default)]
struct Life {
    items: Vec<Item>,
    until: u64,
}

/// States of all threads.
#[derive(Debug)]
struct Lives {
    lives: Vec<Life>,
    states: Palette<StateColour>,
    none: u32,
    /// CPUs are finite; on unlimited CPUs, a CPU's number means nothing.
    has_cpus: bool,
    /// Whether each object is a lock.
    is_lock: Vec<bool>,
}

impl Lives {
    fn of(program: &Program, has_cpus: bool) -> Lives {
        let mut states = Palette::default();
        let none = states.number(StateColour { state: "none", ..StateColour::default() });
        let mut lives = Vec::new();
        lives.resize_with(program.threads.len(), Life::default);
        Lives { lives, states, none, has_cpus, is_lock: program.is_lock() }
    }

    fn tell(&mut self, interval: Interval) {
        let Some(life) = self.lives.get_mut(interval.thread.0 as usize) else { return };
        let (start, end) = (interval.start.nearest_ns(), interval.end.nearest_ns());
        if start > life.until {
            life.items.push(Item { code: self.none, ns: start - life.until, more: 0 });
        }
        let begun = start.max(life.until);
        if end > begun {
            let mut colour = colour(interval.doing, interval.cpu.filter(|_| self.has_cpus));
            let is_lock = |object: u32| self.is_lock.get(object as usize) == Some(&true);
            colour.lock = colour.state == "blocked" && colour.object.is_some_and(is_lock);
            let code = self.states.number(colour);
            life.items.push(Item { code, ns: end - begun, more: 0 });
            life.until = end;
        }
    }

    fn quantum(&self, most: usize) -> u64 {
        quantum(most, |quantum| {
            let mut count = 0;
            let lives = self.lives.iter();
            lives.for_each(|life| summed(life.items.iter().copied(), quantum, |_, _| count += 1));
            count
        })
    }
}

fn colour(doing: SimulatedState, cpu: Option<u32>) -> StateColour {
    let (state, reason, object) = match doing {
        SimulatedState::Nothing => ("none", None, None),
        SimulatedState::Busy => ("running", None, None),
        SimulatedState::Spinning(object) => ("spinning", None, Some(object.0)),
        SimulatedState::Ready => ("ready", None, None),
        SimulatedState::Blocked(why) => match why {
            Why::Object(object) => ("blocked", None, Some(object.0)),
            Why::Sleep => ("blocked", Some("sleep"), None),
            Why::Join => ("blocked", Some("thread end"), None),
            Why::Edge => ("blocked", Some("wake-up as recorded"), None),
            Why::Turn => ("blocked", Some("its turn"), None),
        },
    };
    StateColour { state, cpu, reason, object, ..StateColour::default() }
}
