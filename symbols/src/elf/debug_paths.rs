//! Finds debug files in the folders that distributions and debuggers use. The search begins below the root folder of
//! the process that runs the binary, because a container has its own root. Then the search continues below longpole's
//! root folder.

use super::files::{Candidate, Fetch, FileRequest, Files};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The folder in which distributions install debug files.
const DEBUG_ROOT: &str = "/usr/lib/debug";

/// The place number of a fetched file. The number is larger than all others, because fetching is tried last.
const FETCHED: u32 = u32::MAX;

/// Opens debug files of one binary. Only regular ELF files are opened that everybody may read or that belong to the
/// binary's owner. Otherwise a binary could make root read files that the binary's owner may not read.
#[derive(Debug)]
pub struct HostFiles {
    /// Root folders below which debug files are searched.
    roots: Vec<OwnedFd>,
    /// The binary's path below each root.
    binary: PathBuf,
    owner: Option<u32>,
    /// Folders with debug files that the user named.
    folders: Vec<PathBuf>,
    fetch: Option<Arc<dyn Fetch>>,
}

impl HostFiles {
    /// Prepares the search for a binary at a path: an ordinary one, `/proc/PID/exe` or `/proc/PID/map_files/…`.
    pub fn of(binary: &Path) -> HostFiles {
        let mut roots = Vec::new();
        if let Some(process) = process_folder(binary) {
            roots.extend(open_root(&process.join("root")));
        }
        roots.extend(open_root(Path::new("/")));
        let is_link = std::fs::symlink_metadata(binary).is_ok_and(|found| found.is_symlink());
        let seen = if process_folder(binary).is_some() && is_link {
            std::fs::read_link(binary).ok()
        } else {
            std::fs::canonicalize(binary).ok()
        };
        let owner = std::fs::metadata(binary).ok().map(|metadata| metadata.uid());
        HostFiles {
            roots,
            binary: seen.map(without_deleted).unwrap_or_default(),
            owner,
            folders: Vec::new(),
            fetch: None,
        }
    }

    /// Prepares the search for a binary that no longer exists, by its former path.
    pub fn of_path(binary: &Path) -> HostFiles {
        let roots = open_root(Path::new("/")).into_iter().collect();
        HostFiles { roots, binary: binary.to_owned(), owner: None, folders: Vec::new(), fetch: None }
    }

    /// A search that opens no file.
    pub fn none() -> HostFiles {
        HostFiles { roots: Vec::new(), binary: PathBuf::new(), owner: None, folders: Vec::new(), fetch: None }
    }

    /// Adds folders that are searched first. The user chose these folders, so files in them may belong to anyone.
    #[must_use]
    pub fn with_folders(mut self, folders: &[PathBuf]) -> HostFiles {
        self.folders = folders.to_vec();
        self
    }

    /// Whether missing files are fetched from a server, which can take long.
    pub fn fetches(&self) -> bool {
        self.fetch.is_some()
    }

    /// Sets how to fetch files that are in none of the places.
    #[must_use]
    pub fn with_fetch(mut self, fetch: Option<Arc<dyn Fetch>>) -> HostFiles {
        self.fetch = fetch;
        self
    }

    /// The paths to try for a request, in order: in the user's folders, and below the root folders.
    fn places(&self, request: &FileRequest) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let beside = self.binary.parent().unwrap_or(Path::new("/"));
        let (mut own, mut below) = (Vec::new(), Vec::new());
        let mut in_folders = |path: &Path| own.extend(self.folders.iter().map(|folder| folder.join(path)));
        match request {
            FileRequest::BuildId(id) => {
                let hex = id.to_string();
                if let Some(path) = by_build_id(&hex) {
                    in_folders(&Path::new(".build-id").join(&path));
                    in_folders(&path);
                    below.push(Path::new(DEBUG_ROOT).join(".build-id").join(&path));
                }
                in_folders(&Path::new(&hex).join("debuginfo"));
            }
            FileRequest::DebugLink(name) => {
                let Some(name) = plain(name) else { return (own, below) };
                in_folders(Path::new(name));
                in_folders(&relative(beside).join(name));
                below.push(beside.join(name));
                below.push(beside.join(".debug").join(name));
                below.push(Path::new(DEBUG_ROOT).join(relative(beside)).join(name));
            }
            FileRequest::Supplement { path, build_id } => {
                let path = Path::new(path);
                if let Some(name) = path.file_name() {
                    in_folders(Path::new(name));
                    in_folders(&Path::new(".dwz").join(name));
                }
                if let Some(by_id) = build_id.as_ref().and_then(|id| by_build_id(&id.to_string())) {
                    in_folders(&Path::new(".build-id").join(&by_id));
                    below.push(Path::new(DEBUG_ROOT).join(".build-id").join(&by_id));
                }
                // The path is relative to the folder of the debug file. This folder is the binary's folder, or its copy
                // below the folder of debug files.
                below.push(beside.join(path));
                if path.is_relative() {
                    below.push(Path::new(DEBUG_ROOT).join(relative(beside)).join(path));
                    let build_ids = Path::new(DEBUG_ROOT).join(".build-id/xx");
                    below.push(build_ids.join(path));
                }
            }
            FileRequest::SplitObject { folder, name } => {
                let name = Path::new(name);
                let folder = folder.as_deref().map_or(Path::new("/"), Path::new);
                below.push(folder.join(name));
                if let Some(last) = name.file_name() {
                    in_folders(Path::new(last));
                    below.push(beside.join(last));
                }
                if name.is_relative() {
                    below.push(beside.join(name));
                }
            }
            FileRequest::SplitPackage => {
                let Some(name) = self.binary.file_name() else { return (own, below) };
                let mut package = name.to_owned();
                package.push(".dwp");
                in_folders(Path::new(&package));
                below.push(beside.join(&package));
                below.push(Path::new(DEBUG_ROOT).join(relative(beside)).join(&package));
                // A stripped program (`program.stripped`) may be next to the package of the original program
                // (`program.dwp`).
                if let Some(stem) = self.binary.file_stem().filter(|stem| *stem != name) {
                    let mut package = stem.to_owned();
                    package.push(".dwp");
                    below.push(beside.join(&package));
                }
            }
        }
        (own, below)
    }

    fn may_read(&self, file: &File) -> bool {
        let Ok(metadata) = file.metadata() else { return false };
        metadata.is_file() && (metadata.mode() & 0o004 != 0 || Some(metadata.uid()) == self.owner)
    }
}

impl Files for HostFiles {
    fn open(&mut self, request: &FileRequest, from: u32) -> Option<Candidate> {
        let (own, below) = self.places(request);
        let own = own.into_iter().map(|path| (None, path));
        let roots = &self.roots;
        let below =
            below.into_iter().flat_map(|path| roots.iter().map(move |root| (Some(root), path.clone())));
        for (number, (root, path)) in own.chain(below).enumerate().skip(from as usize) {
            let file = match root {
                None => open_plain(&path),
                Some(root) => open_below(root, &path).filter(|file| self.may_read(file)),
            };
            if let Some(file) = file.filter(is_elf) {
                let next = u32::try_from(number).ok()?.saturating_add(1);
                return Some(Candidate { file, path, next });
            }
        }
        let (FileRequest::BuildId(id) | FileRequest::Supplement { build_id: Some(id), .. }) = request else {
            return None;
        };
        if from == FETCHED {
            return None;
        }
        let (file, path) = self.fetch.as_ref()?.debug_file(id)?;
        is_elf(&file).then_some(Candidate { file, path, next: FETCHED })
    }
}

/// Path of a debug file in the folder of build-ids: `ab/cdef.debug`.
fn by_build_id(hex: &str) -> Option<PathBuf> {
    let (start, rest) = hex.split_at_checked(2).filter(|(_, rest)| !rest.is_empty())?;
    Some(Path::new(start).join(format!("{rest}.debug")))
}

/// The name, if it is a file name without a path.
fn plain(name: &str) -> Option<&str> {
    (!name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0'])).then_some(name)
}

fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

/// The part `/proc/PID` at the start of a path; `None` for other paths.
fn process_folder(path: &Path) -> Option<PathBuf> {
    let mut parts = path.components();
    let start = [Component::RootDir, Component::Normal("proc".as_ref())];
    if parts.by_ref().take(2).ne(start) {
        return None;
    }
    let Some(Component::Normal(pid)) = parts.next() else { return None };
    pid.to_str()?.parse::<u32>().ok()?;
    Some(Path::new("/proc").join(pid))
}

fn without_deleted(path: PathBuf) -> PathBuf {
    match path.to_str().and_then(|text| text.strip_suffix(" (deleted)")) {
        Some(text) => PathBuf::from(text),
        None => path,
    }
}

fn open_root(path: &Path) -> Option<OwnedFd> {
    openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()
}

const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Opens a regular file below a root folder. Symbolic links in the path cannot lead out of the root folder.
fn open_below(root: &OwnedFd, path: &Path) -> Option<File> {
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    // The file's type is checked before it is opened for reading, because opening a device may have an effect.
    let found = openat2(root, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve).ok()?;
    if !File::from(found).metadata().is_ok_and(|metadata| metadata.is_file()) {
        return None;
    }
    openat2(root, path, FLAGS, Mode::empty(), resolve).ok().map(File::from)
}

fn open_plain(path: &Path) -> Option<File> {
    if !std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        return None;
    }
    openat(CWD, path, FLAGS, Mode::empty()).ok().map(File::from)
}

fn is_elf(file: &File) -> bool {
    let mut start = [0u8; 4];
    file.read_exact_at(&mut start, 0).is_ok() && start == *b"\x7fELF"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BuildId;

    fn files(binary: &str) -> HostFiles {
        HostFiles::of_path(Path::new(binary)).with_folders(&[PathBuf::from("/my")])
    }

    #[test]
    fn debug_files_are_searched_in_the_usual_places() {
        let id = BuildId::try_from("abcdef01".to_owned()).expect("an id");
        let (own, below) = files("/opt/app/bin/tool").places(&FileRequest::BuildId(id));
        assert!(own.contains(&PathBuf::from("/my/.build-id/ab/cdef01.debug")));
        assert!(own.contains(&PathBuf::from("/my/abcdef01/debuginfo")));
        assert_eq!(below, [PathBuf::from("/usr/lib/debug/.build-id/ab/cdef01.debug")]);
        let (_, below) = files("/opt/app/bin/tool").places(&FileRequest::DebugLink("tool.debug".into()));
        let wanted = [
            "/opt/app/bin/tool.debug",
            "/opt/app/bin/.debug/tool.debug",
            "/usr/lib/debug/opt/app/bin/tool.debug",
        ];
        assert_eq!(below, wanted.map(PathBuf::from));
    }

    #[test]
    fn a_debug_link_with_a_path_names_no_file() {
        for name in ["", ".", "..", "../../etc/shadow", "/etc/shadow", "a/b", "a\0b"] {
            assert_eq!(
                files("/bin/x").places(&FileRequest::DebugLink(name.into())),
                (vec![], vec![]),
                "{name}"
            );
        }
    }

    #[test]
    fn debug_files_are_elf_files_below_the_root_only() {
        let folder = tempfile::tempdir().expect("folder");
        let root = open_root(folder.path()).expect("root");
        std::fs::write(folder.path().join("secret"), b"root:x:0").expect("written");
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link")).expect("linked");
        assert!(open_below(&root, Path::new("/link")).is_none(), "/etc/passwd is outside");
        assert!(open_below(&root, Path::new("/../../../etc/passwd")).is_none());
        assert!(open_below(&root, Path::new("/secret")).is_some_and(|file| !is_elf(&file)));
        let mut files = files("/bin/x");
        files.roots = vec![root];
        let request = FileRequest::SplitObject { folder: Some("/".into()), name: "secret".into() };
        assert!(files.open(&request, 0).is_none());
    }

    #[test]
    fn another_user_s_private_debug_file_is_not_read() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("private");
        std::fs::copy("/proc/self/exe", &path).expect("copied");
        let files = |owner| HostFiles { owner, ..HostFiles::of_path(Path::new("/bin/x")) };
        let mode = |mode| {
            let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::set_permissions(&path, permissions).expect("mode");
            File::open(&path).expect("open")
        };
        let private = mode(0o600);
        let uid = private.metadata().expect("metadata").uid();
        assert!(!files(Some(uid.wrapping_add(1))).may_read(&private));
        assert!(files(Some(uid)).may_read(&private));
        assert!(!files(None).may_read(&private));
        assert!(files(None).may_read(&mode(0o604)));
    }
}
