//! A debuginfod client: fetches debug files and binaries by build-id, with curl. The cache folder is the one that other
//! tools use, too.
//!
//! curl knows the machine's proxies and certificates, and keeps a server's data out of this process. No server is asked
//! while a program is recorded. The build-id of each fetched file is checked, as for any other debug file.

use crate::{BuildId, Fetch};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Size of the largest file that is fetched, in bytes.
const MOST_BYTES: u64 = 8 << 30;
/// Shortest time between two reports of progress.
const SAY_EVERY: Duration = Duration::from_millis(500);
/// Time between two checks of a download.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Gets the progress of a download: the file's name, and the number of bytes so far.
pub type Progress = dyn Fn(&str, u64) + Send + Sync;

/// Which servers are asked, and where files are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Addresses of servers, in the order in which they are asked.
    pub servers: Vec<String>,
    /// Folder in which files are stored.
    pub cache: PathBuf,
    /// Longest time for one file.
    pub timeout: Duration,
}

impl Settings {
    /// Reads the settings from `DEBUGINFOD_URLS`, `DEBUGINFOD_CACHE_PATH` (else `XDG_CACHE_HOME` or `HOME`) and
    /// `DEBUGINFOD_TIMEOUT` (seconds, 90 by default), as elfutils' client does. `Err`: the name of the missing
    /// variable.
    pub fn from(variable: impl Fn(&str) -> Option<OsString>) -> Result<Settings, &'static str> {
        let text = |name: &str| variable(name).and_then(|value| value.into_string().ok());
        let urls = text("DEBUGINFOD_URLS").unwrap_or_default();
        let is_web = |url: &&str| url.starts_with("http://") || url.starts_with("https://");
        let servers: Vec<String> =
            urls.split_whitespace().filter(is_web).map(|url| url.trim_end_matches('/').to_owned()).collect();
        if servers.is_empty() {
            return Err("DEBUGINFOD_URLS names no server");
        }
        let folder = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let cache = folder("DEBUGINFOD_CACHE_PATH")
            .or_else(|| Some(folder("XDG_CACHE_HOME")?.join("debuginfod_client")))
            .or_else(|| Some(folder("HOME")?.join(".cache/debuginfod_client")))
            .ok_or("there is no home folder to keep files in: set DEBUGINFOD_CACHE_PATH")?;
        let seconds = text("DEBUGINFOD_TIMEOUT").and_then(|text| text.trim().parse().ok());
        let timeout = Duration::from_secs(seconds.filter(|&seconds| seconds > 0).unwrap_or(90));
        Ok(Settings { servers, cache, timeout })
    }
}

/// Why a file was not downloaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// No server has the file.
    #[error("no debuginfod server has the file")]
    Unknown,
    /// A server gave an answer that is neither the file nor “not found”.
    #[error("{server}: {what}")]
    Server {
        /// Address of the server.
        server: String,
        /// What happened.
        what: String,
    },
    /// The file cannot be written to the cache.
    #[error("the cache cannot be written: {0}")]
    Cache(String),
}

/// Asks servers for files.
pub struct Client {
    settings: Settings,
    progress: Box<Progress>,
    /// The requests that failed, so that each request is made only once.
    failed: Mutex<HashMap<(String, &'static str), FetchError>>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Client {
    /// A client that calls `progress` during downloads.
    pub fn new(settings: Settings, progress: Box<Progress>) -> Client {
        Client { settings, progress, failed: Mutex::default() }
    }

    /// Fetches the binary with this build-id, and returns its path.
    pub fn executable(&self, id: &str) -> Result<PathBuf, FetchError> {
        self.get(id, "executable")
    }

    /// Why the debug file with this build-id was not downloaded; `None` if it was never requested.
    pub fn why_not(&self, id: Option<&str>) -> Option<FetchError> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.get(&(id?.to_owned(), "debuginfo")).cloned()
    }

    fn get(&self, id: &str, kind: &'static str) -> Result<PathBuf, FetchError> {
        // Only hexadecimal digits may become a part of a path or an address.
        let id = BuildId::try_from(id.to_owned()).map_err(|_| FetchError::Unknown)?.to_string();
        let place = self.settings.cache.join(&id).join(kind);
        // For a build-id that no server has, other clients leave an empty file in the cache.
        if std::fs::metadata(&place).is_ok_and(|found| found.is_file() && found.len() > 0) {
            return Ok(place);
        }
        let key = (id.clone(), kind);
        if let Some(error) = self.failed.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Err(error.clone());
        }
        let mut last = FetchError::Unknown;
        for server in &self.settings.servers {
            match self.fetch(server, &id, kind, &place) {
                Ok(()) => return Ok(place),
                Err(FetchError::Unknown) => {}
                Err(error) => last = error,
            }
        }
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).insert(key, last.clone());
        Err(last)
    }

    fn fetch(&self, server: &str, id: &str, kind: &str, place: &Path) -> Result<(), FetchError> {
        let failed = |what: String| FetchError::Server { server: server.to_owned(), what };
        let folder = place.parent().unwrap_or(&self.settings.cache);
        let cache = |error: io::Error| FetchError::Cache(error.to_string());
        std::fs::create_dir_all(folder).map_err(cache)?;
        // The download goes into a temporary file, so that other processes see the file under its name only when it is
        // complete.
        let file = tempfile::NamedTempFile::new_in(folder).map_err(cache)?;
        let out = file.as_file().try_clone().map_err(cache)?;
        let mut curl = match self.curl(&format!("{server}/buildid/{id}/{kind}"), out).spawn() {
            Ok(curl) => Running(curl),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(failed("longpole needs curl for it, and curl is not installed".to_owned()));
            }
            Err(error) => return Err(failed(format!("curl: {error}"))),
        };
        let what = format!("{kind} {}", id.get(..12).unwrap_or(id));
        let mut said = Instant::now();
        let bytes = || file.as_file().metadata().map_or(0, |file| file.len());
        let status = loop {
            match curl.0.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) => std::thread::sleep(LOOK_EVERY),
                Err(error) => return Err(failed(format!("curl: {error}"))),
            }
            if bytes() > MOST_BYTES {
                return Err(failed(format!("its answer is larger than {MOST_BYTES} bytes")));
            }
            if said.elapsed() >= SAY_EVERY {
                said = Instant::now();
                (self.progress)(&what, bytes());
            }
        };
        let words = curl.words();
        match words.lines().last().unwrap_or_default() {
            "404" => return Err(FetchError::Unknown),
            "200" if status.success() && (1..=MOST_BYTES).contains(&bytes()) => {}
            number => return Err(failed(reason(&words, number))),
        }
        (self.progress)(&what, bytes());
        file.persist(place).map_err(|error| cache(error.error))?;
        Ok(())
    }

    /// The command that fetches `url` into the open file. The command gets the open file and not its name, which could
    /// lead to another file by now. curl writes messages to standard error and, as the last line, the status of the
    /// answer.
    fn curl(&self, url: &str, to: File) -> Command {
        let seconds = |time: Duration| time.as_secs().max(1).to_string();
        let mut curl = Command::new("curl");
        // `--disable` ignores the user's curl configuration, which could change where curl writes.
        curl.args(["--disable", "--globoff", "--fail", "--silent", "--show-error"]);
        curl.args(["--location", "--max-redirs", "5", "--proto", "=http,https"]);
        curl.args(["--connect-timeout", &seconds(self.settings.timeout.min(Duration::from_secs(10)))]);
        curl.args(["--max-time", &seconds(self.settings.timeout)]);
        curl.args(["--user-agent", concat!("longpole/", env!("CARGO_PKG_VERSION"))]);
        curl.args(["--write-out", "%{stderr}\n%{http_code}", "--url", url]);
        curl.stdin(Stdio::null()).stdout(to).stderr(Stdio::piped());
        curl
    }
}

/// A curl process that is ended when this value is dropped.
struct Running(Child);

impl Running {
    /// The standard error of the process, at most 4,096 bytes. Called after the process has ended.
    fn words(&mut self) -> String {
        let mut text = Vec::new();
        if let Some(stream) = self.0.stderr.take() {
            // If reading fails, the text is incomplete.
            let _ = stream.take(4096).read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // An error here means that the process has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Why a request failed: curl's message without curl's name, or the status of the answer if there is no message.
fn reason(words: &str, number: &str) -> String {
    let Some(line) = words.lines().find_map(|line| line.strip_prefix("curl: ")) else {
        return format!("it answers {number} without a file");
    };
    line.split_once(") ")
        .filter(|(code, _)| code.starts_with('('))
        .map_or(line, |(_, words)| words)
        .to_owned()
}

impl Fetch for Client {
    fn debug_file(&self, id: &BuildId) -> Option<(File, PathBuf)> {
        let path = self.get(&id.to_string(), "debuginfo").ok()?;
        Some((File::open(&path).ok()?, path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debuginfod_settings_are_read_as_other_clients_do() {
        let of = |all: &[(&str, &str)]| {
            let all: HashMap<String, OsString> =
                all.iter().map(|(name, value)| ((*name).to_owned(), OsString::from(value))).collect();
            Settings::from(|name| all.get(name).cloned())
        };
        let settings = of(&[
            ("DEBUGINFOD_URLS", "https://a.example/ ftp://no http://b.example:80"),
            ("HOME", "/home/me"),
            ("DEBUGINFOD_TIMEOUT", "5"),
        ])
        .expect("settings");
        assert_eq!(settings.servers, ["https://a.example", "http://b.example:80"]);
        assert_eq!(settings.cache, Path::new("/home/me/.cache/debuginfod_client"));
        assert_eq!(settings.timeout, Duration::from_secs(5));
        assert!(of(&[("HOME", "/home/me")]).is_err());
        assert!(of(&[("DEBUGINFOD_URLS", "http://a")]).is_err());
    }
}
