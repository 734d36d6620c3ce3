//! Two programs do the same work, each for half a second in turn: a shared machine, which is slower from one second to the
//! next, is then slower for both.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use longpole_tests::Group;

/// Length of a turn. Not shorter: the clock goes on while a program is frozen. So work that it does twenty times a second is
/// due again at the beginning of each turn, and every thread is woken to continue. With a tenth of a second, longpole had
/// 50 % more wake-ups. A Redis under load seemed 6 to 10 % slower, although the server needed only 2.4 % more CPU time with
/// longpole than without.
const TURN: Duration = Duration::from_millis(500);
/// Time between two checks whether a work is done.
const LOOK: Duration = Duration::from_millis(1);
/// Longest time of both works, even on a loaded machine.
const LIMIT: Duration = Duration::from_secs(240);

/// One of the two works that take turns.
pub struct Work<'a> {
    /// Its processes, frozen.
    pub group: &'a Group,
    /// Whether the work is done.
    pub done: &'a mut dyn FnMut() -> bool,
}

/// Time that a work took.
#[derive(Clone, Copy, Default)]
pub struct Took {
    /// Seconds.
    pub wall_s: f64,
    /// CPU time of all processes of the work, seconds.
    pub cpu_s: f64,
}

/// Runs both works in turns until both are done, and returns the time of each. The processes of both continue
/// afterwards.
///
/// # Errors
/// A group cannot be frozen, or a work does not end.
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
        if begin.elapsed() > LIMIT {
            bail!("a work does not come to an end");
        }
        let (Some(work), Some(took), Some(done)) =
            (works.get_mut(turn), took.get_mut(turn), done.get_mut(turn))
        else {
            break;
        };
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
        // Frozen after its work is done, it does not disturb the other work.
        work.group.hold()?;
    }
    for (cpu_s, work) in cpu_s.iter_mut().zip(&works) {
        *cpu_s += work.group.cpu_s()?;
        work.group.let_go()?;
    }
    let [first, second] = took.map(|took| took.as_secs_f64());
    let [cpu_first, cpu_second] = cpu_s;
    Ok([Took { wall_s: first, cpu_s: cpu_first }, Took { wall_s: second, cpu_s: cpu_second }])
}
