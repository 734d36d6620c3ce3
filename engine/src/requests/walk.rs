//! Walks along one request, backwards from its end. The walk is iterative: a stack holds the threads that wait for each
//! other.

use super::calls::Request;
use super::cause::{Cause, LockRef, Outside, PathPart, Source};
use super::cpu_waits::Wish;
use super::paths::{DEEPEST, Paths};
use crate::program::BETWEEN_HOSTS;
use crate::time::Timestamp;
use crate::timeline::{Birth, Interval, State};

/// A thread that the walk passes through, back to `low`.
#[derive(Clone, Copy, Debug)]
struct Frame {
    thread: u32,
    /// The walk leaves the thread here: the thread that it woke went to sleep then, or the request began.
    low: u64,
    /// The thread worked for this request only from here on; at least `low`.
    floor: u64,
    /// What the thread did between `low` and `floor`.
    below: Below,
    /// The lock that the request waits for.
    lock: Option<LockRef>,
}

/// What a thread did before it worked for the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Below {
    Nothing,
    /// The thread did other requests.
    Queue,
    /// Up to `floor` the thread did another request, since `from`.
    Turn {
        from: u64,
    },
    /// The thread did other requests; before that, the request was in the thread in which it began.
    Served,
    /// Another thread had this lock.
    Holder(u32),
}

/// A message between two recorded hosts is under way.
const UNDER_WAY: Cause =
    Cause::Waiting(Outside { source: Source::Peer, name: BETWEEN_HOSTS, of: None, function: None });

/// A walk; its memory is reused by the next walk.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// After a walk: the path.
    pub(super) parts: Vec<PathPart>,
    stack: Vec<Frame>,
    at: u64,
    /// The walk has reached the thread in which the request began, and stays there.
    stays: bool,
    /// The walk has not met a wait yet.
    is_at_answer: bool,
}

impl Walk {
    /// Walks with at most `most` steps; returns how many steps it took.
    pub(super) fn request(&mut self, paths: &Paths<'_>, request: &Request, most: u64) -> u64 {
        self.parts.clear();
        self.stack.clear();
        let Some(end) = request.end.filter(|_| request.latency_ns().is_some()) else { return 0 };
        self.at = end.0;
        let stretches = paths.stretches(request);
        let steps = match stretches {
            [] => self.follow(paths, request, end, most),
            _ => self.stretches(paths, request, stretches, most),
        };
        self.parts.reverse();
        steps
    }

    /// Walks along a request that is in several threads, or in none at times: then it waits for the thread that goes on with it.
    fn stretches(&mut self, paths: &Paths<'_>, request: &Request, stretches: &[Request], most: u64) -> u64 {
        let (mut steps, mut next) = (0u64, request.end_thread);
        for stretch in stretches {
            let end = stretch.end.map_or(self.at, |end| end.0.min(self.at));
            if stretch.begin.0 >= self.at {
                continue;
            }
            self.part(&frame(next, end, None), end, Cause::Queued);
            let part = Request { end: Some(Timestamp(self.at)), ..*stretch };
            steps += self.follow(paths, &part, Timestamp(self.at), most.saturating_sub(steps));
            next = stretch.begin_thread;
        }
        steps
    }

    /// Walks from the end of a request that begins in one thread to its beginning.
    fn follow(&mut self, paths: &Paths<'_>, request: &Request, end: Timestamp, most: u64) -> u64 {
        self.stays = request.begin_thread == request.end_thread;
        self.is_at_answer = true;
        self.stack.push(if self.stays { begun(paths, request) } else { ended(paths, request, end) });
        let mut steps = 0;
        while let Some(frame) = self.stack.last().copied() {
            if self.at <= frame.low {
                self.stack.pop();
                continue;
            }
            steps += 1;
            if steps > most || self.stack.len() > DEEPEST {
                let low = if steps > most { request.begin.0 } else { frame.low };
                self.part(&frame, low, Cause::NotFollowed);
                continue;
            }
            if self.at <= frame.floor {
                self.below(paths, frame, request);
            } else {
                self.step(paths, frame, request);
            }
        }
        steps.min(most)
    }

    /// Adds a part from `low` to the walk's place, and moves the walk to `low`.
    fn part(&mut self, frame: &Frame, low: u64, cause: Cause) {
        let (from, to) = (Timestamp(low), Timestamp(self.at));
        if from >= to {
            return;
        }
        self.at = low;
        let part = PathPart { from, to, thread: frame.thread, cause, lock: frame.lock };
        match self.parts.last_mut() {
            Some(next) if PathPart { from: next.from, to: next.to, ..part } == *next => next.from = from,
            _ => self.parts.push(part),
        }
    }

    /// Goes on below `floor`, where the thread did not yet work for this request.
    fn below(&mut self, paths: &Paths<'_>, frame: Frame, request: &Request) {
        match frame.below {
            Below::Nothing => self.set(Frame { floor: frame.low, ..frame }),
            Below::Queue => self.part(&frame, frame.low, Cause::Queued),
            Below::Turn { from } => {
                let from = from.max(frame.low);
                self.part(&frame, from, Cause::Queued);
                self.set(turn(paths, Frame { floor: frame.low, below: Below::Nothing, ..frame }, from));
            }
            Below::Served => {
                let left = handed_over(paths, request).min(self.at).max(frame.low);
                self.part(&frame, left, Cause::Queued);
                self.stay(paths, request);
            }
            Below::Holder(object) => match paths.holders.before(object, self.at) {
                Some(holder) => {
                    // The walk has passed the begin of the later section, and this section began earlier.
                    let (floor, below) = if holder.waited || holder.from <= frame.low {
                        (frame.low, Below::Nothing)
                    } else {
                        (holder.from, frame.below)
                    };
                    self.set(Frame { thread: holder.thread, floor, below, ..frame });
                }
                // The holder before is unknown: the walk stays in the thread that woke the waiter, as the best guess.
                None => self.set(Frame { floor: frame.low, ..frame }),
            },
        }
    }

    /// Goes on in the thread that gave an event loop the result of this request. The loop's earlier waits were for other
    /// requests, too, and so was the thread's work before its last result.
    fn worker(&mut self, paths: &Paths<'_>, request: &Request, worker: u32) {
        self.stays = false;
        self.stack.clear();
        let frame = self::frame(worker, request.begin.0, None);
        let last = paths.answers.last_to_another(worker, request.end_thread, request.taken.0, self.at);
        self.stack.push(last.map_or(frame, |last| Frame { floor: last, below: Below::Served, ..frame }));
    }

    /// Goes on in a thread that answers another request and ended this one's wait. What it did before it took its own request
    /// is not the cause; which request had the lock then is not known. If that request waited for a third one in the same way,
    /// the third one had the lock before.
    fn behind_another(&mut self, paths: &Paths<'_>, frame: Frame, waker: u32, from: u64, lock: LockRef) {
        let is_next = frame.lock == Some(lock);
        let low = if is_next { frame.low } else { from };
        let floor = paths.answers.peers.began(waker, self.at).unwrap_or(low).max(low);
        let lock = frame.lock.or(Some(lock));
        let behind = Frame { thread: waker, low, floor, below: Below::Queue, lock };
        if is_next { self.set(behind) } else { self.stack.push(behind) }
    }

    /// Continues in the thread in which the request began: earlier work of the other thread was for other requests.
    fn stay(&mut self, paths: &Paths<'_>, request: &Request) {
        self.stays = true;
        self.stack.clear();
        self.stack.push(begun(paths, request));
    }

    fn set(&mut self, frame: Frame) {
        if let Some(last) = self.stack.last_mut() {
            *last = frame;
        }
    }

    /// Adds one interval of the thread to the path, or a part of one.
    fn step(&mut self, paths: &Paths<'_>, frame: Frame, request: &Request) {
        let low = frame.low.max(frame.floor);
        let Some(thread) = paths.timeline.threads.get(frame.thread as usize) else {
            return self.part(&frame, frame.low, Cause::Unknown);
        };
        if thread.end.0 < self.at {
            return self.part(&frame, thread.end.0.max(low), Cause::Unknown);
        }
        let next = thread.intervals.partition_point(|interval| interval.start.0 < self.at);
        let Some((place, interval)) =
            next.checked_sub(1).and_then(|place| Some((place, thread.intervals.get(place)?)))
        else {
            return match thread.birth {
                Birth::By(creator) if creator != frame.thread => self.set(Frame { thread: creator, ..frame }),
                _ => self.part(&frame, low, Cause::Unknown),
            };
        };
        let from = interval.start.0.max(low);
        match interval.state {
            State::Running { .. } => {
                let (since, top) = paths.tops.before(frame.thread, self.at);
                self.part(&frame, from.max(since), Cause::Computing(top));
            }
            State::Runnable => {
                let after = thread.intervals.get(place + 1).map(|next| next.state);
                let before = place.checked_sub(1).and_then(|before| thread.intervals.get(before));
                self.ready(paths, &frame, from, after, before);
            }
            State::Blocked(number) => self.blocked(paths, frame, request, number, interval.start.0, from),
            State::Unknown(_) => self.part(&frame, from, Cause::Unknown),
        }
    }

    fn ready(
        &mut self,
        paths: &Paths<'_>,
        frame: &Frame,
        from: u64,
        after: Option<State>,
        before: Option<&Interval>,
    ) {
        let cpu = match after {
            Some(State::Running { cpu }) => cpu,
            _ => None,
        };
        let woken = !matches!(before.map(|before| before.state), Some(State::Running { .. }));
        let [(first, length), (then, _)] = paths.cpus.split(Wish { from, to: self.at, cpu, woken });
        self.part(frame, from.saturating_add(length), then);
        self.part(frame, from, first);
    }

    fn blocked(
        &mut self,
        paths: &Paths<'_>,
        frame: Frame,
        request: &Request,
        number: u32,
        start: u64,
        from: u64,
    ) {
        let lock = paths.waits.lock(frame.thread, number);
        let of_lock = frame.lock.or(lock);
        // A semaphore on which only one thread sleeps is no lock, but part of one.
        let is_part = lock.is_none_or(|lock| paths.waits.is_of_one(lock));
        let is_at_answer = std::mem::take(&mut self.is_at_answer);
        if let (Some(sent), Some(sender)) =
            (paths.waits.sent(frame.thread, number), paths.waits.ended_by(frame.thread, number))
        {
            self.part(&Frame { lock: of_lock, ..frame }, sent.clamp(from, self.at), UNDER_WAY);
            if !self.stays && of_lock.is_none() && sender == request.begin_thread {
                return self.stay(paths, request);
            }
            // The sender's own request, of which this message is the answer, began with a message from this thread.
            let began = paths.answers.peers.began(sender, self.at).unwrap_or(self.at);
            self.stack.push(turn(paths, self::frame(sender, from, of_lock), began));
            return;
        }
        let Some(waker) = paths.waits.ended_by(frame.thread, number) else {
            let cause = paths.waits.outside(frame.thread, number, start, &paths.tops);
            return self.part(&Frame { lock: of_lock, ..frame }, from, cause);
        };
        if !self.stays && of_lock.is_none() && waker == request.begin_thread {
            return self.stay(paths, request);
        }
        if is_at_answer && of_lock.is_none() && paths.answers.peers.is_loop_s_worker(frame.thread, waker) {
            return self.worker(paths, request, waker);
        }
        // Goroutines change their threads, so only the kind of wait shows that another request is in the way.
        let is_file_lock = || paths.waits.is_file_lock(frame.thread, number);
        if is_part
            && (paths.answers.peers.waits_for_another(frame.thread, waker, self.at) || is_file_lock())
            && let Some(name) = paths.waits.without_object(frame.thread, number)
        {
            return self.behind_another(paths, frame, waker, from, LockRef::OtherRequest(name));
        }
        let mut inner = self::frame(waker, from, of_lock);
        match lock {
            Some(LockRef::Object(object)) => {
                if let Some(holder) = paths.holders.of_thread(object, waker, self.at)
                    && holder.from > from
                    && !holder.waited
                {
                    (inner.floor, inner.below) = (holder.from, Below::Holder(object));
                }
            }
            Some(LockRef::Word(_) | LockRef::OtherRequest(_)) => {}
            None if of_lock.is_none() => {
                if let Some(last) = paths.answers.last_to_another(waker, frame.thread, from, self.at) {
                    (inner.floor, inner.below) = (last, Below::Queue);
                }
            }
            None => {}
        }
        self.stack.push(inner);
    }
}

fn frame(thread: u32, low: u64, lock: Option<LockRef>) -> Frame {
    Frame { thread, low, floor: low, below: Below::Nothing, lock }
}

/// The thread that ended the request, if another one began it. Before its last end, it worked for other requests.
fn ended(paths: &Paths<'_>, request: &Request, end: Timestamp) -> Frame {
    let thread = frame(request.end_thread, request.begin.0, None);
    match paths.answers.last_end(request.end_thread, end.0) {
        Some(last) if last > thread.low => Frame { floor: last, below: Below::Served, ..thread },
        _ => thread,
    }
}

/// The thread in which the request began. Other requests that it did before it took this one kept this one waiting.
fn begun(paths: &Paths<'_>, request: &Request) -> Frame {
    let thread = frame(request.begin_thread, request.begin.0, None);
    turn(paths, thread, request.taken.0)
}

/// The frame down to the end of the thread's last other request before `time`.
fn turn(paths: &Paths<'_>, thread: Frame, time: u64) -> Frame {
    match paths.answers.last_turn(thread.thread, time) {
        Some((from, to)) if to > thread.low && from < to => {
            Frame { floor: to, below: Below::Turn { from: from.min(to) }, ..thread }
        }
        _ => thread,
    }
}

/// The end of the begin thread's work for the request: it sleeps then, or begins another request.
fn handed_over(paths: &Paths<'_>, request: &Request) -> u64 {
    let begin = request.taken.0;
    let next = paths.answers.next_begin(request.begin_thread, begin).unwrap_or(u64::MAX);
    let Some(thread) = paths.timeline.threads.get(request.begin_thread as usize) else { return begin };
    let place = thread.intervals.partition_point(|interval| interval.start.0 < begin);
    let rest = thread.intervals.get(place..).unwrap_or_default().iter();
    let mut near = rest.take(DEEPEST).take_while(|interval| interval.start.0 < next);
    let slept = near.find(|interval| matches!(interval.state, State::Blocked(_)));
    slept.map_or(next, |interval| interval.start.0).min(thread.end.0).max(begin)
}
