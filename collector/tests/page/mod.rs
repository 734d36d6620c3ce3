//! `longpole view`: what is in the page is what the other commands print, and a browser shows it without a word or a request.

pub(crate) mod browser;
mod content;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use std::io::Read;

/// What the page is built into.
const EMPTY: &str = include_str!("../../embedded/page/page.html");

/// The document in a page: its JSON, and the columns after it. All else in the file is as it was built.
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
