//! What the zoo knows about a program.

use std::path::Path;

/// A program of the zoo.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What it is called, in one word without blanks.
    pub name: &'static str,
    /// What it is written with.
    pub made_with: &'static str,
    /// Where it comes from.
    pub source: Source,
    /// The command: variables of its environment, then its words. `PROGRAM` stands for the built program, `N` for the amount
    /// of work, `FILES` for the data file that many times. `WORK` is the folder with input, in which the program may write.
    pub line: &'static str,
    /// Amount of work: two seconds or so on two CPUs.
    pub size: u32,
    /// Factor for `size` while longpole attaches; 0: longpole does not attach to it.
    pub longer: u32,
    /// Options of `longpole record`.
    pub record: &'static [&'static str],
    /// A shell script that drives the program and ends it; without one the program ends by itself.
    pub client: Option<&'static str>,
    /// Whether it writes the same output each time.
    pub repeatable: bool,
    /// What must be true of longpole's answers.
    pub truth: Truth,
}

/// What is known to be true of a program. An empty list: not known, and not judged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Truth {
    /// Parts of names of functions and locks; one of them must lead on two CPUs.
    pub leads: &'static [&'static str],
    /// Kinds of limits, as JSON names them, `lock` also with its name and `support_work` with its object; one is the first row.
    pub limited_by: &'static [&'static str],
    /// Kinds of limits that are neither the first row nor a large one.
    pub never: &'static [&'static str],
}

/// Where a program comes from.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// A file or a crate in tests/workloads.
    Built(&'static str),
    /// Programs, each with the Debian package that it comes in.
    Installed(&'static [(&'static str, &'static str)]),
}

/// How a program is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// By `longpole record -- COMMAND`.
    Launched,
    /// By `longpole record -p PID` for a part of its life.
    Attached,
}

impl Entry {
    /// A program with a source in tests/workloads that ends by itself.
    pub const fn built(
        name: &'static str,
        made_with: &'static str,
        source: &'static str,
        line: &'static str,
        size: u32,
    ) -> Entry {
        Entry {
            name,
            made_with,
            source: Source::Built(source),
            line,
            size,
            longer: 3,
            record: &[],
            client: None,
            repeatable: true,
            truth: Truth { leads: &[], limited_by: &[], never: &[] },
        }
    }

    /// A program from Debian packages.
    pub const fn installed(
        name: &'static str,
        needed: &'static [(&'static str, &'static str)],
        line: &'static str,
        size: u32,
    ) -> Entry {
        Entry { source: Source::Installed(needed), ..Entry::built(name, "as packaged", "", line, size) }
    }

    /// Sets the names that lead.
    pub const fn led_by(self, leads: &'static [&'static str]) -> Entry {
        Entry { truth: Truth { leads, ..self.truth }, ..self }
    }

    /// Sets what limits the program: measured, it is at least a fifth faster without that limit.
    pub const fn limited_by(self, limited_by: &'static [&'static str]) -> Entry {
        Entry { truth: Truth { limited_by, ..self.truth }, ..self }
    }

    /// Sets limits that the program does not have, though it looks as if it did.
    pub const fn never(self, never: &'static [&'static str]) -> Entry {
        Entry { truth: Truth { never, ..self.truth }, ..self }
    }

    /// Amount of work: launched, half as much again, some three seconds, so that costs at the start weigh less. Where no times
    /// are asked for, two thirds of it.
    fn size_in(&self, mode: Mode, timed: bool) -> u32 {
        match (mode, timed) {
            (Mode::Launched, true) => self.size + self.size / 2,
            (Mode::Launched, false) => self.size,
            (Mode::Attached, true) => self.size * self.longer,
            (Mode::Attached, false) => self.size * self.longer * 2 / 3,
        }
    }

    /// The environment and the words of its command.
    pub fn words(&self, mode: Mode, timed: bool, program: &str, work: &Path) -> (String, String) {
        let size = self.size_in(mode, timed);
        let data = format!("{}/data ", work.display());
        let word = |word: &str| match word {
            "PROGRAM" => program.to_owned(),
            "N" => size.to_string(),
            "FILES" => data.repeat(size as usize).trim_end().to_owned(),
            word => placed(word, work),
        };
        let (variables, words): (Vec<&str>, Vec<&str>) =
            self.line.split(' ').partition(|word| is_variable(word));
        let join = |words: Vec<&str>| words.into_iter().map(word).collect::<Vec<_>>().join(" ");
        (join(variables), join(words))
    }

    /// The client's script, with the folder and the amount of work filled in.
    pub fn script(&self, mode: Mode, timed: bool, work: &Path) -> Option<String> {
        let size = self.size_in(mode, timed);
        self.client.map(|script| placed(script, work).replace(" N ", &format!(" {size} ")))
    }
}

fn placed(text: &str, work: &Path) -> String {
    text.replace("WORK", &work.display().to_string())
}

/// Whether the word is `NAME=value` with a name in capital letters, as no option is written.
fn is_variable(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
}

/// Why there is no such program here, and what to install for it.
pub fn missing(entry: &Entry) -> Option<String> {
    let needed: &[(&str, &str)] = match entry.source {
        Source::Installed(needed) => needed,
        Source::Built(source) if source.ends_with(".go") => &[("go", "golang-go")],
        Source::Built(source) if source.ends_with(".java") => &[("javac", "default-jdk-headless")],
        Source::Built(source) if source.ends_with(".js") => &[("node", "nodejs")],
        Source::Built(source) if source.ends_with(".py") => &[("python3", "python3")],
        Source::Built(_) => &[],
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_here = |program: &str| std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    let absent = needed.iter().find(|(program, _)| !is_here(program));
    absent.map(|(program, package)| format!("no {program} here: `apt-get install {package}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_of_a_zoo_command_are_filled_in() {
        let entry = Entry::built("a", "C", "a.c", "OMP_NUM_THREADS=2 PROGRAM N FILES --in=WORK/x -N", 2);
        let work = Path::new("/w");
        let (variables, words) = entry.words(Mode::Launched, true, "/p", work);
        assert_eq!(variables, "OMP_NUM_THREADS=2");
        assert_eq!(words, "/p 3 /w/data /w/data /w/data --in=/w/x -N");
        assert!(entry.words(Mode::Attached, true, "/p", work).1.starts_with("/p 6 /w/data"));
    }

    #[test]
    fn an_entry_s_truth_keeps_leads_limits_and_never() {
        let truth =
            Entry::built("a", "C", "a.c", "PROGRAM", 1).led_by(&["f"]).limited_by(&["lock"]).never(&["work"]);
        let Truth { leads, limited_by, never } = truth.truth;
        assert_eq!((leads, limited_by, never), (&["f"][..], &["lock"][..], &["work"][..]));
    }
}
