//! Reads README.md and docs/: the commands in them, and the screens that they show.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::data_folder;
use crate::longpole::binary;

/// A Markdown page: README.md or one under docs/.
pub struct Document {
    /// The page's path.
    pub path: PathBuf,
    /// The page's text.
    pub text: String,
}

/// A picture of the terminal in a document. In the text it is `<!-- screen: COMMAND -->`, followed by a block.
#[derive(Debug, PartialEq, Eq)]
pub struct Screen<'a> {
    /// The command that prints the screen.
    pub command: &'a str,
    /// The output, as the document shows it.
    pub shown: &'a str,
}

const MARK: &str = "<!-- screen: ";
const FENCE: &str = "```";

/// README.md and all pages under docs/.
pub fn documents() -> Vec<Document> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let pages =
        std::fs::read_dir(root.join("docs")).expect("docs/").map(|entry| entry.expect("a page").path());
    let mut paths: Vec<PathBuf> =
        pages.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    paths.sort();
    paths.insert(0, root.join("README.md"));
    let read = |path: PathBuf| {
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Document { path, text }
    };
    paths.into_iter().map(read).collect()
}

impl Document {
    /// The page's screens, in order.
    pub fn screens(&self) -> Vec<Screen<'_>> {
        self.text
            .split(MARK)
            .skip(1)
            .map(|part| Screen::of(part).expect("a screen: COMMAND -->, then ```text"))
            .collect()
    }

    /// The page's text, with each screen's output replaced by what `shown` returns for its command.
    pub fn with_screens(&self, mut shown: impl FnMut(&str) -> String) -> String {
        let mut parts = self.text.split(MARK);
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let screen = Screen::of(part).expect("a screen");
            let (before, after) =
                part.split_once(&format!("{FENCE}text\n{}{FENCE}", screen.shown)).expect("it is there");
            text += &format!("{MARK}{before}{FENCE}text\n{}{FENCE}{after}", shown(screen.command));
        }
        text
    }

    /// Lines of the page's shell blocks, and its inline code, that begin with these words. Comments are removed.
    pub fn commands(&self, beginning: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut block: Option<&str> = None;
        for line in self.text.lines() {
            match (block, line.strip_prefix(FENCE)) {
                (None, Some(language)) => block = Some(language),
                (Some(_), Some(_)) => block = None,
                (Some("sh"), None) => found.push(line.split("  #").next().unwrap_or(line)),
                (None, None) => {
                    found.extend(line.split('`').skip(1).step_by(2).filter(|code| code.contains(".lp")))
                }
                (Some(_), None) => {}
            }
        }
        found
            .into_iter()
            .map(str::trim)
            .filter(|line| line.starts_with(beginning))
            .map(String::from)
            .collect()
    }
}

impl<'a> Screen<'a> {
    fn of(part: &'a str) -> Option<Screen<'a>> {
        let (command, rest) = part.split_once(" -->\n")?;
        let (shown, _) = rest.strip_prefix(&format!("{FENCE}text\n"))?.split_once(FENCE)?;
        Some(Screen { command, shown })
    }
}

/// A folder with the recordings that the documents use. The documents' commands run in it.
pub struct Desk(TempDir);

impl Desk {
    /// Makes a folder with copies of `tests/data/recordings`.
    pub fn new() -> Desk {
        let desk = TempDir::new().expect("a folder");
        for entry in std::fs::read_dir(data_folder().join("recordings")).expect("recordings") {
            let path = entry.expect("a recording").path();
            std::fs::copy(&path, desk.path().join(path.file_name().expect("a name"))).expect("copied");
        }
        Desk(desk)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// A command that runs this line of shell in the folder. `longpole` is on the path, and the terminal has 80
    /// columns.
    pub fn command(&self, line: &str) -> Command {
        let folder = binary().parent().map(Path::to_owned).unwrap_or_default();
        let others = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(std::iter::once(folder).chain(std::env::split_paths(&others)))
            .expect("a path");
        let mut shell = Command::new("sh");
        shell.current_dir(self.path()).args(["-c", line]);
        shell
            .env("PATH", path)
            .env("COLUMNS", "80")
            .env("NO_COLOR", "1")
            .env_remove("LONGPOLE_LOG")
            // No command may open a window.
            .env_remove("DISPLAY")
            .env_remove("WAYLAND_DISPLAY")
            .env_remove("SUDO_UID");
        shell
    }
}

impl Default for Desk {
    fn default() -> Self {
        Desk::new()
    }
}

#[cfg(test)]
mod tests {
    use super::{Document, Screen};

    const PAGE: &str = "Run `longpole report a.lp` or `top`.\n\n```sh\nlongpole info a.lp    # says much\nsudo longpole top\n```\n\n\
<!-- screen: longpole report a.lp -->\n```text\nold\n```\nEnd.\n";

    fn page() -> Document {
        Document { path: "page.md".into(), text: PAGE.into() }
    }

    #[test]
    fn commands_of_a_document_are_those_of_shell_blocks_and_inline_code() {
        assert_eq!(page().commands("longpole "), ["longpole report a.lp", "longpole info a.lp"]);
        assert_eq!(page().commands("sudo longpole "), ["sudo longpole top"]);
    }

    #[test]
    fn replacing_a_screen_changes_nothing_else_in_the_document() {
        assert_eq!(page().screens(), [Screen { command: "longpole report a.lp", shown: "old\n" }]);
        let replaced = page().with_screens(|command| format!("{command}!\n"));
        assert_eq!(replaced, PAGE.replace("old\n", "longpole report a.lp!\n"));
    }
}
