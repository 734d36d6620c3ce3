//! Times the algorithms on the activity graph, with a generated graph; `./x bench graph` calls it in a
//! release build. usage: graph_bench (timing | paths | search | slack | zeroing) EDGES K TIMES; prints one
//! line of JSON, the mean of TIMES runs. `search` is the best-first search of 1994.

use std::hint::black_box;
use std::process::ExitCode;

use engine::graph::{ActivityGraph, NearPaths, Subject, Subjects, VertexTimes, function_slacks, zeroing};
use engine::program::{FunctionRef, Program};
use engine::synth::large_graph;
use timed::timed;

#[path = "../tests/near_paths/best_first.rs"]
mod best_first;
#[path = "../tests/near_paths/rival.rs"]
mod rival;
#[path = "shared/timed.rs"]
mod timed;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize| arguments.get(place).and_then(|word| word.parse::<u32>().ok()).unwrap_or(0);
    let (edges, k, times) = (number(1), number(2) as usize, number(3));
    let work: fn(&ActivityGraph, &VertexTimes, usize) -> u64 = match arguments.first().map(String::as_str) {
        Some("timing") => |graph, _, _| VertexTimes::of(graph).length().0,
        Some("paths") => {
            |graph, timing, k| NearPaths::new(graph, timing, k).take(k).last().map_or(0, |path| path.length.0)
        }
        Some("search") => |graph, timing, k| {
            let mut last = 0;
            best_first::best_first(&rival::Lists::of(graph, timing), k, |length, edges| {
                black_box(edges);
                last = length;
            });
            last
        },
        Some("slack") => |graph, timing, _| function_slacks(graph, timing).iter().map(|f| f.slack.0).sum(),
        Some("zeroing") => |graph, timing, _| {
            let subjects = Subjects::of(&Program::default(), graph);
            let all: Vec<Subject> =
                (0..64).map(|function| Subject::Function(FunctionRef(function))).collect();
            zeroing(graph, timing, &subjects, &all).iter().map(|gain| gain.0).sum()
        },
        _ => return usage(),
    };
    if edges < 100 || times == 0 {
        return usage();
    }
    let graph = match large_graph(edges, 1) {
        Ok(graph) => graph,
        Err(error) => {
            eprintln!("graph_bench: {error}");
            return ExitCode::FAILURE;
        }
    };
    let timing = VertexTimes::of(&graph);
    let all = || (0..times).fold(0, |_, _| black_box(work(&graph, &timing, k)));
    let (answer, wall, cpu) = timed(all);
    let (wall, cpu) = (wall / u128::from(times), cpu / u64::from(times));
    println!(
        "{{\"edges\":{},\"vertices\":{},\"answer\":{answer},\"length\":{},\"wall_ns\":{wall},\"cpu_ns\":{cpu}}}",
        graph.edges(),
        graph.vertices(),
        timing.length().0
    );
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("usage: graph_bench (timing | paths | search | slack | zeroing) EDGES K TIMES");
    ExitCode::from(2)
}
