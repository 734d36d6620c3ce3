//! Encodes records as columns, and decodes them to the same bytes in the same order.
//!
//! Every field of a record has a column of its own. The encoder writes each value as the difference to a prediction
//! ([`model`]): for example the last value for the same thread or CPU. Most differences are 0 or small, so most fields
//! take one byte before packing.
//!
//! ```text
//! payload = records:varint { column:varint bytes:varint byte[bytes] }*
//! column  = 0–6 the header's fields, 16 + 16·kind + i the i-th field of the body of a record of that kind
//! ```
//!
//! Encoding and decoding share the function that walks over a record's fields, so that they cannot disagree.

mod decode;
mod encode;
mod layout;
mod model;

pub use decode::decode;
pub use encode::Encoder;

/// Upper bound of column numbers: 16 for the header and 16 for each kind up to the last known one.
const COLUMNS: usize = 16 * (probe_abi::Kind::ALL.len() + 2);

/// Size of the largest record, rounded up, in bytes.
const ROOM: usize = 64;
