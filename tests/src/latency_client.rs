//! A client that sends a request to a server every millisecond, and notes how long each answer took.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Pause between an answer and the next request.
const PAUSE: Duration = Duration::from_millis(1);
/// Longest time for an answer of a server that still works.
const LIMIT: Duration = Duration::from_secs(60);

/// The client. The client sends requests until it is stopped.
pub struct LatencyClient {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<Vec<Answered>>>,
}

/// An answer.
#[derive(Clone, Copy, Debug)]
pub struct Answered {
    /// When the request was sent.
    pub at: Instant,
    /// Time from the request to the answer.
    pub took: Duration,
}

impl LatencyClient {
    /// Starts a client on an existing connection. Each read that returns bytes counts as one answer.
    pub fn start<S: Read + Write + Send + 'static>(mut server: S, question: &'static [u8]) -> LatencyClient {
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut answers = Vec::new();
            let mut answer = [0; 256];
            while !is_over.load(Ordering::Relaxed) {
                let at = Instant::now();
                server.write_all(question)?;
                if server.read(&mut answer)? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                let took = at.elapsed();
                answers.push(Answered { at, took });
                if took > LIMIT {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                std::thread::sleep(PAUSE);
            }
            Ok(answers)
        });
        LatencyClient { stop, thread }
    }

    /// Stops the client, and returns all answers.
    ///
    /// # Errors
    /// The server has closed the connection.
    pub fn finish(self) -> io::Result<Vec<Answered>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| io::Error::other("the client failed"))?
    }
}

/// The latencies of the requests that were sent from one instant up to another, ascending, in milliseconds.
pub fn lengths(answers: &[Answered], from: Instant, to: Instant) -> Vec<f64> {
    let within = answers.iter().filter(|answered| (from..to).contains(&answered.at));
    let mut lengths: Vec<f64> = within.map(|answered| answered.took.as_secs_f64() * 1e3).collect();
    lengths.sort_by(f64::total_cmp);
    lengths
}

/// The length at a quantile of sorted lengths; NaN if there are no lengths.
pub fn quantile(lengths: &[f64], share: f64) -> f64 {
    let at = (lengths.len() as f64 * share) as usize;
    lengths.get(at.min(lengths.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_answers_asked_in_the_given_time() {
        let start = Instant::now();
        let answers: Vec<Answered> = (0..2_000)
            .map(|number| Answered {
                at: start + Duration::from_millis(number),
                took: Duration::from_millis(number),
            })
            .collect();
        let first = lengths(&answers, start, start + Duration::from_millis(1_000));
        assert_eq!(first.len(), 1_000);
        assert_eq!([0.5, 0.999, 1.0].map(|share| quantile(&first, share)), [500.0, 999.0, 999.0]);
        assert!(quantile(&[], 0.5).is_nan());
    }
}
