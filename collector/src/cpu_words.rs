//! A number of CPUs in words.

use engine::report::Cpus;

pub(crate) fn cpus(cpus: Cpus) -> String {
    match cpus {
        Cpus::Count(count) if count.get() == 1 => "1 CPU".to_owned(),
        Cpus::Count(count) => format!("{count} CPUs"),
        Cpus::Infinite => "unlimited CPUs".to_owned(),
    }
}

/// A CPU count in a sentence: `on 1 CPU`, `on 8 CPUs`, `on unlimited CPUs`.
pub(crate) fn on(number: Cpus) -> String {
    format!("on {}", cpus(number))
}
