//! The user database's entry for the user who called sudo, and becoming that user before a command runs.

use recording::SudoUser;
use std::ffi::{CStr, CString, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;

/// A user's entry in the user database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Login name.
    pub name: CString,
    /// Home folder.
    pub home: OsString,
}

/// The user's entry in the user database, if there is one.
pub fn account(user: &SudoUser) -> Option<Account> {
    let mut buffer = vec![0u8; 64 << 10];
    let mut entry = std::mem::MaybeUninit::<libc::passwd>::zeroed();
    let mut found = std::ptr::null_mut();
    // SAFETY: entry, buffer and found are valid for writing, the buffer up to its length.
    let result = unsafe {
        libc::getpwuid_r(
            user.uid,
            entry.as_mut_ptr(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            &raw mut found,
        )
    };
    if result != 0 || found.is_null() {
        return None;
    }
    // SAFETY: all bytes of passwd may be zero, and getpwuid_r has filled it in.
    let entry = unsafe { entry.assume_init() };
    if entry.pw_name.is_null() || entry.pw_dir.is_null() {
        return None;
    }
    // SAFETY: pw_name is a NUL-ended string in `buffer`, which still lives.
    let name = unsafe { CStr::from_ptr(entry.pw_name) }.to_owned();
    // SAFETY: pw_dir is a NUL-ended string in `buffer`, which still lives.
    let home = unsafe { CStr::from_ptr(entry.pw_dir) }.to_bytes().to_vec();
    Some(Account { name, home: OsString::from_vec(home) })
}

/// Permanently gives this process the user's supplementary groups, group and id. For the gate, just before exec.
pub fn take_over_process(user: &SudoUser) -> io::Result<()> {
    match account(user) {
        Some(account) => {
            // SAFETY: the name is a NUL-ended string that lives through the call.
            succeeded(unsafe { libc::initgroups(account.name.as_ptr(), user.gid) })?;
        }
        None => {
            // SAFETY: one group id is read from a valid place.
            succeeded(unsafe { libc::setgroups(1, &raw const user.gid) })?;
        }
    }
    // SAFETY: setgid only takes a number.
    succeeded(unsafe { libc::setgid(user.gid) })?;
    // SAFETY: setuid only takes a number.
    succeeded(unsafe { libc::setuid(user.uid) })?;
    // SAFETY: setuid only takes a number. This call must fail: it checks that root's rights are gone.
    match unsafe { libc::setuid(0) } {
        0 => Err(io::Error::from_raw_os_error(libc::EPERM)),
        _ => Ok(()),
    }
}

fn succeeded(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_has_an_account_and_an_unused_number_has_none() {
        let root = account(&SudoUser { uid: 0, gid: 0 }).unwrap();
        assert_eq!(root.name.as_bytes(), b"root");
        assert_eq!(account(&SudoUser { uid: 4_000_000_001, gid: 0 }), None);
    }
}
