//! The user who called sudo. Files and launched commands belong to this user and not to root.

use std::fs::File;
use std::io;

/// The user for whom longpole creates files and runs commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SudoUser {
    /// User id, not 0.
    pub uid: u32,
    /// Primary group id.
    pub gid: u32,
}

impl SudoUser {
    /// The user who called sudo, if this process is root because of sudo.
    pub fn from_environment() -> Option<SudoUser> {
        let is_root = rustix::process::geteuid().is_root();
        is_root.then(|| SudoUser::from_variables(|name| std::env::var(name).ok())).flatten()
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Option<SudoUser> {
        // The kernel interprets the largest number as "unchanged", so it is no user.
        let number = |name: &str| variable(name)?.parse::<u32>().ok().filter(|&number| number != u32::MAX);
        let (uid, gid) = (number("SUDO_UID")?, number("SUDO_GID")?);
        (uid != 0).then_some(SudoUser { uid, gid })
    }

    /// Makes the user the owner of an open file, and forbids access to all others.
    pub fn give(&self, file: &File) -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        std::os::unix::fs::fchown(file, Some(self.uid), Some(self.gid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sudo_variables_count_only_as_whole_numbers_of_a_real_user() {
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
    fn a_file_given_to_another_user_is_readable_by_that_user_only() {
        use std::os::unix::fs::MetadataExt;
        let file = tempfile::tempfile().unwrap();
        if file.metadata().unwrap().uid() != 0 {
            println!(
                "SKIP a_file_given_to_another_user_is_readable_by_that_user_only: only root can give files away"
            );
            return;
        }
        SudoUser { uid: 1234, gid: 567 }.give(&file).unwrap();
        let metadata = file.metadata().unwrap();
        assert_eq!((metadata.uid(), metadata.gid(), metadata.mode() & 0o777), (1234, 567, 0o600));
    }
}
