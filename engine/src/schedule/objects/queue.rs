//! Queues of waiting threads, linked by thread number: a thread waits in at most one queue at a time.

/// No thread.
const NONE: u32 = u32::MAX;

/// First come, first served.
#[derive(Clone, Copy, Debug)]
pub(in crate::schedule) struct WaitQueue {
    first: u32,
    last: u32,
}

impl Default for WaitQueue {
    fn default() -> WaitQueue {
        WaitQueue { first: NONE, last: NONE }
    }
}

impl WaitQueue {
    pub(in crate::schedule) fn is_empty(&self) -> bool {
        self.first == NONE
    }

    pub(in crate::schedule) fn push(&mut self, links: &mut Links, thread: u32) {
        links.set(thread, NONE);
        if self.is_empty() {
            self.first = thread;
        } else {
            links.set(self.last, thread);
        }
        self.last = thread;
    }

    pub(in crate::schedule) fn pop(&mut self, links: &Links) -> Option<u32> {
        if self.is_empty() {
            return None;
        }
        let thread = self.first;
        self.first = links.after(thread);
        Some(thread)
    }
}

/// For each thread: the next thread in its queue.
#[derive(Debug)]
pub(in crate::schedule) struct Links(Vec<u32>);

impl Links {
    pub(in crate::schedule) fn new(threads: usize) -> Links {
        Links(vec![NONE; threads])
    }

    fn set(&mut self, thread: u32, next: u32) {
        self.0[thread as usize] = next;
    }

    fn after(&self, thread: u32) -> u32 {
        self.0[thread as usize]
    }
}
