//! Malicious clients: longpole goes on, and what they can use up is bounded.

use super::{TOKEN, serve, snapshot_of};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

#[test]
fn the_listener_refuses_bytes_that_are_no_request() {
    let mut served = serve();
    let long = "x".repeat(100_000);
    let many = "a: b\r\n".repeat(1_000);
    for bytes in [
        b"\x16\x03\x01\x02\x00\x01\x00\xff\xfe".to_vec(),
        b"GET".to_vec().repeat(10_000),
        format!("GET /{long} HTTP/1.1\r\n\r\n").into_bytes(),
        format!("GET / HTTP/1.1\r\nHost: localhost\r\nx: {long}\r\n\r\n").into_bytes(),
        format!("GET / HTTP/1.1\r\nHost: localhost\r\n{many}\r\n").into_bytes(),
        b"GET /metrics HTTP/9.9\r\n\r\n".to_vec(),
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nContent-Length: -1\r\n\r\n"
            .to_vec(),
        b"GET \x00/\xff HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
    ] {
        let answer = served.send(&bytes);
        assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    for path in [
        "/../../../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..\\..\\etc\\passwd",
        "/embedded/page/live.html",
    ] {
        let answer = served.get(path);
        assert!(answer.starts_with("HTTP/1.1 404") || answer.starts_with("HTTP/1.1 400"), "{path}: {answer}");
    }
    assert!(served.get("/").starts_with("HTTP/1.1 403"), "the page needs the token");
    served.is_well();
}

/// Whether the server has closed the connection.
fn is_closed(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 64]) {
        Ok(length) => length == 0,
        Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
    }
}

#[test]
fn the_listener_closes_idle_connections() {
    let mut served = serve();
    let mut idle: Vec<TcpStream> = (0..300).map(|_| served.connect()).collect();
    for stream in &idle {
        stream.set_read_timeout(Some(Duration::from_millis(20))).expect("set");
    }
    // Most connections are closed at once, the others when no request arrives.
    let mut open = idle.len();
    let begun = Instant::now();
    while open > 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "{open} are held for ever");
        idle.retain_mut(|stream| !is_closed(stream));
        if open == 300 {
            assert!(idle.len() <= 100, "{} at once", idle.len());
        }
        open = idle.len();
    }
    served.is_well();
}

/// The recorder never waits for a client that does not read; that client is dropped.
#[test]
fn the_listener_drops_a_client_that_does_not_read() {
    let mut served = serve();
    // A page larger than what the kernel keeps for a client.
    let threads: Vec<_> = (0..100)
        .map(|number| {
            serde_json::json!({"name": number.to_string(), "ops": [["exec", format!("{number}{}", "x".repeat(5_000)), 1000 + number]]})
        })
        .collect();
    let program =
        serde_json::json!({"format": "longpole-program", "version": 1, "threads": threads}).to_string();
    let snapshot = snapshot_of(&engine::program::json::read(&program).expect("a program"));
    let mut slow = served.connect();
    let request = format!("GET /events?token={TOKEN} HTTP/1.1\r\nHost: {}\r\n\r\n", served.address);
    slow.write_all(request.as_bytes()).expect("sent");
    slow.set_write_timeout(Some(Duration::from_secs(1))).expect("set");
    let begun = Instant::now();
    let mut shows = 0u64;
    loop {
        // Far more reports than could be sent.
        for _ in 0..1_000 {
            served.board.show(snapshot.clone());
            shows += 1;
        }
        std::thread::sleep(Duration::from_millis(20));
        // A dropped connection answers with a reset.
        if slow.write_all(b"\r\n").is_err() {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(300), "it is held for ever");
    }
    assert!(shows > 1_000);
    served.is_well();
}

#[test]
fn pages_of_the_listener_leave_connections_for_metrics() {
    let mut served = serve();
    let pages: Vec<TcpStream> = (0..40)
        .map(|_| {
            let mut page = served.connect();
            let request = format!("GET /events?token={TOKEN} HTTP/1.1\r\nHost: {}\r\n\r\n", served.address);
            let _ = page.write_all(request.as_bytes());
            page
        })
        .collect();
    let mut answers = pages.into_iter().map(|mut page| {
        let mut line = [0; 12];
        let whole = page.read_exact(&mut line).is_ok();
        (if whole { String::from_utf8_lossy(&line).into_owned() } else { String::new() }, page)
    });
    let (shown, kept): (Vec<String>, Vec<TcpStream>) = answers.by_ref().unzip();
    let count = |status: &str| shown.iter().filter(|line| line.as_str() == status).count();
    assert_eq!(count("HTTP/1.1 200"), 16, "{shown:?}");
    served.is_well();
    drop(kept);
}
