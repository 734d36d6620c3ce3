//! A virtual machine consists of qemu, and of virtiofsd, which lets the machine read the host's files. Both end when
//! this value is dropped.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How the instructions of the machine are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accelerator {
    /// The processor executes them.
    Kvm,
    /// qemu translates them.
    Tcg,
}

impl Accelerator {
    /// The accelerator's name for qemu.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kvm => "KVM",
            Self::Tcg => "TCG",
        }
    }

    fn words(self) -> [&'static str; 4] {
        match self {
            // This feature needs a model-specific register that some hosts refuse to read.
            Self::Kvm => ["-accel", "kvm", "-cpu", "host,-arch-capabilities"],
            // If all CPUs shared one thread, each CPU would stand still for 100 ms again and again.
            Self::Tcg => ["-accel", "tcg,thread=multi", "-cpu", "max"],
        }
    }

    /// The longest time until the script runs in the machine. If the host's KVM has to emulate much, booting takes
    /// minutes.
    pub fn boot_limit(self) -> Duration {
        Duration::from_secs(match self {
            Self::Kvm => 30,
            Self::Tcg => 180,
        })
    }
}

/// Where virtiofsd is installed: as a part of qemu until 7.2, later as a package of its own.
const VIRTIOFSD: [&str; 2] = ["/usr/libexec/virtiofsd", "/usr/lib/qemu/virtiofsd"];
const MEMORY_MB: u32 = 3072;
const CPUS: u32 = 2;

/// The files from which a machine starts.
pub struct Boot<'a> {
    /// The compressed kernel.
    pub image: &'a Path,
    /// The initial memory file system.
    pub initramfs: &'a Path,
    /// The folder for sockets and output.
    pub folder: &'a Path,
}

/// A running machine.
pub struct Machine {
    qemu: Child,
    files: Child,
    report: PathBuf,
    console: PathBuf,
    /// Number of bytes of the report that `lines` has returned.
    read: usize,
}

impl Machine {
    /// Starts a machine.
    ///
    /// # Errors
    /// qemu or virtiofsd is not installed.
    pub fn start(boot: &Boot<'_>, accelerator: Accelerator) -> Result<Self> {
        let socket = boot.folder.join("files.socket");
        let files = share_root(&socket, &boot.folder.join("files.log"))?;
        let [report, console] = ["report", "console"].map(|name| boot.folder.join(name));
        for file in [&report, &console] {
            fs::write(file, "")?;
        }
        let mut qemu = Command::new("nice");
        qemu.args(["-n", "10", "qemu-system-x86_64"]).args(accelerator.words());
        qemu.args(["-nodefaults", "-no-reboot", "-display", "none", "-smp"]).arg(CPUS.to_string());
        qemu.arg("-m").arg(format!("{MEMORY_MB}M"));
        qemu.arg("-object").arg(format!("memory-backend-memfd,id=memory,size={MEMORY_MB}M,share=on"));
        qemu.args(["-numa", "node,memdev=memory"]);
        qemu.arg("-chardev").arg(format!("socket,id=files,path={}", socket.display()));
        qemu.args(["-device", "vhost-user-fs-pci,chardev=files,tag=root"]);
        for file in [&console, &report] {
            qemu.arg("-serial").arg(format!("file:{}", file.display()));
        }
        qemu.arg("-kernel").arg(boot.image).arg("-initrd").arg(boot.initramfs);
        qemu.args(["-append", "console=ttyS0 rdinit=/init panic=-1 edd=off quiet"]);
        let log = File::create(boot.folder.join("qemu.log"))?;
        let qemu = qemu.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn();
        match qemu {
            Ok(qemu) => Ok(Self { qemu, files, report, console, read: 0 }),
            Err(error) => {
                end(files);
                Err(error).context("cannot start qemu-system-x86_64")
            }
        }
    }

    /// The complete lines that the machine has reported since the last call. `None` if the machine has ended and there
    /// are no more lines.
    ///
    /// # Errors
    /// The report cannot be read.
    pub fn lines(&mut self) -> Result<Option<Vec<String>>> {
        // This check comes first: what the machine writes before its end is then read below.
        let has_ended = self.qemu.try_wait()?.is_some();
        let bytes = fs::read(&self.report)?;
        let new = bytes.get(self.read..).unwrap_or_default();
        let length = new.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.read += length;
        let lines: Vec<String> =
            String::from_utf8_lossy(&new[..length]).lines().map(|line| line.trim_end().to_owned()).collect();
        Ok((!has_ended || !lines.is_empty()).then_some(lines))
    }

    /// The last lines of the kernel's messages.
    pub fn last_messages(&self) -> String {
        let text = fs::read(&self.console).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(12)..].join("\n")
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        for child in [&mut self.qemu, &mut self.files] {
            // If the process has already ended, there is nothing to do.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Starts the process that makes the host's root folder available to one machine, and waits for its socket.
fn share_root(socket: &Path, log: &Path) -> Result<Child> {
    let program = VIRTIOFSD.iter().find(|path| Path::new(path).exists());
    let program = program.context("there is no virtiofsd: apt install qemu-system-x86 or virtiofsd")?;
    if socket.exists() {
        fs::remove_file(socket).with_context(|| socket.display().to_string())?;
    }
    let log_file = File::create(log)?;
    let mut files = Command::new(program)
        .arg(format!("--socket-path={}", socket.display()))
        .args(["-o", "source=/", "-o", "cache=always", "-o", "sandbox=chroot"])
        .stdin(Stdio::null())
        .stdout(log_file.try_clone()?)
        .stderr(log_file)
        .spawn()
        .with_context(|| format!("cannot start {program}"))?;
    let end_of_patience = Instant::now() + Duration::from_secs(10);
    while !socket.exists() {
        if files.try_wait()?.is_some() || Instant::now() > end_of_patience {
            end(files);
            bail!("{program} shares no files, see {}", log.display());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(files)
}

fn end(mut child: Child) {
    // If the process has already ended, there is nothing to do.
    let _ = child.kill();
    let _ = child.wait();
}
