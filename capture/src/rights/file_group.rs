//! File capabilities that count for the members of the file's group alone.
//!
//! The kernel gives a file's capabilities to everybody who may run the file, and everybody should be able to run longpole:
//! reading a recording needs no right. So the packages give longpole's file capabilities and a group of its own, and
//! longpole gives its capabilities up before anything else if the user is outside of that group.

use std::io;
use std::os::unix::fs::MetadataExt as _;

use rustix::process::{getgid, getgroups, getuid};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

/// The file of longpole's own program.
const OWN_FILE: &str = "/proc/self/exe";

/// The group of longpole's file, if the file has capabilities and this user is not entitled to them. A file with root's
/// group gives its capabilities to all users, as a plain `setcap` does.
pub(super) fn to_join() -> Option<u32> {
    let group = std::fs::metadata(OWN_FILE).ok()?.gid();
    let mut value = [0u8; 64];
    let has_capabilities = rustix::fs::getxattr(OWN_FILE, c"security.capability", &mut value).is_ok();
    let member = || {
        getgid().as_raw() == group || getgroups().is_ok_and(|all| all.iter().any(|gid| gid.as_raw() == group))
    };
    (group != 0 && has_capabilities && !getuid().is_root() && !member()).then_some(group)
}

/// Gives up the capabilities that the file gave this process, if this user is not entitled to them. This must be the
/// first call of the program: nothing that a user controls may be read before.
///
/// # Errors
/// The kernel refuses: the program must end.
pub fn give_up_others() -> io::Result<()> {
    if to_join().is_none() {
        return Ok(());
    }
    let nothing = CapabilitySet::empty();
    Ok(set_capabilities(
        None,
        CapabilitySets { effective: nothing, permitted: nothing, inheritable: nothing },
    )?)
}

/// Name of the group in /etc/group, or its number.
pub(super) fn name(group: u32) -> String {
    let list = std::fs::read_to_string("/etc/group").unwrap_or_default();
    name_in(&list, group).unwrap_or_else(|| group.to_string())
}

fn name_in(list: &str, group: u32) -> Option<String> {
    list.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(group)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_the_name_of_its_number() {
        let list = "root:x:0:\nbroken\nlongpole:x:987:ann,bob\n";
        assert_eq!(name_in(list, 987).as_deref(), Some("longpole"));
        assert_eq!(name_in(list, 98), None);
    }

    #[test]
    fn a_file_without_capabilities_is_for_everybody() {
        assert_eq!(to_join(), None);
        give_up_others().unwrap();
    }
}
