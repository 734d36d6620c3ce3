//! Which requests may read what.

use std::io;
use std::net::{IpAddr, SocketAddr};

/// A secret that a browser must send to see the page.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// The shortest and the longest that a user may choose, in bytes.
    pub const LENGTHS: std::ops::RangeInclusive<usize> = 16..=256;

    /// 128 random bits.
    ///
    /// # Errors
    /// The kernel has no random numbers yet.
    pub fn random() -> io::Result<Token> {
        let mut bits = [0; 16];
        rustix::rand::getrandom(&mut bits, rustix::rand::GetRandomFlags::NONBLOCK)?;
        Ok(Token(bits.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// A token chosen by the user, if it can be in an address unescaped: letters, digits, `-` and `_`.
    pub fn chosen(text: &str) -> Option<Token> {
        let text = text.trim();
        let fits = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        (fits && Token::LENGTHS.contains(&text.len())).then(|| Token(text.to_owned()))
    }

    /// For the user who starts longpole.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether it is this one. A wrong one of the same length takes as long as the right one.
    fn is(&self, given: &str) -> bool {
        let differs = self.0.bytes().zip(given.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
        given.len() == self.0.len() && std::hint::black_box(differs) == 0
    }
}

/// What a request has to show for what it asks.
#[derive(Clone)]
pub struct Access {
    token: Token,
    /// Metrics need no token, as Prometheus's own exporters: only this machine can ask.
    is_local: bool,
}

impl Access {
    /// To what listens there.
    pub fn new(address: SocketAddr, token: Token) -> Access {
        Access { token, is_local: address.ip().is_loopback() }
    }

    /// Whether the requested host may be this one. On a loopback address it has to be the number, or
    /// `localhost`: under any other name, a page of another site could read it (DNS rebinding).
    pub(super) fn is_host(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        !self.is_local || name.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok()
    }

    /// Whether metrics may be read with this `Authorization`.
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
