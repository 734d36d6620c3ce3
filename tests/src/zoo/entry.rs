//! The description of a program of the zoo.

use std::path::Path;

/// A program of the zoo.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The program's name, in one word without blanks.
    pub name: &'static str,
    /// The language and library with which the program is made.
    pub made_with: &'static str,
    /// Where the program comes from.
    pub source: Source,
    /// The command line: variables for the environment, then words. `PROGRAM` is replaced by the built program, and `N`
    /// by the amount of work. `FILES` is replaced by as many names of the data file. `WORK` is replaced by the folder
    /// with input files, in which the program may write.
    pub line: &'static str,
    /// Amount of work: about two seconds on two CPUs.
    pub size: u32,
    /// Factor for `size` if longpole attaches to the program; 0: longpole does not attach to it.
    pub longer: u32,
    /// Options of `longpole record`.
    pub record: &'static [&'static str],
    /// A shell script that sends work to the program and ends it. Without a script the program ends by itself.
    pub client: Option<&'static str>,
    /// Whether the program writes the same output in each run.
    pub repeatable: bool,
    /// What must be true of longpole's answers.
    pub truth: Truth,
}

/// What is known to be true of a program. An empty list means that nothing is known and nothing is judged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Truth {
    /// Parts of names of functions and locks. A function or lock with such a name must lead on two CPUs.
    pub leads: &'static [&'static str],
    /// Kinds of limits, as JSON names them; `lock` may have a lock's name, and `support_work` its object. The first row
    /// must be of one of these kinds.
    pub limited_by: &'static [&'static str],
    /// Kinds of limits that must be neither in the first row nor in a row with a large gain.
    pub never: &'static [&'static str],
}

/// Where a program comes from.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// A file or crate of tests/workloads.
    Built(&'static str),
    /// Names of programs, each with the Debian package that contains it.
    Installed(&'static [(&'static str, &'static str)]),
}

/// How a program is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// longpole starts the program: `longpole record -- COMMAND`.
    Launched,
    /// longpole attaches to the running program for a part of its life: `longpole record -p PID`.
    Attached,
}

impl Entry {
    /// Describes a program with a source in tests/workloads. The program ends by itself.
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

    /// Describes a program from Debian packages.
    pub const fn installed(
        name: &'static str,
        needed: &'static [(&'static str, &'static str)],
        line: &'static str,
        size: u32,
    ) -> Entry {
        Entry { source: Source::Installed(needed), ..Entry::built(name, "as packaged", "", line, size) }
    }

    /// Sets the names of functions and locks that may lead.
    pub const fn led_by(self, leads: &'static [&'static str]) -> Entry {
        Entry { truth: Truth { leads, ..self.truth }, ..self }
    }

    /// Sets the kinds of what limits the program. As measured, the program is at least a fifth faster without such a
    /// limit.
    pub const fn limited_by(self, limited_by: &'static [&'static str]) -> Entry {
        Entry { truth: Truth { limited_by, ..self.truth }, ..self }
    }

    /// Sets kinds of limits that the program does not have although it seems to have them.
    pub const fn never(self, never: &'static [&'static str]) -> Entry {
        Entry { truth: Truth { never, ..self.truth }, ..self }
    }

    /// Amount of work for a way of recording. A launched program gets half as much again, about three seconds, so that
    /// costs at the start weigh less. If no times are asked for, it gets two thirds of that.
    fn size_in(&self, mode: Mode, timed: bool) -> u32 {
        match (mode, timed) {
            (Mode::Launched, true) => self.size + self.size / 2,
            (Mode::Launched, false) => self.size,
            (Mode::Attached, true) => self.size * self.longer,
            (Mode::Attached, false) => self.size * self.longer * 2 / 3,
        }
    }

    /// The environment and the words of the program's command.
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

    /// The client's script, in which the folder and the amount of work are filled in.
    pub fn script(&self, mode: Mode, timed: bool, work: &Path) -> Option<String> {
        let size = self.size_in(mode, timed);
        self.client.map(|script| placed(script, work).replace(" N ", &format!(" {size} ")))
    }
}

fn placed(text: &str, work: &Path) -> String {
    text.replace("WORK", &work.display().to_string())
}

/// Whether the word is `NAME=value` with a name in capital letters. No option is written in this way.
fn is_variable(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
}

/// Why the program is not on this machine, and what to install for it.
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
