//! The main loop's inputs: messages of threads, signals, and time.

use super::message::Message;
use capture::target::launching::signals::now_listening;
use std::io;
use std::pin::Pin;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::{Interval, MissedTickBehavior, Sleep};

/// All inputs of the main loop.
pub struct Inputs {
    inbox: UnboundedReceiver<Message>,
    /// Keeps the inbox open: the end of all threads is a message, not a closed channel.
    _open: UnboundedSender<Message>,
    signals: [(i32, Signal); 4],
    save: Option<Signal>,
    ticks: Interval,
    time_up: Option<Pin<Box<Sleep>>>,
    in_a_row: u32,
}

/// After this number of messages in a row the loop also paints, and checks signals and time.
const MOST_IN_A_ROW: u32 = 256;

impl Inputs {
    /// Turns signals into messages from now on; SIGUSR2 only if something `saves` then. A [`Message::Tick`] comes each `tick`.
    pub fn new(
        inbox: UnboundedReceiver<Message>,
        open: UnboundedSender<Message>,
        (duration, tick): (Option<Duration>, Duration),
        saves: bool,
    ) -> io::Result<Inputs> {
        let mut ticks = tokio::time::interval(tick);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let signals =
            [listen(libc::SIGINT)?, listen(libc::SIGTERM)?, listen(libc::SIGHUP)?, listen(libc::SIGQUIT)?];
        now_listening();
        Ok(Inputs {
            inbox,
            _open: open,
            signals,
            save: saves.then(|| signal(SignalKind::user_defined2())).transpose()?,
            ticks,
            time_up: duration.map(|duration| Box::pin(tokio::time::sleep(duration))),
            in_a_row: 0,
        })
    }

    /// The next message, if one has already arrived.
    pub fn ready(&mut self) -> Option<Message> {
        if self.in_a_row >= MOST_IN_A_ROW {
            return None;
        }
        self.in_a_row += 1;
        self.inbox.try_recv().ok()
    }

    /// Waits for the next message.
    pub async fn next(&mut self) -> Message {
        self.in_a_row = 0;
        let time_up = &mut self.time_up;
        let deadline = async {
            match time_up {
                Some(sleep) => sleep.as_mut().await,
                None => std::future::pending().await,
            }
        };
        let save = &mut self.save;
        let saves = async {
            match save {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        let message = tokio::select! {
            Some(message) = self.inbox.recv() => message,
            number = any(&mut self.signals) => Message::Signal(number),
            Some(()) = saves => Message::Save,
            _ = self.ticks.tick() => Message::Tick,
            () = deadline => Message::TimeUp,
        };
        if matches!(message, Message::TimeUp) {
            self.time_up = None;
        }
        message
    }
}

fn listen(number: i32) -> io::Result<(i32, Signal)> {
    Ok((number, signal(SignalKind::from_raw(number))?))
}

/// Waits for the next of these signals.
async fn any(signals: &mut [(i32, Signal); 4]) -> i32 {
    let [(a, first), (b, second), (c, third), (d, fourth)] = signals;
    tokio::select! {
        Some(()) = first.recv() => *a,
        Some(()) = second.recv() => *b,
        Some(()) = third.recv() => *c,
        Some(()) = fourth.recv() => *d,
        else => std::future::pending().await,
    }
}
