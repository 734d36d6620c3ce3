//! A cache, in files, of facts that stay valid until the machine reboots: finding them takes a third of a start.
//!
//! Only root reads and writes the files, since they say where the kernel's memory is read. A file that is missing, damaged,
//! from another boot or another build of longpole, or accessible to others counts as absent.

use std::{
    fs::{DirBuilder, File, Metadata, OpenOptions},
    hash::Hasher as _,
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::OnceLock,
    time::Duration,
};

use rustc_hash::FxHasher;
use rustix::process::geteuid;

const FOLDER: &str = "/run/longpole";
/// More than the largest file, which has 0.6 MB.
const MOST_BYTES: u64 = 16 << 20;
/// Measurements expire: one may have been disturbed, or the machine may run at another speed by now.
const MEASURED_FOR: Duration = Duration::from_secs(3600);

/// The content that was kept under a name in this boot, of any age.
pub(crate) fn read(name: &str) -> Option<Vec<u8>> {
    BootCache::of_root()?.read(name, Duration::MAX)
}

/// Keeps a content under a name; a failure is only logged.
pub(crate) fn keep(name: &str, content: &[u8]) {
    if let Some(cache) = BootCache::of_root()
        && let Err(error) = cache.keep(name, content)
    {
        log::debug!("{name} is not kept in {FOLDER}: {error}");
    }
}

/// Measured numbers: the cached ones if they are less than an hour old, else those of a new measurement, which are kept.
pub(crate) fn measured<const N: usize>(
    name: &str,
    measure: impl FnOnce() -> Option<[u64; N]>,
) -> Option<[u64; N]> {
    let kept = BootCache::of_root().and_then(|cache| cache.read(name, MEASURED_FOR));
    if let Some(words) = kept.as_deref().and_then(|bytes| bytes.as_chunks().0.try_into().ok()) {
        let words: [[u8; 8]; N] = words;
        return Some(words.map(u64::from_le_bytes));
    }
    let words = measure()?;
    keep(name, words.map(u64::to_le_bytes).as_flattened());
    Some(words)
}

/// The cached files of one boot of the machine and one build of longpole.
struct BootCache {
    folder: PathBuf,
    /// The first line of each file.
    key: String,
}

impl BootCache {
    /// The cache, for root only: a program with file capabilities must not trust files that its user can write.
    fn of_root() -> Option<&'static BootCache> {
        static CACHE: OnceLock<Option<BootCache>> = OnceLock::new();
        let open = || if geteuid().is_root() { BootCache::in_folder(Path::new(FOLDER)).ok() } else { None };
        CACHE.get_or_init(open).as_ref()
    }

    fn in_folder(folder: &Path) -> io::Result<BootCache> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
        let build = std::fs::metadata("/proc/self/exe")?;
        let build = [build.dev(), build.ino(), build.size(), build.mtime() as u64, build.mtime_nsec() as u64];
        let key = format!("{} {} {build:?}\n", boot.trim(), kernel.trim());
        Ok(BootCache { folder: folder.to_owned(), key })
    }

    fn read(&self, name: &str, oldest: Duration) -> Option<Vec<u8>> {
        self.check_folder().ok()?;
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(self.folder.join(name)).ok()?;
        let facts = file.metadata().ok()?;
        let age = facts.modified().ok()?.elapsed().ok()?;
        if !facts.is_file() || !is_private(&facts) || age >= oldest {
            return None;
        }
        let mut bytes = Vec::new();
        File::take(file, MOST_BYTES).read_to_end(&mut bytes).ok()?;
        let (sum, content) = bytes.strip_prefix(self.key.as_bytes())?.split_first_chunk()?;
        (u64::from_le_bytes(*sum) == checksum(content)).then(|| content.to_vec())
    }

    fn keep(&self, name: &str, content: &[u8]) -> io::Result<()> {
        match DirBuilder::new().mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => self.check_folder()?,
        }
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(self.key.as_bytes())?;
        file.write_all(&checksum(content).to_le_bytes())?;
        file.write_all(content)?;
        file.persist(self.folder.join(name))?;
        Ok(())
    }

    fn check_folder(&self) -> io::Result<()> {
        let facts = std::fs::symlink_metadata(&self.folder)?;
        match facts.is_dir() && is_private(&facts) {
            true => Ok(()),
            false => Err(io::Error::other("the folder is open to others")),
        }
    }
}

/// Whether a file or folder belongs to this user, and no other user has any access to it.
fn is_private(facts: &Metadata) -> bool {
    facts.uid() == geteuid().as_raw() && facts.mode() & 0o077 == 0
}

/// Detects files that were cut or damaged. No attacker can write them, so the hash need not be a secure one.
fn checksum(content: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(content);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, set_permissions, write};
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_boot_cache_returns_a_fact_unless_it_is_old_damaged_or_open_to_others() {
        let scratch = tempfile::tempdir().expect("folder");
        let folder = scratch.path().join("kept");
        let cache = BootCache::in_folder(&folder).expect("a boot");
        let read = || cache.read("fact", Duration::MAX);
        assert_eq!(read(), None);
        cache.keep("fact", b"first").expect("kept");
        cache.keep("fact", b"second").expect("kept again");
        assert_eq!(read().as_deref(), Some(&b"second"[..]));
        assert_eq!(cache.read("fact", Duration::ZERO), None);
        let other_boot = BootCache { folder: folder.clone(), key: "another boot\n".to_owned() };
        assert_eq!(other_boot.read("fact", Duration::MAX), None);

        let file = folder.join("fact");
        let set = |path: &Path, mode| set_permissions(path, Permissions::from_mode(mode)).expect("mode");
        for path in [&file, &folder] {
            let before = std::fs::metadata(path).expect("there").mode();
            set(path, 0o722);
            assert_eq!(read(), None);
            set(path, before);
            assert!(read().is_some());
        }
        std::os::unix::fs::symlink(&file, folder.join("link")).expect("link");
        assert_eq!(cache.read("link", Duration::MAX), None);
        let whole = std::fs::read(&file).expect("whole");
        for cut in 0..whole.len() {
            write(&file, &whole[..cut]).expect("cut");
            assert_eq!(read(), None, "{cut} bytes");
        }
        let mut changed = whole;
        *changed.last_mut().expect("bytes") ^= 1;
        write(&file, changed).expect("changed");
        assert_eq!(read(), None);
    }
}
