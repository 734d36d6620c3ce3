fn main() {
    let path = std::env::args().nth(1).unwrap();
    let (r, info) = collector::session::read(std::path::Path::new(&path)).unwrap();
    eprintln!("{:?}", info.damage);
    let s = r.facts.start_ns;
    println!("start {s} end {:?}", r.facts.end.as_ref().map(|e| e.end_ns - s));
    for t in &r.facts.threads {
        println!("thread {} {} {:?} seen {}", t.tid, t.comm, t.state, t.seen_ns as i64 - s as i64);
    }
    for n in &r.notes {
        println!("note {:?}", n);
    }
    for e in &r.events {
        let h = e.header();
        let t = h.time_ns as i64 - s as i64;
        use probe_abi::Record::*;
        let what = match e {
            Switch(x) => {
                format!("switch {} -> {} state {} flags {}", h.tid, x.next_tid, x.prev_state, x.flags)
            }
            Waking(x) => {
                format!("wake {} (by {}) flags {} wakee_state {}", x.wakee_tid, h.tid, x.flags, x.wakee_state)
            }
            Fork(x) => format!("fork {} -> {}", h.tid, x.child_tid),
            Exec(_) => "exec".into(),
            Exit(_) => format!("exit {}", h.tid),
            Rename(_) => "rename".into(),
            FutexEnter(x) => format!("futex {} op {} word {:x}", h.tid, x.operation, x.word),
            FutexExit(x) => format!("futex ret {} {}", h.tid, x.result),
            FunctionEnter(x) => format!("enter {} f{} sp {:x}", h.tid, x.function, x.stack_pointer),
            FunctionExit(x) => format!("leave {} f{} sp {:x}", h.tid, x.function, x.stack_pointer),
        };
        println!("{t:>12} cpu{} seq{} ctx{} {what}", h.cpu, h.sequence, h.context);
    }
    let tl = engine::timeline::build(&r);
    for t in &tl.threads {
        for i in &t.intervals {
            if format!("{:?}", i).contains("Unknown") {
                println!("{} {:?}", t.tid, i);
            }
        }
    }
}
