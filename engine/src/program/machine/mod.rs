//! What a recording tells about its machine, and what of the program belongs to that machine only.

pub(super) mod cpu_run;
pub(super) mod machine_facts;
pub(super) mod machine_of;
pub(super) mod others;
pub(super) mod own_cpus;
pub(super) mod placement;
