//! The answer to a request.

use super::access::Access;
use hyper::http::request::Parts;
use hyper::{Method, StatusCode, header};

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Metrics as text.
    Metrics,
    /// The page.
    Page,
    /// The page's data, again and again.
    Events,
    /// A refusal, with a line that gives the reason.
    No(StatusCode, &'static str),
}

/// Decides by the request and the rules alone.
pub fn answer(request: &Parts, access: &Access) -> Answer {
    let text = |name| request.headers.get(name).and_then(|value| value.to_str().ok());
    if !text(header::HOST).is_some_and(|host| access.is_host(host)) {
        return Answer::No(StatusCode::MISDIRECTED_REQUEST, "use the host's address, not a name");
    }
    if request.method != Method::GET {
        return Answer::No(StatusCode::METHOD_NOT_ALLOWED, "nothing can be changed here: GET only");
    }
    let may_look = access.may_look(request.uri.query());
    match request.uri.path() {
        "/metrics" if access.may_scrape(text(header::AUTHORIZATION)) => Answer::Metrics,
        "/metrics" => {
            Answer::No(StatusCode::UNAUTHORIZED, "metrics need the token: Authorization: Bearer TOKEN")
        }
        "/" if may_look => Answer::Page,
        "/events" if may_look => Answer::Events,
        "/" | "/events" => Answer::No(
            StatusCode::FORBIDDEN,
            "the page needs the token: open the address that longpole printed",
        ),
        _ => Answer::No(StatusCode::NOT_FOUND, "there are /metrics and the page"),
    }
}
