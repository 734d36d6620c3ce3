//! What the kernel programs take, by what makes them run. Pure.
//!
//! Ours. The programs' time is measured for a moment now and then, and charged to what they ran for: records of events, and
//! network interrupts, which may be a hundred times as many. They also run for other programs' switches and packets, which
//! leave no record. So neither unit is charged more than it can take, and the remainder is a share of the time that passes.

/// What one record of the scheduler is taken to cost until that has been measured, and where the kernel does not let
/// us: of the order of what was measured on several machines.
pub(super) const ASSUMED_EVENT_NS: f64 = 500.0;
/// The same of a network interrupt, in which packets come.
const ASSUMED_INTERRUPT_NS: f64 = 250.0;
/// No record takes longer: on the slowest machine so far it was half of that.
const MOST_EVENT_NS: f64 = 2_000.0;
/// No interrupt does: it may bring sixty packets.
const MOST_INTERRUPT_NS: f64 = 20_000.0;
/// With fewer of them a rate is not known.
const ENOUGH: u64 = 50;
/// If a measurement took longer than this, longpole was held up, and maybe its target with it: then the
/// programs have run for others, and nothing follows for the target's events.
const LONGEST_NS: u64 = 250_000_000;

/// A measurement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Measured {
    pub(super) lasted_ns: u64,
    /// Records of events, but of function probes and samples.
    pub(super) events: u64,
    /// Network interrupts.
    pub(super) interrupts: u64,
    /// What programs took that run for interrupts and packets.
    pub(super) network_ns: u64,
    /// What all others took.
    pub(super) others_ns: u64,
}

/// A measurement that says nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HeldUp;

/// Nanoseconds for each of these.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ProgramRates {
    each_event_ns: f64,
    each_interrupt_ns: f64,
    /// Of each nanosecond that passes.
    background: f64,
}

impl Default for ProgramRates {
    fn default() -> ProgramRates {
        ProgramRates {
            each_event_ns: ASSUMED_EVENT_NS,
            each_interrupt_ns: ASSUMED_INTERRUPT_NS,
            background: 0.0,
        }
    }
}

impl ProgramRates {
    /// The rates by a new measurement.
    pub(super) fn measured(&self, by: &Measured) -> Result<ProgramRates, HeldUp> {
        if by.lasted_ns > LONGEST_NS {
            return Err(HeldUp);
        }
        let charged = |ns: u64, count: u64, most: f64, before: f64| {
            let each = if count >= ENOUGH { (ns as f64 / count as f64).min(most) } else { before };
            (each, (ns as f64 - each * count as f64).max(0.0))
        };
        let (each_event_ns, rest) = charged(by.others_ns, by.events, MOST_EVENT_NS, self.each_event_ns);
        let (each_interrupt_ns, network) =
            charged(by.network_ns, by.interrupts, MOST_INTERRUPT_NS, self.each_interrupt_ns);
        let background = (rest + network) / by.lasted_ns.max(1) as f64;
        Ok(ProgramRates { each_event_ns, each_interrupt_ns, background })
    }

    /// What they took, nanoseconds, while this time passed and so much happened.
    pub(super) fn cost_ns(&self, passed_ns: f64, events: f64, interrupts: f64) -> f64 {
        events * self.each_event_ns + interrupts * self.each_interrupt_ns + passed_ns * self.background
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW_NS: u64 = 100_000_000;

    fn after(by: Measured) -> ProgramRates {
        ProgramRates::default().measured(&by).expect("measured")
    }

    /// A server ran in turns with another one, stopped together with longpole for half a second each time.
    /// Once its overhead was reported as 77 % instead of 5 %. That it got the other's events is a conclusion,
    /// not an observation.
    #[test]
    fn what_was_measured_while_longpole_was_held_is_not_believed() {
        let held =
            Measured { lasted_ns: 610_000_000, events: 3_000, others_ns: 18_000_000, ..Measured::default() };
        assert_eq!(ProgramRates::default().measured(&held), Err(HeldUp));
    }

    #[test]
    fn what_is_measured_is_what_is_charged() {
        let by = Measured {
            lasted_ns: WINDOW_NS,
            events: 6_000,
            interrupts: 8_000,
            network_ns: 2_000_000,
            others_ns: 3_000_000,
        };
        let rates = after(by);
        assert_eq!((rates.each_event_ns, rates.each_interrupt_ns, rates.background), (500.0, 250.0, 0.0));
        assert_eq!(rates.cost_ns(WINDOW_NS as f64, 6_000.0, 8_000.0), 5_000_000.0);
    }

    /// nginx had hardly begun when it was measured, the machine was busy, and each of its events got 19.5 µs: 182 % of a
    /// CPU in all.
    #[test]
    fn what_others_cause_is_charged_to_the_time_that_passes() {
        let by = Measured { lasted_ns: WINDOW_NS, events: 60, others_ns: 1_170_000, ..Measured::default() };
        let rates = after(by);
        let a_second = rates.cost_ns(1e9, 90_000.0, 0.0);
        assert!(a_second < 0.2e9, "{a_second}");
        let the_window = rates.cost_ns(WINDOW_NS as f64, 60.0, 0.0);
        assert!((the_window - 1_170_000.0).abs() < 1.0, "{the_window}");
    }

    #[test]
    fn a_rate_that_cannot_be_measured_stays() {
        let by = Measured { lasted_ns: WINDOW_NS, events: 20, others_ns: 10_000, ..Measured::default() };
        assert_eq!(after(by), ProgramRates::default());
    }
}
