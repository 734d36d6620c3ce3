//! `longpole view`: the page has what other commands print, and a browser shows it without errors or requests.

pub(crate) mod browser;
mod content;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use std::io::Read;

/// The built page, without a document.
const EMPTY: &str = include_str!("../../embedded/page/page.html");

/// The document in a page: its JSON, and the columns after it. The rest of the file must be the built page.
fn document(page: &str) -> (serde_json::Value, Vec<u8>) {
    let (before, after) = EMPTY.split_once("@document@").expect("a place");
    let packed = page.strip_prefix(before).and_then(|rest| rest.strip_suffix(after)).expect("the built page");
    let mut bytes = Vec::new();
    let packed = STANDARD.decode(packed).expect("base64");
    GzDecoder::new(&packed[..]).read_to_end(&mut bytes).expect("a gzip stream");
    let (length, rest) = bytes.split_first_chunk::<4>().expect("a length");
    let (json, columns) = rest.split_at(u32::from_le_bytes(*length) as usize);
    (serde_json::from_slice(json).expect("JSON"), columns.to_vec())
}
