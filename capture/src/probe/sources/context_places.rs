//! Tells the kernel programs where processes publish the contexts of their threads.

use aya::Ebpf;
use aya::maps::{HashMap, MapData};
use probe_abi::ContextPlace;
use zerocopy::transmute;

/// Sets the place of a process; `None`: removes it. Without room, the process's contexts are not read.
pub(crate) fn tell(ebpf: &mut Ebpf, pid: u32, place: Option<ContextPlace>) {
    const WORDS: usize = size_of::<ContextPlace>() / 8;
    let Some(map) = ebpf.map_mut("CONTEXT_PLACES") else { return };
    let Ok(mut map) = HashMap::<&mut MapData, u32, [u64; WORDS]>::try_from(map) else { return };
    let told = match place {
        Some(place) => {
            let words: [u64; WORDS] = transmute!(place);
            map.insert(&pid, &words, 0)
        }
        None => {
            // The map may have no entry for the process.
            let _ = map.remove(&pid);
            Ok(())
        }
    };
    if let Err(error) = told {
        log::warn!("for which trace threads of process {pid} work is not read: {error}");
    }
}
