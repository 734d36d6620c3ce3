//! The kernel as a source.

use super::{Drained, EventSource};
use crate::probe::{Capture, ProbeFunction, now_ns};
use engine::event::{LossCounts, Note};

/// A capture that is running.
pub struct Kernel {
    capture: Capture,
}

impl Kernel {
    /// Takes over a capture.
    pub fn new(capture: Capture) -> Kernel {
        Kernel { capture }
    }
}

impl EventSource for Kernel {
    fn rings(&self) -> usize {
        self.capture.ring_count()
    }

    fn drain(&mut self, sink: &mut dyn FnMut(usize, &[u8])) -> Drained {
        // Whatever was recorded before this instant is in the rings: it is all handed over if they are emptied.
        let before_ns = now_ns();
        let records = self.capture.drain(sink);
        let emptied = records < Capture::RING_TURN;
        Drained { records, complete_to_ns: emptied.then_some(before_ns), more: !emptied, ended: false }
    }

    fn take_notes(&mut self) -> Vec<Note> {
        self.capture.take_notes()
    }

    fn loss(&mut self) -> LossCounts {
        self.capture.loss()
    }

    fn now_ns(&self) -> u64 {
        now_ns()
    }

    fn take_refused(&mut self) -> Vec<u32> {
        self.capture.take_refused()
    }

    fn add_process(&mut self, pid: u32, since_ns: u64, functions: &[ProbeFunction]) -> Result<(), String> {
        self.capture.add_process(pid, since_ns, functions).map_err(|error| error.to_string())
    }

    fn end(&mut self) -> u64 {
        self.capture.end()
    }

    fn stop(self: Box<Self>) {
        // Notes and losses were taken after the end.
        let _ = self.capture.stop();
    }
}
