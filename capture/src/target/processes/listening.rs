//! Listening sockets of a process's network namespace: their ports, and the connections that they dropped.

use std::{
    fs::File,
    io::{Read as _, Seek as _},
};

/// Largest number of bytes read of a file. Listening sockets come first; a hundred thousand connections after them
/// would be megabytes.
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
pub(in crate::target) fn listening(text: &str) -> Vec<u16> {
    const TCP_LISTEN: &str = "0A";
    let port = |line: &str| {
        let mut columns = line.split_ascii_whitespace().skip(1);
        let address = columns.next()?;
        (columns.nth(1)? == TCP_LISTEN).then_some(())?;
        u16::from_str_radix(address.rsplit_once(':')?.1, 16).ok()
    };
    text.lines().filter_map(port).collect()
}

/// Counts connections that the kernel dropped because the queue of a listening socket was full.
pub(crate) struct Dropped {
    /// Keeps the network namespace, also after the process has ended.
    file: File,
    before: u64,
}

impl Dropped {
    /// Begins to count for the network namespace of a process; `None` if it cannot be read.
    pub(crate) fn begin(pid: u32) -> Option<Dropped> {
        let mut file = File::open(format!("/proc/{pid}/net/netstat")).ok()?;
        let before = overflows(&read_again(&mut file)?)?;
        Some(Dropped { file, before })
    }

    /// Connections dropped so far.
    pub(crate) fn count(&mut self) -> u64 {
        let now = read_again(&mut self.file).and_then(|text| overflows(&text));
        now.map_or(0, |now| now.saturating_sub(self.before))
    }
}

/// The file's text as it is now.
fn read_again(file: &mut File) -> Option<String> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(MOST_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The number `ListenOverflows` in a text like `/proc/net/netstat`: a line has the names, the next one the numbers (Linux
/// `net/ipv4/proc.c`, `netstat_seq_show`).
pub(in crate::target) fn overflows(text: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("TcpExt:"));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let place = names.split_ascii_whitespace().position(|name| name == "ListenOverflows")?;
    numbers.split_ascii_whitespace().nth(place)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_below_listen_overflows_counts_dropped_connections() {
        let text = "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 1 22 333\nIpExt: InNoRoutes\nIpExt: 0\n";
        assert_eq!(overflows(text), Some(22));
        for cut in
            ["", "TcpExt: ListenOverflows", "TcpExt: ListenOverflows\nTcpExt: x", "TcpExt: A\nTcpExt: 1"]
        {
            assert_eq!(overflows(cut), None, "{cut}");
        }
    }

    #[test]
    fn a_connection_beyond_a_full_queue_is_counted_as_dropped() {
        use rustix::net::{
            AddressFamily, SocketFlags, SocketType, bind, connect, getsockname, listen, socket_with,
        };
        let new = || {
            socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::NONBLOCK, None)
                .expect("a socket")
        };
        let server = new();
        bind(&server, &std::net::SocketAddr::from(([127, 0, 0, 1], 0))).expect("bound");
        listen(&server, 0).expect("listening");
        let address = getsockname(&server).expect("an address");
        let mut dropped = Dropped::begin(std::process::id()).expect("a file");
        let clients: Vec<_> = (0..8).map(|_| new()).collect();
        for client in &clients {
            // It is in progress, and stays so beyond the queue.
            let _ = connect(client, &address);
        }
        assert!(dropped.count() > 0);
    }

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
