//! More CPUs in a joined recording: each host gets them, since threads keep to their hosts' CPUs.

use crate::cpus::Cpus;
use crate::program::Program;

/// Whether the program's threads belong to several hosts.
pub(super) fn are_several(program: &Program) -> bool {
    program.machine.as_ref().is_some_and(|machine| machine.hosts > 0)
}

/// Gives each host as many times more CPUs as there are more in all. A number that is no multiple of the recorded one gives none.
pub(super) fn multiply(program: &mut Program, cpus: Cpus) {
    let recorded = program.recorded_cpus.unwrap_or(0);
    let times = match cpus {
        Cpus::Infinite => None,
        Cpus::Count(count) if recorded > 0 && count.get() % recorded == 0 => Some(count.get() / recorded),
        Cpus::Count(_) => return,
    };
    for thread in &mut program.threads {
        let Some(times) = times else {
            thread.cpus.clear();
            continue;
        };
        let own = std::mem::take(&mut thread.cpus);
        let more =
            own.iter().flat_map(|cpu| (0..times).map(|next| cpu.saturating_mul(times).saturating_add(next)));
        thread.cpus = more.take(MOST_CPUS).collect();
    }
}

/// A thread has at most this number of CPUs; a damaged file may say more.
const MOST_CPUS: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{MachineFacts, Thread};

    #[test]
    fn each_host_gets_its_part_of_more_cpus() {
        let thread = |cpus: &[u32]| Thread { cpus: cpus.to_vec(), ..Thread::default() };
        let machine = Some(MachineFacts { hosts: 2, ..MachineFacts::default() });
        let threads = vec![thread(&[0]), thread(&[1, 2])];
        let program = Program { threads, machine, recorded_cpus: Some(3), ..Program::default() };
        let with = |cpus| {
            let mut program = program.clone();
            multiply(&mut program, cpus);
            program.threads.iter().map(|thread| thread.cpus.clone()).collect::<Vec<_>>()
        };
        let count = |count| Cpus::count(count).expect("not 0");
        assert!(are_several(&program) && !are_several(&Program::default()));
        assert_eq!(with(count(6)), [vec![0, 1], vec![2, 3, 4, 5]]);
        assert_eq!(with(count(4)), [vec![0], vec![1, 2]], "which host gets the fourth is not known");
        assert_eq!(with(Cpus::Infinite), vec![Vec::<u32>::new(); 2]);
    }
}
