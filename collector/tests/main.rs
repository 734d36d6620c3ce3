//! Tests of the collector from outside: the command line as a user runs it, and the library on real, compiled, running and
//! hostile programs. No test here needs BPF or root.

mod command_line;
mod commands_agree;
mod diff_servers;
mod documents;
mod exports;
mod goldens;
mod graph_commands;
mod launch_gate;
mod listen;
mod lossy_recordings;
mod page;
mod screens;
mod symbols;
mod unwind_tables;
mod unwinding_against_gdb;
