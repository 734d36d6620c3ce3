//! What the `op` argument of a futex call means (Linux `include/uapi/linux/futex.h`).

use probe_abi::futex_operation;

/// Names of the commands by number; those that wait end in `true`.
const COMMANDS: [(&str, bool); 14] = [
    ("futex", true),
    ("futex wake", false),
    ("futex fd", false),
    ("futex requeue", false),
    ("futex cmp requeue", false),
    ("futex wake op", false),
    ("futex lock pi", true),
    ("futex unlock pi", false),
    ("futex trylock pi", false),
    ("futex bitset", true),
    ("futex wake bitset", false),
    ("futex wait requeue pi", true),
    ("futex cmp requeue pi", false),
    ("futex lock pi2", true),
];

/// Whether a call with this `op` argument waits for its word.
pub fn futex_waits(operation: u32) -> bool {
    COMMANDS.get(futex_operation(operation) as usize).is_some_and(|(_, waits)| *waits)
}

/// Short name of the command of an `op` argument; the plain wait is just `futex`.
pub fn futex_name(operation: u32) -> &'static str {
    COMMANDS.get(futex_operation(operation) as usize).map_or("futex", |(name, _)| name)
}
