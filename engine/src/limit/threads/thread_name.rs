//! The part of a thread's name that threads of one kind share.

/// `xz` of `xz/1234`.
pub(super) fn bare(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(name, _)| name)
}

/// Without digits: `worker-` of `worker-7`.
pub(super) fn letters(name: &str) -> String {
    name.chars().filter(|c| !c.is_ascii_digit()).collect()
}
