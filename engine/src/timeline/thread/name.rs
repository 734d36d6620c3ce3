//! Names of threads, as the kernel gives them.

/// A name from the kernel, up to its NUL, with control characters replaced: names come from the target and are not
/// trusted.
pub(in crate::timeline) fn clean_name(comm: &[u8]) -> String {
    let bytes = comm.split(|&byte| byte == 0).next().unwrap_or_default();
    let text = String::from_utf8_lossy(bytes);
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

pub(in crate::timeline) fn set_name(name: &mut String, comm: &[u8]) {
    let new = clean_name(comm);
    if !new.is_empty() {
        *name = new;
    }
}
