//! Writes BENCHMARKS.md and VALIDATION.md. Each measurement replaces its own section and no other.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::command;
use crate::workspace::Workspace;

/// The file and the header of a page.
pub struct Kind {
    file: &'static str,
    head: &'static str,
}

/// The page with speed and overhead.
pub const BENCHMARKS: Kind = Kind {
    file: "BENCHMARKS.md",
    head: "# Benchmarks\n\nMeasured by `./x bench`, which replaces the sections below. Medians, with the smallest and \
largest\nmeasurement in brackets; what is compared was run in alternation on the same machine.\n",
};

/// The page that compares predictions with real runs.
pub const VALIDATION: Kind = Kind {
    file: "VALIDATION.md",
    head: "# Validation\n\nPredicted and measured, by `./x validate`, which replaces the sections below. Speed-ups are \
relative to one CPU.\nThe error is |measured − predicted| ÷ measured, as in the paper of 1999, section 5.1; measured is \
the middle of\nseveral runs, all numbers of CPUs in alternation.\n",
};

/// A page. The file is written after every section, so that a later failure loses nothing.
pub struct Page {
    path: PathBuf,
    text: String,
    machine: String,
}

impl Page {
    /// Reads the page, or begins a new one.
    ///
    /// # Errors
    ///
    /// The page exists but cannot be read.
    pub fn read(workspace: &Workspace, kind: &Kind) -> Result<Self> {
        let path = workspace.root.join(kind.file);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => kind.head.into(),
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        };
        Ok(Self { path, text, machine: machine() })
    }

    /// Prints a section, and replaces the page's section of the same name.
    ///
    /// # Errors
    /// The page cannot be written.
    pub fn put(&mut self, name: &str, section: &str) -> Result<()> {
        let section = format!("{}\n\n{}\n", section.trim_end(), self.machine);
        println!("{section}");
        self.text = replaced(&self.text, name, &section);
        std::fs::write(&self.path, &self.text).with_context(|| self.path.display().to_string())
    }
}

fn replaced(text: &str, name: &str, section: &str) -> String {
    let (start, end) = (format!("<!-- bench:{name} -->\n"), format!("<!-- end:{name} -->\n"));
    let new = format!("{start}{section}{end}");
    match (text.find(&start), text.find(&end)) {
        (Some(from), Some(to)) if from < to => format!("{}{new}{}", &text[..from], &text[to + end.len()..]),
        _ => format!("{}\n\n{new}", text.trim_end()),
    }
}

/// Date, processor, kernel and toolchain in one line.
fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model =
        cpuinfo.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown processor");
    let model = model.trim_start_matches(['\t', ' ', ':']);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease");
    let said = |command: &mut Command| command::text(command).unwrap_or_else(|_| "unknown".into());
    let date = said(Command::new("date").args(["-u", "+%Y-%m-%d"]));
    let rustc = said(Command::new("rustc").arg("--version"));
    format!("{date}; {cpus} CPUs of {model}; Linux {}; {rustc}.", kernel.trim())
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn a_section_of_a_page_is_replaced_where_it_is() {
        let page = replaced("# Head\n", "a", "old a\n");
        let page = replaced(&page, "b", "b\n") + "tail\n";
        let page = replaced(&page, "a", "new a\n");
        assert_eq!(
            page,
            "# Head\n\n<!-- bench:a -->\nnew a\n<!-- end:a -->\n\n<!-- bench:b -->\nb\n<!-- end:b -->\ntail\n"
        );
    }
}
