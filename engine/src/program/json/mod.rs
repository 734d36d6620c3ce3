//! Reads and writes programs as JSON text:
//!
//! ```json
//! {"format":"longpole-program","version":1,"threads":[{"name":"T1","ops":[
//!   ["exec","a",1000],["signal","X"],["call","f"],["exec",250],["ret"],["wait","Y"]]}]}
//! ```
//!
//! Lengths are nanoseconds, possibly with fractions (to 1/1000 ns). `exec` without a name belongs to the top of the stack.
//! Unknown fields are ignored. Optional fields have facts from a recording: `trust`, `findings`, `overhead` and `functions`
//! with `name`, `location` and `folded`, `machine` ([`super::MachineFacts`]). `writers_first` names read-write locks that
//! prefer writers. Besides `name` and `ops`, a thread may have `nice`, `cpus` and `background`: the name of the thread that
//! it ends with, and the operations that it repeats until then (index of the first one, and of the one after the last).

mod document;
mod held;
mod names;
mod operation;
mod read;
mod samples;
mod text;
mod value;
mod write;

pub use read::read;
pub use text::write_value;
pub use write::write;

/// Value of the field `format`.
const FORMAT: &str = "longpole-program";

/// Value of the field `version`.
const VERSION: u64 = 1;
