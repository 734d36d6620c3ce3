//! Waits for a socket that are waits for other servers' answers (a method of longpole's own).
//!
//! A wait in `recv` does not show whether the next request or an answer is awaited. The sums of requests do: if as many
//! requests are open at other servers, on average, as threads wait for sockets, these threads wait for their answers.
//! In any other case the name stays.

use super::{Endpoint, Program, RecordedWait};

/// Name of a wait for anything that arrives at a socket.
const SOCKET: &str = "socket receive";
/// Name of a wait for answers, to be followed by the name of the server.
pub(crate) const ANSWERS: &str = "answers of ";
/// The numbers of requests that are open at other servers, and threads that wait for sockets, may differ by this
/// factor: a request is open a little longer than its thread sleeps.
const SAME: f64 = 1.3;
/// A server is named if it gets at least this share of all requests; so much of all waits decides what the rest is for.
const MOST: f64 = 0.8;

/// If threads wake each other at least this number of times for each request that is sent, a thread may wait for
/// requests that another thread passes on.
const PASSED_ON: f64 = 0.5;

/// Whether threads waited for what a socket brings: requests or answers.
pub(crate) fn is_for_socket(wait: &RecordedWait) -> bool {
    let name = wait.name.as_str();
    name == SOCKET || name.starts_with(ANSWERS)
}

/// Whether the waits for sockets are mostly known to be for sockets whose other ends are servers that are asked, and that are not
/// recorded.
fn is_client(program: &Program) -> bool {
    let asked = |name: &str| program.recorded.traffic.iter().any(|end| !end.served && end.name == name);
    let waits = || program.recorded.waits.iter().filter(|wait| wait.name.as_str() == SOCKET);
    let known = waits()
        .filter(|wait| !wait.is_ended_by_threads())
        .flat_map(|wait| &wait.of)
        .filter(|of| asked(&of.name))
        .map(|of| of.wait_ns);
    let known = known.fold(0u64, u64::saturating_add) as f64;
    known > 0.0 && known >= MOST * waits().map(|wait| wait.wait_ns as f64).sum::<f64>()
}

/// Names the waits of a program whose sums of requests are known. `length_ns`: of the recording; `wakeups`: by its threads.
pub(super) fn name(program: &mut Program, length_ns: u64, wakeups: usize) {
    let asked = || program.recorded.traffic.iter().filter(|end| !end.served);
    let open: f64 = asked().map(|end| end.open).sum();
    let sent: f64 = asked().map(|end| end.count as f64).sum();
    let waits = program.recorded.waits.iter().filter(|wait| wait.name.as_str() == SOCKET);
    let waited =
        waits.fold(0u64, |sum, wait| sum.saturating_add(wait.wait_ns)) as f64 / length_ns.max(1) as f64;
    let is_passed_on = wakeups as f64 > PASSED_ON * sent && !is_client(program);
    if is_passed_on || open <= 0.0 || open > waited * SAME || waited > open * SAME {
        return;
    }
    let first = asked().max_by(|a: &&Endpoint, b| a.open.total_cmp(&b.open));
    let first = first.filter(|end| end.open >= MOST * open).map_or("others", |end| end.name.as_str());
    let name = format!("{ANSWERS}{first}");
    for wait in program.recorded.waits.iter_mut().filter(|wait| wait.name.as_str() == SOCKET) {
        wait.name = name.as_str().into();
    }
    for object in program.objects.iter_mut().filter(|object| *object == SOCKET) {
        object.clone_from(&name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{AwaitedPart, Recorded};

    fn named(waited_ns: u64, open: &[f64]) -> String {
        named_with(waited_ns, open, 10)
    }

    fn named_with(waited_ns: u64, open: &[f64], wakeups: usize) -> String {
        named_at(waited_ns, open, wakeups, None)
    }

    fn named_at(waited_ns: u64, open: &[f64], wakeups: usize, at: Option<&str>) -> String {
        let end = |open: &f64| Endpoint {
            name: format!("10.0.0.7:{open}"),
            open: *open,
            count: 100,
            ..Endpoint::default()
        };
        let of = at.map(|name| AwaitedPart { name: name.to_owned(), waits: 1, wait_ns: waited_ns });
        let of = of.into_iter().collect();
        let wait = RecordedWait { name: SOCKET.into(), wait_ns: waited_ns, of, ..RecordedWait::default() };
        let traffic =
            open.iter().map(end).chain([Endpoint { served: true, open: 9.0, ..Endpoint::default() }]);
        let recorded = Recorded { traffic: traffic.collect(), waits: vec![wait], ..Recorded::default() };
        let mut program = Program { objects: vec![SOCKET.to_owned()], recorded, ..Program::default() };
        name(&mut program, 1_000, wakeups);
        assert_eq!(program.objects[0], program.recorded.waits[0].name.as_str());
        program.objects.remove(0)
    }

    #[test]
    fn socket_waits_are_for_answers_if_as_many_requests_are_open() {
        assert_eq!(named(3_600, &[4.0]), "answers of 10.0.0.7:4");
        assert_eq!(named(3_600, &[0.4, 3.5]), "answers of 10.0.0.7:3.5");
        assert_eq!(named(3_600, &[2.0, 2.0]), "answers of others");
        // Half of the time is spent waiting for requests; nothing is asked; an event loop that sends requests.
        assert_eq!([named(3_600, &[1.8]), named(3_600, &[]), named(500, &[4.0])], [SOCKET; 3]);
    }

    /// If readers pass requests on to the thread that asks another server, they wait for their clients as long as it
    /// waits for answers.
    #[test]
    fn threads_that_wake_each_other_may_wait_for_requests() {
        assert_eq!(named_with(3_600, &[4.0], 100), SOCKET);
        // The other ends of their sockets are that server.
        assert_eq!(named_at(3_600, &[4.0], 100, Some("10.0.0.7:4")), "answers of 10.0.0.7:4");
        assert_eq!(named_at(3_600, &[4.0], 100, Some("clients of port 80")), SOCKET);
    }
}
