//! The activity graph of programs: acyclic, and its longest path is as long as the schedule on unlimited processors.

use engine::graph::{ActivityGraph, ActivityKind, Timing, VertexId};
use engine::program::{Program, json};
use engine::synth::{Lengths, large_program, random_program};
use engine::time::Ticks;

fn graph(text: &str) -> ActivityGraph {
    let graph = ActivityGraph::of(&json::read(text).expect("a program")).expect("a graph");
    assert_eq!(graph.check(), Ok(()));
    graph
}

fn threads(threads: &str) -> String {
    format!("{{\"format\":\"longpole-program\",\"version\":1,\"threads\":[{threads}]}}")
}

/// Each edge as `tail>head kind length`.
fn picture(graph: &ActivityGraph) -> Vec<String> {
    let vertices = (0..graph.vertices()).map(|vertex| VertexId(vertex as u32));
    let edges = vertices.flat_map(|vertex| graph.into_vertex(vertex).collect::<Vec<_>>());
    edges
        .map(|edge| format!("{}>{} {:?} {}", edge.tail.0, edge.head.0, edge.kind, edge.length.as_ns_f64()))
        .collect()
}

#[test]
fn activity_graphs_of_random_programs_are_valid() {
    let (mut wakes, mut deadlocks) = (0, 0);
    for seed in 0..4000 {
        for lengths in [Lengths::Spread, Lengths::Tied] {
            let program = random_program(seed, lengths);
            let graph = ActivityGraph::of(&program).expect("a graph");
            assert_eq!(graph.check(), Ok(()), "seed {seed} {lengths:?}");
            deadlocks += usize::from(!graph.findings().is_empty());
            wakes += (1..graph.vertices())
                .flat_map(|vertex| graph.into_vertex(VertexId(vertex as u32)))
                .filter(|edge| edge.kind == ActivityKind::Wake)
                .count();
        }
    }
    assert!(wakes > 10_000 && deadlocks > 100, "{wakes} wakes and {deadlocks} deadlocks are too few");
}

#[test]
fn an_activity_graph_of_a_large_program_has_under_two_edges_an_operation() {
    let program = large_program(200_000, 16, 7);
    let graph = ActivityGraph::of(&program).expect("a graph");
    assert_eq!(graph.check(), Ok(()));
    assert!(graph.edges() < 2 * 200_000, "{}", graph.edges());
}

#[test]
fn an_activity_graph_of_an_empty_program_is_one_vertex() {
    let graph = ActivityGraph::of(&Program::default()).expect("a graph");
    assert_eq!((graph.vertices(), graph.edges(), graph.check()), (1, 0, Ok(())));
    assert_eq!(Timing::of(&graph).length(), Ticks(0));
    assert_eq!(Timing::of(&graph).critical_path(&graph), []);
}

#[test]
fn a_wake_up_is_an_edge_whether_or_not_a_thread_had_to_wait() {
    let graph = graph(&threads(
        r#"{"name":"T1","ops":[["exec",1],["signal","s"]]},{"name":"T2","ops":[["exec",9],["wait","s"]]}"#,
    ));
    assert_eq!(
        picture(&graph),
        [
            "0>1 Start 0",
            "0>2 Start 0",
            "1>3 Compute 1",
            "3>4 Step 0",
            "2>5 Compute 9",
            "5>6 Step 0",
            "4>6 Wake 0",
            "4>7 End 0",
            "6>7 End 0"
        ]
    );
}

#[test]
fn a_lock_of_one_thread_makes_no_wake_edge() {
    let graph = graph(&threads(
        r#"{"name":"T1","ops":[["lock","m"],["exec",1],["unlock","m"],["exec",1],["lock","m"],["unlock","m"]]}"#,
    ));
    assert!(picture(&graph).iter().all(|edge| !edge.contains("Wake")), "{:?}", picture(&graph));
}

#[test]
fn a_writer_has_edges_from_every_reader_before_it() {
    let graph = graph(&threads(
        r#"{"name":"T1","ops":[["rdlock","r"],["exec",5],["rwunlock","r"]]},
           {"name":"T2","ops":[["rdlock","r"],["exec",7],["rwunlock","r"]]},
           {"name":"T3","ops":[["exec",1],["wrlock","r"],["exec",1],["rwunlock","r"]]}"#,
    ));
    assert_eq!(Timing::of(&graph).length(), Ticks::from_ns(8));
    let into_writer: Vec<_> = picture(&graph).into_iter().filter(|edge| edge.contains("Wake")).collect();
    assert_eq!(into_writer.len(), 2, "{into_writer:?}");
}

#[test]
fn threads_at_a_barrier_wait_for_all_through_one_vertex() {
    let graph = graph(&threads(
        r#"{"name":"T1","ops":[["exec",5],["barrier","b",3],["exec",1]]},
           {"name":"T2","ops":[["exec",7],["barrier","b",3]]},{"name":"T3","ops":[["barrier","b",3],["exec",2]]}"#,
    ));
    assert_eq!(Timing::of(&graph).length(), Ticks::from_ns(9));
    let wakes = picture(&graph).iter().filter(|edge| edge.contains("Wake")).count();
    assert_eq!(wakes, 3, "{:?}", picture(&graph));
}

#[test]
fn ends_of_a_repeating_timer_count_from_its_first_end() {
    // The timer's first end is at 5 + 10, the others 10 and 20 later: computing in between does not move them.
    let graph = graph(&threads(
        r#"{"name":"T1","ops":[["exec",5],["sleep_next",10],["exec",8],["sleep_next",10],["exec",12],["sleep_next",10],["exec",1]]}"#,
    ));
    assert_eq!(Timing::of(&graph).length(), Ticks::from_ns(15 + 10 + 12 + 1));
}

#[test]
fn a_sleep_until_a_point_in_time_counts_from_the_program_s_start() {
    let graph =
        graph(&threads(r#"{"name":"T1","ops":[["exec",5],["sleep_until",7],["exec",1],["sleep_until",2]]}"#));
    assert_eq!(Timing::of(&graph).length(), Ticks::from_ns(8));
}
