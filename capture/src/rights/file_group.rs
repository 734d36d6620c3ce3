//! File capabilities that count for the members of the file's group alone.
//!
//! The kernel gives a file's capabilities to everybody who may run the file, and everybody should be able to run longpole:
//! reading a recording needs no right. So the packages give longpole's file capabilities and a group of its own, and
//! longpole gives its capabilities up before anything else if the user is outside of that group.

use std::io;
use std::os::unix::fs::MetadataExt as _;

use rustix::process::{getgid, getgroups, getuid};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

/// This process's own file.
const OWN_FILE: &str = "/proc/self/exe";

/// The group of longpole's file, if the file has capabilities and they are not for this user. A file of root's group has
/// them for everybody: so does a plain `setcap`.
pub(super) fn to_join() -> Option<u32> {
    let group = std::fs::metadata(OWN_FILE).ok()?.gid();
    let mut value = [0u8; 64];
    let has_capabilities = rustix::fs::getxattr(OWN_FILE, c"security.capability", &mut value).is_ok();
    let member = || {
        getgid().as_raw() == group || getgroups().is_ok_and(|all| all.iter().any(|gid| gid.as_raw() == group))
    };
    (group != 0 && has_capabilities && !getuid().is_root() && !member()).then_some(group)
}

/// Gives up what the file's capabilities gave this process, if they are not for this user. The first call of the program:
/// nothing that a user controls has been read before.
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

/// The group's name in /etc/group, or its number.
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
