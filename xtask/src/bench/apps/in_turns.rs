//! Two programs do the same work, each for half a second in turn. The speed of a shared machine changes from one second
//! to the next; with turns, it changes for both programs alike.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use longpole_tests::Group;

/// Length of a turn. A turn must not be shorter, because the clock continues while a program is frozen. Work that the
/// program does twenty times a second is then due at the beginning of each turn, and every thread is woken to continue.
/// With turns of a tenth of a second, longpole had 50 % more wake-ups. A Redis under load seemed 6 to 10 % slower,
/// although its server needed only 2.4 % more CPU time with longpole than without.
const TURN: Duration = Duration::from_millis(500);
/// Time between two checks whether a program has done its work.
const LOOK: Duration = Duration::from_millis(1);
/// Longest time for both programs, even on a loaded machine.
const LIMIT: Duration = Duration::from_secs(240);

/// The work of one of the two programs.
pub struct Work<'a> {
    /// The program's processes, frozen.
    pub group: &'a Group,
    /// Returns whether the work is done.
    pub done: &'a mut dyn FnMut() -> bool,
}

/// The time that the work took.
pub struct Took {
    /// Elapsed time, in seconds.
    pub wall_s: f64,
    /// CPU time of all processes, in seconds.
    pub cpu_s: f64,
}

/// Runs both programs in turns until both have done their work. Returns the time of each. Both programs continue
/// afterwards.
pub fn in_turns(mut works: [Work<'_>; 2]) -> Result<[Took; 2]> {
    let mut took = [Duration::ZERO; 2];
    let mut done = [false; 2];
    let mut cpu_s = [0.0; 2];
    for (cpu_s, work) in cpu_s.iter_mut().zip(&works) {
        *cpu_s = -work.group.cpu_s()?;
    }
    let begin = Instant::now();
    // The order is first, second, second, first, so that neither program is always the later one.
    for turn in [0, 1, 1, 0].into_iter().cycle() {
        if done == [true; 2] {
            break;
        }
        ensure!(begin.elapsed() <= LIMIT, "a work does not come to an end");
        let (work, took, done) = (&mut works[turn], &mut took[turn], &mut done[turn]);
        if *done {
            continue;
        }
        let start = Instant::now();
        work.group.let_go()?;
        while start.elapsed() < TURN && !*done {
            std::thread::sleep(LOOK);
            *done = (work.done)();
        }
        *took += start.elapsed();
        // A program that has done its work is frozen, too, so that it does not disturb the other one.
        work.group.hold()?;
    }
    for (cpu_s, work) in cpu_s.iter_mut().zip(&works) {
        *cpu_s += work.group.cpu_s()?;
        work.group.let_go()?;
    }
    Ok([0, 1].map(|at| Took { wall_s: took[at].as_secs_f64(), cpu_s: cpu_s[at] }))
}
