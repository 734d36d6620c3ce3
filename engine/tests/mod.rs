//! The engine's guarantees, tested as its users call it: through `engine::`, never through private items. Compiled into the
//! crate's own test program, so that a change of the engine is compiled once.

mod activity_graph;
mod bursts;
mod costed;
mod deadlock;
mod generated_recordings;
mod golden;
mod identities;
mod lock_replay;
mod locks;
mod machine;
mod machine_facts;
mod metrics;
mod near_paths;
mod objects;
mod one_time;
mod oracle;
mod parallelism;
mod polling;
mod processors;
mod program_json;
mod recorded;
mod recorded_program;
mod requests;
mod run_path;
mod samples;
mod schedule;
mod view;
mod what_if;
