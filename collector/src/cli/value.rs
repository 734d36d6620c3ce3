//! Parses values on the command line: CPU lists, times, sizes, counts, process ids.

use crate::exit::UserError;
use crate::export::{Format, Table};
use crate::plan::is_dash;
use crate::plan::keep::LEAST_FILE_BYTES;
use crate::plan::part::Moment;
use crate::plan::per::Per;
use crate::plan::trigger::Condition;
use capture::target::CpuList;
use clap::builder::{PathBufValueParser, PossibleValuesParser, TypedValueParser};
use engine::predict::{NO_QUOTA, Scheduler};
use engine::report::Cpus;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use strum::VariantNames as _;

/// Stands for the option's name in error messages: a parser of values does not know it.
pub const OPTION: char = '@';

/// A value that may be `None`. For a plain `Option`, clap would take the option itself as optional.
pub type Maybe<T> = Option<T>;

/// A value that is a list. Clap would take a plain `Vec` for an option that may be repeated.
pub type List<T> = Vec<T>;

/// A parser for one of these words. For other words clap reports an error that lists them.
pub fn word<T: Clone + Send + Sync + 'static>(
    words: &'static [(&'static str, T)],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(words.iter().map(|(word, _)| *word)).try_map(move |given| {
        let known = words.iter().find(|(word, _)| *word == given);
        known.map(|(_, value)| value.clone()).ok_or("unknown")
    })
}

/// A parser for how threads share CPUs; `None`: the usual way for the program.
pub fn model() -> impl TypedValueParser<Value = Option<Scheduler>> {
    word(&[("auto", None), ("eevdf", Some(Scheduler::Eevdf)), ("ideal", Some(Scheduler::Ideal))])
}

/// A folder that exists.
pub fn folder() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|folder| match folder.is_dir() {
        true => Ok(folder),
        false => Err(UserError::usage(
            format!("@ {} is not a folder", folder.display()),
            "give a folder with debug files or binaries",
        )),
    })
}

/// The file for a recording; not standard output.
pub fn recording() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|file| match is_dash(&file) {
        true => Err(UserError::usage("a recording cannot go to standard output", "give a file: -o FILE")),
        false => Ok(file),
    })
}

/// An export format; `None` is the program JSON.
pub fn format(text: &str) -> Result<Maybe<Format>, UserError> {
    if text == "program" {
        return Ok(None);
    }
    Format::of(text).map(Some).ok_or_else(|| {
        let names = Format::VARIANTS.join(", ");
        UserError::usage(
            format!("there is no export format '{text}'"),
            format!("formats are: program, {names}"),
        )
    })
}

/// A table of an export.
pub fn table(text: &str) -> Result<&'static Table, UserError> {
    Table::of(text).ok_or_else(|| {
        UserError::usage(format!("there is no table '{text}'"), format!("tables are: {}", table_names()))
    })
}

/// Names of all tables, for a hint.
pub fn table_names() -> String {
    Table::ALL.iter().map(|table| table.name).collect::<Vec<_>>().join(", ")
}

/// Reads a list of CPU counts: `1,2,4-8,inf`.
pub fn cpu_list(text: &str) -> Result<List<Cpus>, UserError> {
    Cpus::parse_list(text).map_err(|error| UserError::usage(format!("@: {error}"), error.hint()))
}

/// Reads a time longer than 0: `10s`, `1m 30s`, `500ms`; a number without a unit is in seconds.
pub fn duration(text: &str) -> Result<Duration, UserError> {
    let parsed = match text.trim().parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => humantime::parse_duration(text.trim()).ok(),
    };
    match parsed {
        Some(duration) if !duration.is_zero() => Ok(duration),
        Some(_) => Err(UserError::usage("@ needs a time longer than 0", "give a time such as @ 10s")),
        None => Err(UserError::usage(
            format!("@ '{text}' is not a time"),
            "give a time such as @ 10s, 500ms or 2m",
        )),
    }
}

/// A time since the start of a recording, or a time of day: `10:32`, `10:32:05.5`.
pub fn moment(text: &str) -> Result<Moment, UserError> {
    let fields: Vec<&str> = text.trim().split(':').collect();
    if let [_] = fields[..] {
        let after = if matches!(text.trim(), "0" | "0s") { Ok(Duration::ZERO) } else { duration(text) };
        return after.map(Moment::After);
    }
    let number = |field: &str| field.parse::<u64>().ok();
    let clock = match fields[..] {
        [hours, minutes] => number(hours).zip(number(minutes)).zip(Some(0.0)),
        [hours, minutes, seconds] => number(hours).zip(number(minutes)).zip(seconds.parse::<f64>().ok()),
        _ => None,
    };
    let clock = clock
        .filter(|((hours, minutes), seconds)| *hours < 24 && *minutes < 60 && (0.0..60.0).contains(seconds));
    clock
        .map(|((hours, minutes), seconds)| {
            let whole = Duration::from_secs(hours * 3600 + minutes * 60);
            Moment::Clock(whole + Duration::from_secs_f64(seconds))
        })
        .ok_or_else(|| {
            UserError::usage(
                format!("@ '{text}' is neither a length of time nor a time of day"),
                "give a time after the start, such as @ 90s, or a time of day, such as @ 10:32:05",
            )
        })
}

/// Reads a time as `duration` does, in integer nanoseconds.
pub fn longer_ns(text: &str) -> Result<u64, UserError> {
    duration(text).map(|duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

/// Reads a time as `duration` does, in integer nanoseconds; 0 is allowed.
pub fn time_ns(text: &str) -> Result<u64, UserError> {
    match text.trim() {
        "0" | "0s" | "0ms" | "0us" | "0ns" => Ok(0),
        _ => longer_ns(text),
    }
}

/// Reads an address: `9464`, `:9464` or `localhost:9464` (this machine only); `192.168.0.7:9464`, `[::]:9464`. Host
/// names are not looked up.
pub fn address(text: &str) -> Result<SocketAddr, UserError> {
    let text = text.trim();
    let local = text.strip_prefix("localhost").unwrap_or(text);
    let port = local.strip_prefix(':').unwrap_or(local).parse::<u16>().ok();
    let local = port.map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    local.or_else(|| text.parse().ok()).ok_or_else(|| {
        let hint = "give a port or an address with a port, such as @ 9464 or @ 10.0.0.7:9464";
        UserError::usage(format!("@ '{text}' is not an address"), hint)
    })
}

/// Reads a quota such as `250%` or `250`, in hundredths of a CPU, at least 1; `none`: no limit.
pub fn quota(text: &str) -> Result<u32, UserError> {
    if text.trim() == "none" {
        return Ok(NO_QUOTA);
    }
    let digits = text.trim().trim_end_matches('%').trim_end();
    digits.parse::<u32>().ok().filter(|percent| *percent > 0).ok_or_else(|| {
        let hint = "give percent of one CPU, such as @ 250%";
        UserError::usage(format!("@ '{text}' is not a share of a CPU"), hint)
    })
}

/// Reads a device and how many waits it serves at once: `disk=4`.
pub fn device(text: &str) -> Result<(String, u32), UserError> {
    let parts = text.rsplit_once('=').filter(|(name, _)| !name.trim().is_empty());
    match parts.map(|(name, count)| (name, count.trim().parse::<u32>())) {
        Some((name, Ok(count))) if count > 0 => Ok((name.to_owned(), count)),
        _ => Err(UserError::usage(
            format!("@ '{text}' is not a device and a count"),
            "give the device's name and how many waits the device serves at once, such as @ disk=4",
        )),
    }
}

/// Reads an integer without a sign.
pub fn number(text: &str) -> Result<u64, UserError> {
    text.trim().parse().map_err(|_| {
        UserError::usage(format!("@ '{text}' is not a whole number"), "give a number such as @ 1")
    })
}

/// A count of at least 1.
pub fn count<T: FromStr + PartialEq + Default>(text: &str) -> Result<T, UserError> {
    text.trim().parse::<T>().ok().filter(|count| *count != T::default()).ok_or_else(|| {
        UserError::usage(format!("@ '{text}' is not a count"), "give @ a whole number of at least 1")
    })
}

/// A count from 1 to `MOST`.
pub fn count_to<const MOST: u32>(text: &str) -> Result<u32, UserError> {
    match count(text)? {
        count if count > MOST => Err(UserError::usage(
            format!("@ {count} is more than {MOST}"),
            format!("give a number up to {MOST}"),
        )),
        count => Ok(count),
    }
}

/// Samples per second. The kernel's limit for all users (`kernel.perf_event_max_sample_rate`) is usually higher; a stack
/// takes microseconds.
pub fn frequency(text: &str) -> Result<u32, UserError> {
    if text == "0" { Ok(0) } else { count_to::<10_000>(text) }
}

/// A count, or `each` (`None`).
pub fn count_or_each(text: &str) -> Result<Maybe<u32>, UserError> {
    if text == "each" { Ok(None) } else { count(text).map(Some) }
}

/// Reads a budget such as `2%`, `0.5 %` or `2`, as millionths; `none`: no limit.
pub fn budget(text: &str) -> Result<Maybe<u32>, UserError> {
    let trimmed = text.trim();
    if trimmed == "none" {
        return Ok(None);
    }
    let percent = trimmed.strip_suffix('%').unwrap_or(trimmed).trim().parse::<f64>().ok();
    match percent.filter(|percent| (0.0..=1_000.0).contains(percent)) {
        Some(percent) => Ok(Some((percent * 1e4).round() as u32)),
        None => Err(UserError::usage(
            format!("@ '{text}' is not a share from 0% to 1000%"),
            "give a share such as @ 2% or @ 0.5%, or @ none",
        )),
    }
}

/// Reads a number of bytes: `8M`, `512K`, `65536`, `2GiB`.
fn bytes(text: &str) -> Option<u64> {
    let trimmed = text.trim().trim_end_matches("iB").trim_end_matches('B');
    let (digits, unit) = match trimmed.char_indices().last() {
        Some((at, 'k' | 'K')) => (&trimmed[..at], 1u64 << 10),
        Some((at, 'm' | 'M')) => (&trimmed[..at], 1 << 20),
        Some((at, 'g' | 'G')) => (&trimmed[..at], 1 << 30),
        Some((at, 't' | 'T')) => (&trimmed[..at], 1 << 40),
        _ => (trimmed, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// Reads the size of a file, such as `2G` or `500M`, as bytes; at least [`LEAST_FILE_BYTES`].
pub fn file_bytes(text: &str) -> Result<u64, UserError> {
    bytes(text).filter(|bytes| *bytes >= LEAST_FILE_BYTES).ok_or_else(|| {
        UserError::usage(
            format!("@ '{text}' is not a size of at least {}M", LEAST_FILE_BYTES >> 20),
            "give a size such as @ 2G or @ 500M",
        )
    })
}

/// A condition that saves a ring: see [`Condition`].
pub fn condition(text: &str) -> Result<Condition, UserError> {
    text.parse()
}

/// What counts as a request: see [`Per`].
pub fn per(text: &str) -> Result<Per, UserError> {
    text.parse()
}

/// Reads a size in bytes, and rounds it up to a power of two, from one page to 1 GiB.
pub fn ring_bytes(text: &str) -> Result<u32, UserError> {
    let bytes = bytes(text).and_then(|bytes| u32::try_from(bytes).ok());
    let bytes = bytes.filter(|bytes| (4096..=1 << 30).contains(bytes)).map(u32::next_power_of_two);
    bytes.ok_or_else(|| {
        UserError::usage(format!("@ '{text}' is not a size from 4K to 1G"), "give a size such as @ 8M")
    })
}

/// Reads CPUs by number: `0`, `0-3,8`. longpole must be allowed to use all of them.
pub fn cpus_to_run_on(text: &str) -> Result<CpuList, UserError> {
    let cpus = CpuList::parse(text).ok_or_else(|| {
        let hint = "give CPU numbers such as @ 0 or @ 0-3";
        UserError::usage(format!("@ '{text}' is not a list of CPUs"), hint)
    })?;
    let Ok(allowed) = CpuList::allowed() else { return Ok(cpus) };
    match cpus.without(&allowed) {
        None => Ok(cpus),
        Some(missing) => Err(UserError::usage(
            format!("@ {cpus}: CPU {missing} does not exist, or longpole may not use it"),
            format!("give CPUs out of {allowed}"),
        )),
    }
}

/// Reads numbers of CPUs, such as `1,2,4-8`, sorted ascending. 1 is always included, since speed-ups refer to it.
pub fn cpu_counts(text: &str) -> Result<List<u32>, UserError> {
    let mut counts = vec![1];
    for cpus in cpu_list(text)? {
        match cpus {
            Cpus::Count(count) => counts.push(count.get()),
            Cpus::Infinite => {
                return Err(UserError::usage(
                    "@: runs can be measured only on CPUs that exist",
                    "leave out inf; `longpole predict` has it",
                ));
            }
        }
    }
    counts.sort_unstable();
    counts.dedup();
    Ok(counts)
}

/// Reads a share of at least 0, given in percent: `5%`, `0.5 %`, `5`.
pub fn share(text: &str) -> Result<f64, UserError> {
    match text.trim().trim_end_matches('%').trim_end().parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent / 100.0),
        _ => Err(UserError::usage(format!("@ '{text}' is not a percentage"), "give a number such as @ 5%")),
    }
}

/// Finds the processes for pids such as `12,34` or names such as `redis-server`, possibly given several times; each pid
/// occurs once. `named` finds processes by name.
pub fn pids(given: &[String], named: impl Fn(&str) -> Vec<u32>) -> Result<Vec<u32>, UserError> {
    let mut pids = Vec::new();
    for part in given.iter().flat_map(|text| text.split(',')).map(str::trim) {
        let is_number = part.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
        match part.parse::<u32>() {
            Ok(pid) if pid > 0 && pid <= i32::MAX as u32 => pids.push(pid),
            _ if is_number => {
                return Err(UserError::usage(
                    format!("'{part}' is not a process id"),
                    "give a name, or the number that `pgrep NAME` prints, such as -p 1234 or -p 1234,5678",
                ));
            }
            _ => match named(part) {
                found if found.is_empty() => {
                    return Err(UserError::runtime(
                        format!("no process is called '{part}'"),
                        "see `ps -e` for the names of processes; -p also takes numbers",
                    ));
                }
                found => pids.extend(found),
            },
        }
    }
    let mut seen = std::collections::HashSet::new();
    pids.retain(|pid| seen.insert(*pid));
    Ok(pids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_list_with_a_count_of_zero_is_a_usage_error() {
        assert_eq!(cpu_list("1,2,inf").expect("a list").len(), 3);
        let error = cpu_list("0").expect_err("no list");
        assert_eq!((error.message.as_str(), error.code), ("@: a CPU count of 0", crate::exit::Code::Usage));
    }

    #[test]
    fn a_duration_has_units_or_is_in_seconds_and_others_are_usage_errors() {
        assert_eq!(duration("10s").expect("time"), Duration::from_secs(10));
        assert_eq!(duration("2").expect("time"), Duration::from_secs(2));
        assert_eq!(duration("0.5").expect("time"), Duration::from_millis(500));
        assert_eq!(duration("1m 30s").expect("time"), Duration::from_secs(90));
        for wrong in ["", "0", "0s", "-3", "soon", "nan", "inf", "1e300"] {
            assert_eq!(duration(wrong).expect_err(wrong).code, crate::exit::Code::Usage);
        }
    }

    #[test]
    fn a_budget_is_percent_or_none_and_others_are_usage_errors() {
        let ppm = |text: &str| budget(text).expect(text);
        assert_eq!(ppm("2%"), Some(20_000));
        assert_eq!(ppm(" 0.5 % "), Some(5_000));
        assert_eq!(ppm("3"), Some(30_000));
        assert_eq!(ppm("0"), Some(0));
        assert_eq!(ppm("1000%"), Some(10_000_000));
        assert_eq!(ppm("none"), None);
        for wrong in ["", "%", "-1%", "1001%", "nan", "two", "2%%", "inf"] {
            assert_eq!(budget(wrong).expect_err(wrong).code, crate::exit::Code::Usage);
        }
    }

    #[test]
    fn a_ring_size_is_rounded_up_to_a_power_of_two_and_bounded() {
        assert_eq!(ring_bytes("8M").expect("size"), 8 << 20);
        assert_eq!(ring_bytes("8MiB").expect("size"), 8 << 20);
        assert_eq!(ring_bytes("5000").expect("size"), 8192);
        assert_eq!(ring_bytes("1G").expect("size"), 1 << 30);
        for wrong in ["0", "4095", "2G", "1T", "", "M", "99999999999999999999G"] {
            assert!(ring_bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_file_size_too_small_for_a_recording_is_a_usage_error() {
        assert_eq!(file_bytes("2G").expect("size"), 2 << 30);
        assert_eq!(file_bytes(" 500MiB ").expect("size"), 500 << 20);
        assert_eq!(file_bytes("1048576").expect("size"), 1 << 20);
        for wrong in ["0", "4K", "1048575", "", "M", "-1G", "2.5G", "99999999999T", "much"] {
            assert_eq!(file_bytes(wrong).expect_err(wrong).code, crate::exit::Code::Usage);
        }
    }

    #[test]
    fn process_ids_are_numbers_or_names_and_each_is_listed_once() {
        let named = |name: &str| if name == "redis" { vec![12, 78] } else { Vec::new() };
        let list = |given: &[&str]| pids(&given.iter().map(|s| s.to_string()).collect::<Vec<_>>(), named);
        assert_eq!(list(&["12,34", "12", "56"]).expect("pids"), [12, 34, 56]);
        assert_eq!(list(&["redis,34"]).expect("pids"), [12, 78, 34]);
        for wrong in ["0", "-1", "", "12,", "4294967295"] {
            assert_eq!(list(&[wrong]).expect_err(wrong).code, crate::exit::Code::Usage);
        }
        assert_eq!(list(&["nobody"]).expect_err("no such name").code, crate::exit::Code::Runtime);
    }
}
