//! The ELF file: its parts, the functions in its symbol tables, and the separate files with its debug information.

pub mod binary;
mod build_id;
mod debug_file;
mod debug_link;
mod debug_paths;
mod elf_file;
mod file_key;
mod files;
mod functions;
mod go_table;
mod imports;
mod mini_debug;
mod notes;
mod outline;
mod sections;
mod symbol_table;
mod tls_variable;
mod usdt;

pub use build_id::{BuildId, NotABuildId};
pub use debug_paths::HostFiles;
pub use elf_file::{ElfFile, Section, Segment, open_plain};
pub use file_key::FileKey;
pub use files::{Candidate, Fetch, FileRequest, Files};
pub use functions::{
    Binding, Function, FunctionKind, ModuleFunctions, SymbolSource, functions_of, functions_with, unnamed,
};
pub use outline::Outline;
pub use tls_variable::{TlsSlot, TlsVariable};
pub use usdt::{UsdtProbe, usdt_probes};

pub(crate) use debug_link::supplement_link;
pub(crate) use elf_file::text_at;
pub(crate) use files::search;
pub(crate) use functions::cold_parent;
pub(crate) use imports::{Import, imports};
pub(crate) use sections::{Budget, Bytes, debug_sections, has_debug_information, named, split_sections};
