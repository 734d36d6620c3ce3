//! Finds, checks and downloads Debian's kernels with apt, which gets its own sources and folders here, and unpacks them
//! into a cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command;

/// The keys of Debian's archive, from the package debian-archive-keyring.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// The package that always depends on the newest kernel of a release.
const NEWEST: &str = "linux-image-cloud-amd64";

/// A series of kernels that `./x vm` knows.
pub struct Series {
    /// Name of the series, as in `--kernel`.
    pub name: &'static str,
    release: &'static str,
    has_security: bool,
}

/// All series, the oldest first.
pub const SERIES: [Series; 3] = [
    Series { name: "6.1", release: "bookworm", has_security: true },
    Series { name: "6.12", release: "trixie", has_security: true },
    Series { name: "newest", release: "sid", has_security: false },
];

/// An unpacked kernel.
pub struct Kernel {
    /// Release of the kernel, as `uname -r` shows it.
    pub release: String,
    /// The compressed kernel.
    pub image: PathBuf,
    /// The folder with the kernel's modules.
    pub modules: PathBuf,
}

impl Series {
    /// The kernel from the cache, or downloaded. With `update`, downloads the newest kernel of the release even if the
    /// cache has one.
    ///
    /// # Errors
    /// There is no apt, no network, or a package is not signed by Debian.
    pub fn provide(&self, cache: &Path, update: bool) -> Result<Kernel> {
        let folder = cache.join(self.name);
        let root = folder.join("root");
        if !update && let Ok(kernel) = self.unpacked(&root) {
            return Ok(kernel);
        }
        println!("downloading Debian's kernel {}", self.name);
        let apt = Apt::new(&folder, self)?;
        let packages = apt.kernel_packages()?;
        let archives = apt.download(&packages)?;
        if root.exists() {
            fs::remove_dir_all(&root).with_context(|| format!("cannot remove {}", root.display()))?;
        }
        for archive in &archives {
            command::must(Command::new("dpkg-deb").arg("-x").arg(archive).arg(&root), "dpkg-deb")?;
        }
        self.unpacked(&root)
    }

    fn unpacked(&self, root: &Path) -> Result<Kernel> {
        let all = [root.join("lib/modules"), root.join("usr/lib/modules")]
            .into_iter()
            .find(|folder| folder.is_dir())
            .context("the packages have no modules")?;
        let modules = fs::read_dir(&all)?.next().context("the packages have no modules")??.path();
        let release =
            modules.file_name().and_then(|name| name.to_str()).context("no kernel release")?.to_owned();
        // Since Linux 7, the kernel's image is next to the modules.
        let image = [root.join(format!("boot/vmlinuz-{release}")), modules.join("vmlinuz")]
            .into_iter()
            .find(|file| file.is_file())
            .context("the packages have no kernel")?;
        Ok(Kernel { release, image, modules })
    }
}

/// An apt that knows only one release of Debian, independent of the host's own sources.
struct Apt {
    configuration: PathBuf,
    archives: PathBuf,
}

impl Apt {
    fn new(folder: &Path, series: &Series) -> Result<Self> {
        if !Path::new(KEYS).exists() {
            bail!("there is no {KEYS}: apt install debian-archive-keyring");
        }
        let (state, archives) = (folder.join("apt"), folder.join("archives"));
        fs::create_dir_all(state.join("lists/partial"))?;
        fs::create_dir_all(state.join("cache/archives/partial"))?;
        fs::create_dir_all(&archives)?;
        let release = series.release;
        let mut sources = format!("deb [signed-by={KEYS}] http://deb.debian.org/debian {release} main\n");
        if series.has_security {
            sources += &format!(
                "deb [signed-by={KEYS}] http://deb.debian.org/debian-security {release}-security main\n"
            );
        }
        let list = state.join("sources.list");
        fs::write(&list, sources)?;
        let (list, state) = (list.display(), state.display());
        let configuration = folder.join("apt.conf");
        // The host's list of installed packages is not used, so apt always downloads.
        let settings = format!(
            "Dir::Etc::sourcelist \"{list}\";\nDir::Etc::sourceparts \"-\";\nDir::State \"{state}\";\n\
             Dir::State::status \"/dev/null\";\nDir::Cache \"{state}/cache\";\nAPT::Architecture \"amd64\";\n\
             APT::Architectures {{\"amd64\";}};\nAcquire::Languages \"none\";\nAPT::Sandbox::User \"root\";\n"
        );
        fs::write(&configuration, settings)?;
        let apt = Self { configuration, archives };
        command::must(apt.command("apt-get").arg("update"), "apt-get update")?;
        Ok(apt)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("APT_CONFIG", &self.configuration).env("LC_ALL", "C");
        command
    }

    /// The packages that contain the kernel and its modules. Since Linux 7, the package of the image only depends on
    /// these two.
    fn kernel_packages(&self) -> Result<Vec<String>> {
        let image = self.dependencies(NEWEST)?.into_iter().find(|name| name.starts_with("linux-image-"));
        let image = image.with_context(|| format!("{NEWEST} depends on no kernel"))?;
        let parts = self
            .dependencies(&image)?
            .into_iter()
            .filter(|name| ["linux-binary-", "linux-modules-"].iter().any(|prefix| name.starts_with(prefix)));
        Ok(parts.chain([image.clone()]).collect())
    }

    fn dependencies(&self, package: &str) -> Result<Vec<String>> {
        let said = command::text(self.command("apt-cache").args(["depends", "--important", package]))?;
        Ok(said.lines().filter_map(|line| line.trim().strip_prefix("Depends: ")).map(str::to_owned).collect())
    }

    /// Downloads packages. apt compares their checksums with the signed list. Older archives are removed.
    fn download(&self, packages: &[String]) -> Result<Vec<PathBuf>> {
        fs::remove_dir_all(&self.archives)?;
        fs::create_dir_all(&self.archives)?;
        let mut download = self.command("apt-get");
        download.current_dir(&self.archives).arg("download").args(packages);
        command::must(&mut download, "apt-get download")?;
        let files = fs::read_dir(&self.archives)?.map(|entry| Ok(entry?.path()));
        files.collect()
    }
}
