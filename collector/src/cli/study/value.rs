//! Values of the options of commands that change or study a program.

use crate::cli::value::{count, cpu_list, share};
use crate::exit::UserError;
use engine::report::Cpus;

/// A group of threads that do the same, and the wanted number of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Threads {
    /// The group's name in THREADS; `None`: the threads that do most of the work.
    pub name: Option<String>,
    /// The wanted number.
    pub count: Count,
}

/// A wanted number of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Total number of threads.
    All(usize),
    /// Number of threads in addition to the present ones.
    More(usize),
}

/// A limit for growth; more is a failure.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// Functions with this name or matching this pattern; `None`: the predicted time.
    pub function: Option<String>,
    /// Largest growth, as a share of the predicted time before.
    pub share: f64,
}

/// Reads a CPU count: `4`, `inf`.
pub fn one_cpu_count(text: &str) -> Result<Cpus, UserError> {
    match cpu_list(text)?[..] {
        [cpus] => Ok(cpus),
        _ => Err(UserError::usage("metrics are compared on one number of CPUs", "give one, such as @ 4")),
    }
}

/// Reads a number of threads: `8`, `+1`, `xz=8`, `xz=+4`.
pub fn threads(text: &str) -> Result<Threads, UserError> {
    let (name, number) = match text.rsplit_once('=') {
        Some((name, number)) if !name.is_empty() => (Some(name.to_owned()), number),
        _ => (None, text),
    };
    let count = match number.strip_prefix('+') {
        Some(more) => Count::More(count(more)?),
        None => Count::All(count(number)?),
    };
    Ok(Threads { name, count })
}

/// Reads a share up to 100 %: `5%`.
pub fn part(text: &str) -> Result<f64, UserError> {
    match share(text)? {
        share if share > 1.0 => {
            Err(UserError::usage("@ is more than 100 %", "give a percentage up to 100, such as @ 5%"))
        }
        share => Ok(share),
    }
}

/// Reads a function and a factor for its time: `parse=0.8`.
pub fn scale(text: &str) -> Result<(String, f64), UserError> {
    /// Largest factor: with a larger one the program would not be the same any more, and times would overflow.
    const MOST: f64 = 1e6;
    let (name, factor) = named(text, "parse=0.8")?;
    match factor.trim().parse::<f64>() {
        Ok(factor) if (0.0..=MOST).contains(&factor) => Ok((name, factor)),
        _ => Err(UserError::usage(
            format!("@ '{text}': the factor is not a number from 0 to {MOST}"),
            "0.8 leaves four fifths of the time, 0 nothing, 2 doubles it",
        )),
    }
}

/// Reads a lock and the number of its parts: `cache=4`.
pub fn split_lock(text: &str) -> Result<(String, u32), UserError> {
    parts(text, "cache=4")
}

/// Reads a resource and its number of permits: `connections=8`.
pub fn permits(text: &str) -> Result<(String, u32), UserError> {
    parts(text, "connections=8")
}

/// Reads a function and the number of threads to divide it among: `parse=4`.
pub fn divide(text: &str) -> Result<(String, u32), UserError> {
    parts(text, "parse=4")
}

fn parts(text: &str, example: &str) -> Result<(String, u32), UserError> {
    /// More parts than threads gain nothing, and each part of a lock has to be simulated.
    const MOST: u32 = 10_000;
    let (name, parts) = named(text, example)?;
    match count(parts)? {
        parts if parts <= MOST => Ok((name, parts)),
        _ => Err(UserError::usage(
            format!("@ '{text}': more than {MOST} parts"),
            "as many parts as threads are enough",
        )),
    }
}

/// Reads a function and the lock to move it out of: `parse=cache`.
pub fn move_out(text: &str) -> Result<(String, String), UserError> {
    let (function, lock) = named(text, "parse=cache")?;
    Ok((function, lock.to_owned()))
}

/// Splits `NAME=VALUE`. A name may contain `=` itself (`operator==`): the last one counts.
fn named<'t>(text: &'t str, example: &str) -> Result<(String, &'t str), UserError> {
    match text.rsplit_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value)),
        _ => Err(UserError::usage(
            format!("@ '{text}' is not of the form NAME=VALUE"),
            format!("for example @ {example}"),
        )),
    }
}

/// Reads a threshold: `+5%`, `5%`, `parse=+5%`.
pub fn threshold(text: &str) -> Result<Threshold, UserError> {
    let (function, growth) = match text.rsplit_once('=') {
        Some((name, growth)) if !name.is_empty() => (Some(name.to_owned()), growth.trim()),
        _ => (None, text.trim()),
    };
    Ok(Threshold { function, share: share(growth.strip_prefix('+').unwrap_or(growth))? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_of_a_function_is_split_at_the_last_equals_sign() {
        assert_eq!(scale("operator===0.5").expect("a pair"), ("operator==".into(), 0.5));
        for wrong in ["parse", "=0.5", ""] {
            assert!(scale(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_thread_count_is_for_named_threads_or_for_all() {
        let parsed = |text: &str| threads(text).ok().map(|threads| (threads.name, threads.count));
        assert_eq!(parsed("8"), Some((None, Count::All(8))));
        assert_eq!(parsed("xz=+4"), Some((Some("xz".into()), Count::More(4))));
        assert_eq!(parsed("a=b=2"), Some((Some("a=b".into()), Count::All(2))));
        for wrong in ["", "+", "xz", "xz=", "=4", "0"] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_threshold_is_percent_for_one_function_or_for_all() {
        let parsed = |text: &str| threshold(text).map(|threshold| (threshold.function, threshold.share));
        assert_eq!(parsed("+5%").expect("a threshold"), (None, 0.05));
        assert_eq!(parsed("5").expect("a threshold"), (None, 0.05));
        assert_eq!(parsed("a=b=+10 %").expect("a threshold"), (Some("a=b".into()), 0.1));
        for wrong in ["", "-5%", "fast", "f=", "+"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
