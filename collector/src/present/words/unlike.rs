//! Sentences about what makes two recordings hard to compare.

use super::traffic::rate;
use crate::cell::duration;
use engine::compare::Unlike;

/// One or two sentences about a difference, and what to do about it.
pub(crate) fn sentence(unlike: &Unlike) -> String {
    match unlike {
        Unlike::Programs([before, after]) => {
            format!("other programs: {before} before, {after} after; their numbers have little in common")
        }
        Unlike::OneServes { first } => format!(
            "requests were counted only {}: times of requests cannot be compared, and predicted times depend on how much work arrived",
            if *first { "before" } else { "after" }
        ),
        Unlike::Rate([before, after]) => format!(
            "the load differs: {} requests/s before, {} after, and clients set the rate, not the server: compare CPU time for each request, not requests/s",
            rate(*before),
            rate(*after)
        ),
        Unlike::Connections([before, after]) => format!(
            "the load differs: clients used about {before:.0} connections before, {after:.0} after: compare CPU time for each request, not times and requests/s"
        ),
        Unlike::Lengths([before, after]) => format!(
            "the recordings are {} and {} long, and the program ran on: it may have done other work in them",
            duration(*before),
            duration(*after)
        ),
        Unlike::Cpus([before, after]) => {
            format!("the program could use another number of CPUs: {before} before, {after} after")
        }
        Unlike::Hosts([before, after]) => {
            format!("other machines: {before} before, {after} after; their CPUs may differ in speed")
        }
        Unlike::Others([before, after]) => format!(
            "programs that were not recorded used {before:.2} CPUs before, {after:.2} after: that changes waits for a CPU, and the speed of caches"
        ),
    }
}
