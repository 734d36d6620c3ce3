//! Two programs do the same work, each for half a second in turn: a shared machine, which is slower from one second to the
//! next, is then slower for both.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use longpole_tests::Group;

/// Length of a turn. Not shorter: the clock goes on while a program is frozen. So work that it does twenty times a second is
/// due again at the beginning of each turn, and every thread is woken to continue. With a tenth of a second, longpole had
/// 50 % more wake-ups. A Redis under load seemed 6 to 10 % slower, although the server needed only 2.4 % more CPU time with
/// longpole than without.
const TURN: Duration = Duration::from_millis(500);
/// Time between two looks whether a work is done.
const LOOK: Duration = Duration::from_millis(1);
/// Both works take less, even on a loaded machine.
const LIMIT: Duration = Duration::from_secs(240);

/// One of the two works.
pub struct Work<'a> {
    /// Its processes, frozen.
    pub group: &'a Group,
    /// Whether it is done.
    pub done: &'a mut dyn FnMut() -> bool,
}

/// Time that a work took.
pub struct Took {
    /// Seconds.
    pub wall_s: f64,
    /// CPU time of all its processes, seconds.
    pub cpu_s: f64,
}

/// Runs both in turns until both are done, and returns the time of each. Both go on afterwards.
pub fn in_turns(mut works: [Work<'_>; 2]) -> Result<[Took; 2]> {
    let mut took = [Duration::ZERO; 2];
    let mut done = [false; 2];
    let mut cpu_s = [0.0; 2];
    for (cpu_s, work) in cpu_s.iter_mut().zip(&works) {
        *cpu_s = -work.group.cpu_s()?;
    }
    let begin = Instant::now();
    // First, second, second, first: neither is always the later one.
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
        // Frozen after its work, too, it does not disturb the other one.
        work.group.hold()?;
    }
    for (cpu_s, work) in cpu_s.iter_mut().zip(&works) {
        *cpu_s += work.group.cpu_s()?;
        work.group.let_go()?;
    }
    Ok([0, 1].map(|at| Took { wall_s: took[at].as_secs_f64(), cpu_s: cpu_s[at] }))
}
