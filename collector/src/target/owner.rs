//! The user behind sudo: files and launched commands are theirs, not root's.

use std::ffi::{CStr, CString, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStringExt;

/// A user to act for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SudoUser {
    /// User id, not 0.
    pub uid: u32,
    /// Primary group id.
    pub gid: u32,
}

/// What the user database says about a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Login name.
    pub name: CString,
    /// Home folder.
    pub home: OsString,
}

impl SudoUser {
    /// The user that ran sudo, if we are root because of it.
    pub fn from_environment() -> Option<SudoUser> {
        // SAFETY: geteuid only returns a number.
        let effective = unsafe { libc::geteuid() };
        if effective == 0 { SudoUser::from_variables(|name| std::env::var(name).ok()) } else { None }
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Option<SudoUser> {
        // The largest number means "leave it" to the kernel.
        let number = |name: &str| variable(name)?.parse::<u32>().ok().filter(|&number| number != u32::MAX);
        let (uid, gid) = (number("SUDO_UID")?, number("SUDO_GID")?);
        (uid != 0).then_some(SudoUser { uid, gid })
    }

    /// Makes an open file theirs, and readable and writable by nobody else.
    pub fn give(&self, file: &File) -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        std::os::unix::fs::fchown(file, Some(self.uid), Some(self.gid))
    }

    /// The user's entry in the user database, if there is one.
    pub fn account(&self) -> Option<Account> {
        let mut buffer = vec![0u8; 64 << 10];
        let mut entry = std::mem::MaybeUninit::<libc::passwd>::zeroed();
        let mut found = std::ptr::null_mut();
        // SAFETY: entry, buffer and found are valid for writing, the buffer as long as said.
        let result = unsafe {
            libc::getpwuid_r(
                self.uid,
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

    /// Makes this process theirs for good: supplementary groups, group, user. For the gate, just before exec.
    pub(super) fn take_over_process(&self) -> io::Result<()> {
        match self.account() {
            Some(account) => {
                // SAFETY: the name is a NUL-ended string that lives through the call.
                succeeded(unsafe { libc::initgroups(account.name.as_ptr(), self.gid) })?;
            }
            None => {
                // SAFETY: one group id is read from a valid place.
                succeeded(unsafe { libc::setgroups(1, &raw const self.gid) })?;
            }
        }
        // SAFETY: setgid only takes a number.
        succeeded(unsafe { libc::setgid(self.gid) })?;
        // SAFETY: setuid only takes a number.
        succeeded(unsafe { libc::setuid(self.uid) })?;
        // SAFETY: setuid only takes a number; it must fail now.
        match unsafe { libc::setuid(0) } {
            0 => Err(io::Error::from_raw_os_error(libc::EPERM)),
            _ => Ok(()),
        }
    }
}

fn succeeded(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_numbers_of_a_real_user_count() {
        let user = |uid: &'static str, gid: &'static str| {
            SudoUser::from_variables(move |name| {
                let value = if name == "SUDO_UID" { uid } else { gid };
                (!value.is_empty()).then(|| value.to_owned())
            })
        };
        assert_eq!(user("1000", "100"), Some(SudoUser { uid: 1000, gid: 100 }));
        for (uid, gid) in [("", "1"), ("1000", ""), ("0", "0"), ("x", "1"), ("-1", "1"), ("4294967295", "1")]
        {
            assert_eq!(user(uid, gid), None, "{uid} {gid}");
        }
    }

    #[test]
    fn root_has_an_account() {
        let account = SudoUser { uid: 0, gid: 0 }.account().unwrap();
        assert_eq!(account.name.as_bytes(), b"root");
        assert_eq!(SudoUser { uid: 4_000_000_001, gid: 0 }.account(), None);
    }

    #[test]
    fn a_file_given_away_is_private() {
        use std::os::unix::fs::MetadataExt;
        let file = tempfile::tempfile().unwrap();
        if file.metadata().unwrap().uid() != 0 {
            println!("SKIP a_file_given_away_is_private: only root can give files away");
            return;
        }
        SudoUser { uid: 1234, gid: 567 }.give(&file).unwrap();
        let metadata = file.metadata().unwrap();
        assert_eq!((metadata.uid(), metadata.gid(), metadata.mode() & 0o777), (1234, 567, 0o600));
    }
}
