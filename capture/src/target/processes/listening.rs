//! The TCP ports on which a process's network namespace listens.

use std::{fs::File, io::Read as _};

/// Most bytes read of a file. Listening sockets come first; a hundred thousand connections after them would be megabytes.
const MOST_BYTES: u64 = 256 << 10;

/// Ports on which any process in the network namespace of `pid` listens; empty if that cannot be read.
pub(crate) fn ports(pid: u32) -> Vec<u16> {
    let read = |file: &str| {
        let mut text = String::new();
        let file = File::open(format!("/proc/{pid}/net/{file}")).ok()?;
        file.take(MOST_BYTES).read_to_string(&mut text).ok()?;
        Some(text)
    };
    let mut ports: Vec<u16> =
        ["tcp", "tcp6"].into_iter().filter_map(read).flat_map(|text| listening(&text)).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// The listening ports in a file like `/proc/net/tcp`: the second column ends in the port, the fourth is the state, all
/// hexadecimal (Linux `net/ipv4/tcp_ipv4.c`, `get_tcp4_sock`).
fn listening(text: &str) -> Vec<u16> {
    const TCP_LISTEN: &str = "0A";
    let port = |line: &str| {
        let mut columns = line.split_ascii_whitespace().skip(1);
        let address = columns.next()?;
        (columns.nth(1)? == TCP_LISTEN).then_some(())?;
        u16::from_str_radix(address.rsplit_once(':')?.1, 16).ok()
    };
    text.lines().filter_map(port).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ports_in_state_listen_are_found() {
        let text = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1BBC 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12 1 0
   1: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 00000000:00000000
   2: 0100007F:D431 0100007F:1BBC 01 00000000:00000000 00:00000000 00000000     0        0 13 1 0
   3: nonsense
";
        assert_eq!(listening(text), [7100, 80]);
        let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = socket.local_addr().expect("known").port();
        assert!(ports(std::process::id()).contains(&port));
    }
}
