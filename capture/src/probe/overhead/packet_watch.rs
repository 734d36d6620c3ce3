//! Decides when packets are followed. Pure: counts and time come in, a decision goes out.
//!
//! This method is longpole's own. Three programs see every packet of the machine, to find those by which one recorded
//! thread wakes another over the loopback device. A server whose clients are not recorded has no such packet, and the
//! three can be more than half of the cost of its events. So if many packets come and none is of use for a while, the
//! programs are detached. They return when a recorded thread wakes another in a network interrupt, maybe by such a
//! packet. If it was none, the next pause is longer.

use std::time::Duration;

/// The programs are detached if no packet is of use for this long.
const WINDOW: Duration = Duration::from_secs(2);
/// Number of network interrupts per second below which following packets costs too little to matter: some 0.2 µs for a
/// packet.
const MANY: u64 = 2_000;
/// Pause after a trial that found nothing; then it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Counts since the start. None ever decreases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PacketCounts {
    /// Network interrupts.
    pub(crate) interrupts: u64,
    /// Wake-ups of recorded threads by packets of other recorded threads over the loopback device.
    pub(crate) own: u64,
    /// Wake-ups of recorded threads that may have been caused by such packets.
    pub(crate) possible: u64,
}

/// The state between two decisions. The programs are attached at first.
#[derive(Debug, Default)]
pub(crate) struct PacketWatch {
    detached: bool,
    /// Time at which the present window began, nanoseconds, and the counts at that time.
    window: Option<(u64, PacketCounts)>,
    /// Time at which the programs were last attached or detached, ns.
    changed_ns: u64,
    pause_ns: u64,
}

impl PacketWatch {
    /// Decides from the present counts. `Some(true)`: the programs are to be attached, `Some(false)`: detached.
    pub(crate) fn look(&mut self, now_ns: u64, counts: PacketCounts) -> Option<bool> {
        let (from_ns, before) = *self.window.get_or_insert((now_ns, counts));
        let lasted_ns = now_ns.saturating_sub(from_ns);
        let is_over = lasted_ns >= WINDOW.as_nanos() as u64;
        let interrupts = counts.interrupts.saturating_sub(before.interrupts);
        let are_many = u128::from(interrupts) * 1_000_000_000 >= u128::from(MANY) * u128::from(lasted_ns);
        let changes = if self.detached {
            let may_be_own = counts.possible > before.possible;
            may_be_own && now_ns.saturating_sub(self.changed_ns) >= self.pause_ns || is_over && !are_many
        } else {
            let is_of_use = counts.own > before.own;
            self.pause_ns = if is_of_use { 0 } else { self.pause_ns };
            is_over && are_many && !is_of_use
        };
        if is_over || changes {
            self.window = Some((now_ns, counts));
        }
        if !changes {
            return None;
        }
        self.detached = !self.detached;
        self.changed_ns = now_ns;
        if !self.detached {
            let (first, longest) = (FIRST_PAUSE.as_nanos() as u64, LONGEST_PAUSE.as_nanos() as u64);
            self.pause_ns = self.pause_ns.saturating_mul(2).clamp(first, longest);
        }
        Some(!self.detached)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A simulated clock with ten checks per second.
    #[derive(Default)]
    struct World {
        watch: PacketWatch,
        now_ns: u64,
        counts: PacketCounts,
        attached_looks: u32,
        changes: Vec<bool>,
    }

    impl World {
        /// Runs for some seconds with these counts in each second.
        fn run(&mut self, seconds: u64, interrupts: u64, possible: u64, own: u64) {
            self.attached_looks = 0;
            for look in 0..seconds * 10 {
                self.now_ns += 100_000_000;
                self.counts.interrupts += interrupts / 10;
                let is_due = |rate: u64| u64::from(rate > 0 && look % (10 / rate.min(10)).max(1) == 0);
                self.counts.possible += is_due(possible);
                let attached = self.changes.last() != Some(&false);
                self.counts.own += if attached { is_due(own) } else { 0 };
                self.attached_looks += u32::from(attached);
                self.changes.extend(self.watch.look(self.now_ns, self.counts));
            }
        }
    }

    #[test]
    fn following_packets_of_a_server_with_remote_clients_stops_once() {
        let mut world = World::default();
        world.run(60, 50_000, 0, 0);
        assert_eq!(world.changes, [false]);
    }

    #[test]
    fn few_packets_are_followed_all_the_time() {
        let mut world = World::default();
        world.run(60, 1_000, 1, 0);
        assert!(world.changes.is_empty(), "{:?}", world.changes);
    }

    #[test]
    fn packets_that_wake_the_program_s_own_threads_stay_followed() {
        let mut world = World::default();
        world.run(60, 50_000, 10, 10);
        assert!(world.changes.is_empty(), "{:?}", world.changes);
    }

    #[test]
    fn packets_are_followed_again_when_they_may_be_local() {
        let mut world = World::default();
        world.run(10, 50_000, 0, 0);
        world.run(20, 50_000, 10, 10);
        assert_eq!(world.changes, [false, true]);
        assert!(world.attached_looks >= 198, "{}", world.attached_looks);
    }

    /// The program's threads are interrupted by packets for other threads of the program.
    #[test]
    fn packet_trials_that_find_nothing_become_rare() {
        let mut world = World::default();
        world.run(30, 50_000, 10, 0);
        world.run(120, 50_000, 10, 0);
        assert!((150..=250).contains(&world.attached_looks), "a sixth: {}", world.attached_looks);
    }

    #[test]
    fn packets_are_followed_again_when_there_are_few() {
        let mut world = World::default();
        world.run(10, 50_000, 0, 0);
        world.run(10, 100, 0, 0);
        assert_eq!(world.changes, [false, true]);
    }
}
