//! Decides which functions and C libraries of the target get probes, at the start and while recording.

mod alive;
mod attach;
pub(crate) mod attach_thread;
mod c_libraries;
mod function_finder;
mod hot_functions;
mod initial_functions;
mod initial_libraries;
mod later_functions;
mod library_probes;
mod lock_rate_trials;
mod lock_recording;
mod moving_libraries;
mod new_process_delay;
mod probe_selection;
mod probed_functions;
mod sampled_places;
mod short_lived;
mod tally;
mod target_remarks;
mod trials;
mod wanted_pairs;

pub use function_finder::Choose;
pub use hot_functions::{HotFunction, HotFunctions};
pub use tally::{SampledPlace, Tally};

pub(crate) use alive::{alive_while, is_alive};
pub(crate) use attach::{Attached, attach};
pub(crate) use attach_thread::{AttachResults, AttachThread, Job};
pub(crate) use function_finder::FunctionFinder;
pub(crate) use hot_functions::hot_functions;
pub(crate) use lock_recording::How;
pub(crate) use new_process_delay::NEW_PROCESS_DELAY;
pub(crate) use tally::Tallying;
