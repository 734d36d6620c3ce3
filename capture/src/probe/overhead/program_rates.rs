//! Divides the kernel programs' time among the causes of their runs; a pure function.
//!
//! (This method is longpole's own.) The programs' time is measured briefly now and then. It is charged to records of
//! events and to network interrupts, which may be a hundred times as many. The programs also run for switches and
//! packets of other programs, which leave no record. So neither cause is charged more than it can have cost, and the
//! remaining cost is a share of the passing time.

/// Assumed cost of a scheduler record, nanoseconds, if it was not or cannot be measured: about as measured on several
/// machines.
pub(super) const ASSUMED_EVENT_NS: f64 = 500.0;
/// Assumed cost of a network interrupt that brings packets, nanoseconds.
const ASSUMED_INTERRUPT_NS: f64 = 250.0;
/// No record costs more: on the slowest machine so far it was half of this.
const MOST_EVENT_NS: f64 = 2_000.0;
/// Largest cost of a network interrupt, ns, although it may bring sixty packets.
const MOST_INTERRUPT_NS: f64 = 20_000.0;
/// Least number of records or interrupts from which a measurement gives a rate for them.
const ENOUGH: u64 = 50;
/// If a measurement took longer than this, longpole was stopped, and possibly its target with it. In that time the
/// programs ran for other processes, so the measurement says nothing about the target's events.
const LONGEST_NS: u64 = 250_000_000;

/// A measurement of the kernel programs' time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Measured {
    pub(super) lasted_ns: u64,
    /// Records of events, without function probes and samples.
    pub(super) events: u64,
    /// Network interrupts.
    pub(super) interrupts: u64,
    /// Time of the programs that run for network interrupts and packets.
    pub(super) network_ns: u64,
    /// Time of all other programs.
    pub(super) others_ns: u64,
}

/// The measurement took too long to be of use.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HeldUp;

/// Nanoseconds per record, per interrupt, and per nanosecond that passes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ProgramRates {
    each_event_ns: f64,
    each_interrupt_ns: f64,
    /// Share of the passing time.
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
    /// The rates according to a new measurement.
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

    /// Time of the programs, nanoseconds, for this passed time and these numbers of records and interrupts.
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

    /// A server runs in turns with another one, and is stopped together with longpole for half a second each time.
    /// Events of the other server must not be charged to this one.
    #[test]
    fn rates_measured_while_longpole_was_stopped_are_not_used() {
        let held =
            Measured { lasted_ns: 610_000_000, events: 3_000, others_ns: 18_000_000, ..Measured::default() };
        assert_eq!(ProgramRates::default().measured(&held), Err(HeldUp));
    }

    #[test]
    fn measured_rates_are_the_ones_charged() {
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

    /// With few events on a busy machine most of the kernel programs' time is caused by other programs: charged to
    /// nginx's events, as 19.5 µs each, it would make 182 % of a CPU.
    #[test]
    fn cost_that_other_programs_cause_is_charged_to_time() {
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
