//! The programs of the 2001 paper with their weights at every CPU count, through the JSON form and the report.

use engine::program::{Operation, json};
use engine::report::{Cpus, Detail, Report, report};

const FIG_1: &str = r#"{"format":"longpole-program","version":1,"threads":[
    {"name":"T1","ops":[["exec","a",1],["signal","X"],["exec","b",1],["wait","Z"],["exec","a",1]]},
    {"name":"T2","ops":[["exec","b",1],["wait","Y"],["exec","d",1],["signal","Z"]]},
    {"name":"T3","ops":[["wait","X"],["exec","c",1],["signal","Y"],["exec","b",1]]}]}"#;

const FIG_4: &str = r#"{"format":"longpole-program","version":1,"threads":[
    {"name":"T1","ops":[["exec","a",1],["signal","X"],["exec","b",4],["signal","Z"],["exec","c",1],["wait","X"],
        ["exec","e",1],["exec","i",1]]},
    {"name":"T2","ops":[["wait","X"],["exec","c",1],["signal","Y"],["exec","g",1],["wait","Y"],["exec","d",2]]},
    {"name":"T3","ops":[["wait","Y"],["exec","d",2],["wait","Z"],["exec","g",1],["exec","h",1],["signal","X"],
        ["exec","a",1],["signal","Y"],["exec","f",3]]}]}"#;

fn analysed(text: &str, cpus: &str) -> Report {
    let program = json::read(text).expect("a program");
    let report = report(&program, &Cpus::parse_list(cpus).expect("counts"), Detail::Segments);
    assert_eq!(report.findings, []);
    report
}

/// Each CPU count as a line `P time | thread function=weight ... | ...`.
fn picture(report: &Report) -> Vec<String> {
    let lines = report.results.iter().map(|result| {
        let mut line = format!("P={} T={}", result.cpus, result.time_ns);
        let mut thread = "";
        for segment in &result.segments {
            if segment.thread != thread {
                thread = &segment.thread;
                line += &format!(" | {thread}");
            }
            line += &format!(" {}={}", segment.function.as_deref().unwrap_or("?"), segment.weight);
        }
        line
    });
    lines.collect()
}

/// Each CPU count as a line `P speedup | function calls tet tetid | ...`.
fn table(report: &Report) -> Vec<String> {
    let lines = report.results.iter().map(|result| {
        let mut line = format!("P={} {:.3}x", result.cpus, result.speedup);
        for row in &result.functions {
            line += &format!(" | {} {} {} {}", row.function, row.calls, row.tet_ns, row.tetid_ns);
        }
        line
    });
    lines.collect()
}

#[test]
fn figure_1_of_the_paper_has_the_weights_that_the_paper_gives() {
    let report = analysed(FIG_1, "1,2,3,4,inf");
    assert_eq!(
        picture(&report),
        [
            "P=1 T=7 | T1 a=1 b=1 a=1 | T2 b=1 d=1 | T3 c=1 b=1",
            "P=2 T=4 | T1 a=0.5 b=0 a=1 | T2 b=0 d=1 | T3 c=0.5 b=0",
            "P=3 T=4 | T1 a=1 b=0 a=1 | T2 b=0 d=1 | T3 c=1 b=0",
            "P=4 T=4 | T1 a=1 b=0 a=1 | T2 b=0 d=1 | T3 c=1 b=0",
            "P=inf T=4 | T1 a=1 b=0 a=1 | T2 b=0 d=1 | T3 c=1 b=0",
        ]
    );
    assert_eq!(
        table(&report)[..3],
        [
            "P=1 1.000x | b 3 3 3 | a 2 2 2 | c 1 1 1 | d 1 1 1",
            "P=2 1.750x | a 2 1.5 1.5 | d 1 1 1 | c 1 0.5 0.5",
            "P=3 1.750x | a 2 2 2 | c 1 1 1 | d 1 1 1",
        ]
    );
}

#[test]
fn figure_4_of_the_paper_has_the_weights_that_the_paper_gives() {
    let whole = "T1 a=1 b=1 c=1 e=1 i=1 | T2 c=1 g=1 d=1 | T3 d=1 g=1 h=1 a=1 f=1";
    let critical = "T1 a=1 b=1 c=0 e=0 i=0 | T2 c=0 g=0 d=0 | T3 d=0 g=1 h=1 a=1 f=1";
    assert_eq!(
        picture(&analysed(FIG_4, "1,2,3,5-6,inf")),
        [
            format!("P=1 T=20 | {whole}"),
            "P=2 T=12 | T1 a=1 b=1 c=0 e=0.5 i=0.5 | T2 c=0 g=0.5 d=0 | T3 d=0 g=1 h=1 a=0.5 f=1".to_owned(),
            format!("P=3 T=11 | {critical}"),
            format!("P=5 T=11 | {critical}"),
            format!("P=6 T=11 | {critical}"),
            format!("P=inf T=11 | {critical}"),
        ]
    );
}

#[test]
fn weights_of_a_program_of_92_days_are_exact() {
    // Lengths add up to 92 days, with weights for the largest CPU count.
    const UNIT: u64 = 400_000_000_000_000;
    let cpus = Cpus::parse_list("1,2,3,4294967295,inf").expect("counts");
    let program = json::read(FIG_4).expect("a program");
    let mut stretched = program.clone();
    for operation in stretched.threads.iter_mut().flat_map(|thread| &mut thread.operations) {
        if let Operation::ExecIn(_, length) = operation {
            length.0 *= UNIT;
        }
    }
    let (short, long) =
        (report(&program, &cpus, Detail::Functions), report(&stretched, &cpus, Detail::Functions));
    assert_eq!(short.results.len(), 5);
    for (short, long) in short.results.iter().zip(&long.results) {
        assert_eq!(long.time_ns, short.time_ns * UNIT as f64);
        assert_eq!(long.speedup, short.speedup);
        assert_eq!(long.functions.len(), short.functions.len());
        for (short, long) in short.functions.iter().zip(&long.functions) {
            assert_eq!((&long.function, long.calls), (&short.function, short.calls));
            assert_eq!(long.tet_ns, short.tet_ns * UNIT as f64);
            assert_eq!(long.tetid_ns, short.tetid_ns * UNIT as f64);
        }
    }
}
