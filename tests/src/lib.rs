//! The code that the test suites share: workloads, the longpole binary, checks of what can run here, goldens, parsed
//! answers.

pub mod documents;
mod golden;
mod group;
pub mod known_shares;
pub mod latency_client;
mod longpole;
mod privilege;
mod process;
mod recorded;
mod report;
pub mod text_unchanged;
pub mod workload;
pub mod zoo;

pub use golden::{check_golden, data_folder};
pub use group::Group;
pub use longpole::{Longpole, binary, take_binary};
pub use privilege::cannot_record;
pub use process::{Background, Ended, has_ended, must_run, run, shell, until};
pub use recorded::Recorded;
pub use report::{Answer, Program, Report};

/// Skips the test if running programs cannot be recorded here. Prints `SKIP name: reason`; the test runner counts these
/// lines.
///
/// With the name of a workload, or the result of another build, the macro returns the program. The macro then also
/// skips the test if the compiler is missing.
#[macro_export]
macro_rules! skip_unless_live {
    () => {
        $crate::skip_if!($crate::cannot_record())
    };
    ($source:literal) => {
        $crate::skip_unless_live!($crate::workload::build($source))
    };
    ($built:expr) => {{
        $crate::skip_unless_live!();
        $crate::skip_unless_built!($built)
    }};
}

/// Skips the test for this reason, and prints a `SKIP` line.
#[macro_export]
macro_rules! skip {
    ($($reason:tt)*) => {{
        println!("SKIP {}: {}", $crate::here!(), format_args!($($reason)*));
        return;
    }};
}

/// Skips the test if there is a reason, and prints a `SKIP` line.
#[macro_export]
macro_rules! skip_if {
    ($reason:expr) => {
        if let Some(reason) = $reason {
            $crate::skip!("{reason}");
        }
    };
}

/// Skips the test if the machine has no compiler for the program, and prints a `SKIP` line. Fails the test if the
/// program does not compile.
#[macro_export]
macro_rules! skip_unless_built {
    ($built:expr) => {
        match $built {
            Ok(built) => built,
            Err($crate::workload::Problem::NoCompiler(reason)) => $crate::skip!("{reason}"),
            Err($crate::workload::Problem::Broken(reason)) => panic!("{reason}"),
        }
    };
}

/// The path of the test that contains this macro, as the test runner names it.
#[macro_export]
macro_rules! here {
    () => {{
        fn marker() {}
        let name = std::any::type_name_of_val(&marker);
        let name = name.strip_suffix("::marker").unwrap_or(name);
        name.split_once("::").map_or(name, |(_, test)| test)
    }};
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_test_knows_its_own_name() {
        assert_eq!(here!(), "tests::a_test_knows_its_own_name");
    }
}
