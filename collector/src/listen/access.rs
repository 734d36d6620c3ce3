//! Decides which HTTP requests may read what.

use std::io;
use std::net::{IpAddr, SocketAddr};

/// A secret that a browser must send to see the page.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Shortest and longest token that a user may choose, in bytes.
    pub const LENGTHS: std::ops::RangeInclusive<usize> = 16..=256;

    /// A token of 128 random bits.
    ///
    /// # Errors
    /// The kernel has no random numbers yet.
    pub fn random() -> io::Result<Token> {
        let mut bits = [0; 16];
        rustix::rand::getrandom(&mut bits, rustix::rand::GetRandomFlags::NONBLOCK)?;
        Ok(Token(bits.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// A token chosen by the user. It must need no escapes in an address: letters, digits, `-` and `_`.
    pub fn chosen(text: &str) -> Option<Token> {
        let text = text.trim();
        let fits = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        (fits && Token::LENGTHS.contains(&text.len())).then(|| Token(text.to_owned()))
    }

    /// The token's text, for the user who starts longpole.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether `given` is this token. A wrong token of the same length takes as long to compare as the right one.
    fn is(&self, given: &str) -> bool {
        let differs = self.0.bytes().zip(given.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
        given.len() == self.0.len() && std::hint::black_box(differs) == 0
    }
}

/// The rules for requests.
#[derive(Clone)]
pub struct Access {
    token: Token,
    /// The server listens on this machine only. Then metrics need no token, as with Prometheus's own exporters.
    is_local: bool,
}

impl Access {
    /// Rules for a server that listens on this address.
    pub fn new(address: SocketAddr, token: Token) -> Access {
        Access { token, is_local: address.ip().is_loopback() }
    }

    /// Whether a request may name this host. On a loopback address it must be an IP address or `localhost`: by another name,
    /// a page of another site could read the answer (DNS rebinding).
    pub(super) fn is_host(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        !self.is_local || name.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok()
    }

    /// Whether metrics may be read with this `Authorization` header.
    pub(super) fn may_scrape(&self, authorization: Option<&str>) -> bool {
        let given = authorization.and_then(|text| text.split_once(' '));
        let shows = given.is_some_and(|(scheme, token)| {
            scheme.eq_ignore_ascii_case("bearer") && self.token.is(token.trim())
        });
        self.is_local || shows
    }

    /// Whether the page may be shown for this query.
    pub(super) fn may_look(&self, query: Option<&str>) -> bool {
        let mut parts = query.unwrap_or_default().split('&');
        parts.find_map(|part| part.strip_prefix("token=")).is_some_and(|given| self.token.is(given))
    }
}
