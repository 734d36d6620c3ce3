//! The causes of the critical path of a predicted run (a method of longpole's own): computing, and each kind of wait or
//! delay on it. No change gains more than its cause's part of the path.

use crate::program::ObjectId;
use crate::schedule::{DelayKind, RunPath, Why};
use rustc_hash::FxHashMap;

/// Parts of a path in ticks; together they are the whole path.
#[derive(Clone, Debug, Default)]
pub(super) struct PathCauses {
    /// Threads compute the program's own work.
    pub(super) computing: u64,
    /// Threads are woken and put on CPUs, and compute to wake others.
    pub(super) handing_over: u64,
    /// Threads busy-wait for a spin lock.
    pub(super) spinning: u64,
    /// Threads sleep, or wait for a timer.
    pub(super) asleep: u64,
    /// Threads wait for devices that are no timers, by device.
    devices: FxHashMap<ObjectId, u64>,
}

impl PathCauses {
    /// The causes of a run's path. `is_timer`: by object, whether it is a timer.
    pub(super) fn of(path: &RunPath, is_timer: &[bool]) -> PathCauses {
        let computed = path.visits.iter().map(|visit| visit.to.saturating_sub(visit.from));
        let mut causes = PathCauses {
            computing: computed.fold(0, u64::saturating_add),
            handing_over: path.waking.on_path.0,
            ..PathCauses::default()
        };
        for (delay, passed) in &path.passed {
            let sum = match *delay {
                DelayKind::Clock(Why::Object(device)) if is_timer.get(device.0 as usize) != Some(&true) => {
                    causes.devices.entry(device).or_insert(0)
                }
                DelayKind::Clock(_) => &mut causes.asleep,
                DelayKind::Spinning(_) => &mut causes.spinning,
                DelayKind::Woken(_) | DelayKind::Scheduling => &mut causes.handing_over,
            };
            *sum = sum.saturating_add(passed.on_path.0);
        }
        causes
    }

    /// The wait for this device on the path, ticks.
    pub(super) fn device(&self, device: ObjectId) -> u64 {
        self.devices.get(&device).copied().unwrap_or(0)
    }

    /// The devices with their waits on the path in ticks, the longest waits first.
    pub(super) fn devices(&self) -> Vec<(ObjectId, u64)> {
        let mut devices: Vec<(ObjectId, u64)> = self.devices.iter().map(|(of, sum)| (*of, *sum)).collect();
        devices.sort_unstable_by_key(|(device, sum)| (std::cmp::Reverse(*sum), *device));
        devices
    }
}
