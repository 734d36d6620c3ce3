//! The longest paths and their metrics, against the paper's four algorithms and against listing all paths.

mod arrays;
mod best_first;
mod bound;
mod enumeration;
mod graphs;
mod rival;

use engine::graph::{
    ActivityGraph, ActivityId, Benefit, NearPaths, PathCounts, Subject, Subjects, VertexId, VertexTimes,
    benefits, function_slacks, slack_segments, zeroing,
};
use engine::program::{FunctionRef, Program, ThreadId};
use engine::synth::{Lengths, random_program};
use engine::time::Ticks;
use graphs::{FUNCTIONS, compute_edge, random_graph};
use rival::Lists;

/// A path: its length in ticks, and its edges from source to sink.
type Path = (u64, Vec<u32>);

/// Length of a path, added up from its edges.
fn length(graph: &ActivityGraph, path: &[u32]) -> u64 {
    path.iter().map(|edge| graph.activity(ActivityId(*edge)).length.0).sum()
}

/// The `most` longest paths in nonincreasing order, by the shipped algorithm with this `expected` number.
fn shipped(graph: &ActivityGraph, expected: usize, most: usize) -> Vec<Path> {
    let timing = VertexTimes::of(graph);
    let mut paths = NearPaths::new(graph, &timing, expected);
    let lengths: Vec<u64> = paths.by_ref().take(most).map(|path| path.length.0).collect();
    let edges = |number| paths.edges(number).iter().map(|edge| edge.0).collect::<Vec<u32>>();
    lengths.into_iter().enumerate().map(|(number, length)| (length, edges(number))).collect()
}

fn lengths(paths: &[Path]) -> Vec<u64> {
    paths.iter().map(|path| path.0).collect()
}

fn sorted(mut paths: Vec<Path>) -> Vec<Path> {
    paths.sort_by(|a, b| (std::cmp::Reverse(a.0), &a.1).cmp(&(std::cmp::Reverse(b.0), &b.1)));
    paths
}

fn check_whole(graph: &ActivityGraph, seed: u64) -> usize {
    let timing = VertexTimes::of(graph);
    let lists = Lists::of(graph, &timing);
    let all = shipped(graph, 1, usize::MAX);
    for (longest, edges) in &all {
        assert_eq!(*longest, length(graph, edges), "seed {seed}: {edges:?}");
    }
    assert!(all.is_sorted_by_key(|path| std::cmp::Reverse(path.0)), "seed {seed}: {:?}", lengths(&all));
    assert_eq!(PathCounts::of(graph, &timing).all, all.len() as u128, "seed {seed}");
    assert_eq!(
        PathCounts::of(graph, &timing).critical,
        all.iter().filter(|path| path.0 == timing.length().0).count() as u128
    );
    let whole = sorted(all.clone());
    assert_eq!(whole, sorted(bound::bound(&lists, u64::MAX / 4)), "branch and bound, seed {seed}");
    assert_eq!(whole, sorted(arrays::arrays(graph, all.len() + 1)), "arrays, seed {seed}");
    assert_eq!(whole, sorted(enumeration::enumeration(graph, all.len() + 1)), "enumeration, seed {seed}");
    let mut searched = Vec::new();
    best_first::best_first(&lists, all.len() + 1, |length, edges| searched.push((length, edges.to_vec())));
    if graph.vertices() > 1 {
        assert_eq!(whole, sorted(searched), "best-first, seed {seed}");
    }
    // The first k: the same lengths, and the same paths in the same order for any `expected`.
    for most in [1, 2, 3, 7, 20] {
        let want = &lengths(&all)[..most.min(all.len())];
        assert_eq!(lengths(&arrays::arrays(graph, most)), want, "arrays, k {most}, seed {seed}");
        assert_eq!(
            lengths(&enumeration::enumeration(graph, most)),
            want,
            "enumeration, k {most}, seed {seed}"
        );
        let mut searched = Vec::new();
        best_first::best_first(&lists, most, |length, edges| searched.push((length, edges.to_vec())));
        if graph.vertices() > 1 {
            assert_eq!(lengths(&searched), want, "best-first, k {most}, seed {seed}");
        }
        for expected in [1, most, 1000] {
            let some = shipped(graph, expected, most);
            assert_eq!(some, all[..most.min(all.len())], "k {most}, {expected} expected, seed {seed}");
        }
    }
    let near = timing.length().0 / 20;
    let within = all.iter().filter(|path| path.0 >= timing.length().0 - near).count();
    assert_eq!(bound::bound(&lists, near).len(), within, "within 5 %, seed {seed}");
    all.len()
}

#[test]
fn the_paper_s_four_near_path_algorithms_and_ours_agree() {
    let mut paths = 0;
    for seed in 0..3000 {
        paths += check_whole(&random_graph(seed, 1_000_000_000), seed);
        paths += check_whole(&random_graph(seed, 3), seed);
    }
    assert!(paths > 50_000, "{paths} paths are too few to mean anything");
}

#[test]
fn near_path_algorithms_agree_on_graphs_of_programs() {
    let mut compared = 0;
    for seed in 0..2500 {
        let graph = ActivityGraph::of(&random_program(seed, Lengths::Tied)).expect("a graph");
        let timing = VertexTimes::of(&graph);
        if PathCounts::of(&graph, &timing).all <= 1000 {
            compared += check_whole(&graph, seed);
        }
    }
    assert!(compared > 5_000, "{compared} paths are too few to mean anything");
}

/// A function's time on a path.
fn on_path(graph: &ActivityGraph, path: &[u32], function: FunctionRef) -> u64 {
    let edges = path.iter().map(|edge| graph.activity(ActivityId(*edge)));
    edges.filter(|edge| edge.function == Some(function)).map(|edge| edge.length.0).sum()
}

#[test]
fn slack_and_times_of_an_edge_are_those_of_the_paths_through_it() {
    for seed in 0..800 {
        let graph = random_graph(seed, if seed % 2 == 0 { 3 } else { 1000 });
        let timing = VertexTimes::of(&graph);
        let all = shipped(&graph, 1, usize::MAX);
        let through = {
            let mut paths = NearPaths::new(&graph, &timing, 4);
            paths.by_ref().for_each(drop);
            paths.through(&graph, &timing)
        };
        for edge in 0..graph.edges() as u32 {
            let over: Vec<&Path> = all.iter().filter(|path| path.1.contains(&edge)).collect();
            let longest = over.iter().map(|path| path.0).max().expect("every edge is on a path");
            let times = timing.activity(&graph, ActivityId(edge));
            assert_eq!(times.total_slack.0, timing.length().0 - longest, "seed {seed}, edge {edge}");
            let head = graph.activity(ActivityId(edge)).head;
            let delayed = timing.early(head).0 - times.early_finish.0;
            assert_eq!(times.free_slack.0, delayed, "seed {seed}, edge {edge}");
            let critical = over.iter().filter(|path| path.0 == timing.length().0).count();
            let counts = through[edge as usize];
            assert_eq!((counts.critical as usize, counts.near as usize), (critical, over.len() - critical));
        }
    }
}

fn functions_of(graph: &ActivityGraph) -> (Program, Subjects) {
    let program = Program::default();
    let subjects = Subjects::of(&program, graph);
    (program, subjects)
}

#[test]
fn near_path_metrics_are_those_of_all_paths_listed() {
    let mut settled_early = 0;
    for seed in 0..1500 {
        let graph = random_graph(seed, if seed % 3 == 0 { 4 } else { 1000 });
        let timing = VertexTimes::of(&graph);
        let all = shipped(&graph, 1, usize::MAX);
        let (_, subjects) = functions_of(&graph);
        for most in [1, 2, 5, usize::MAX] {
            let mut paths = NearPaths::new(&graph, &timing, most.min(10));
            paths.by_ref().take(most).for_each(drop);
            let benefits = benefits(&graph, &timing, &paths, &subjects);
            for benefit in &benefits {
                let Subject::Function(function) = benefit.subject else { continue };
                let listed = all.iter().take(most);
                let metric = |path: &Path| on_path(&graph, &path.1, function) + timing.length().0 - path.0;
                assert_eq!(benefit.critical.0, on_path(&graph, &all[0].1, function), "seed {seed}");
                assert_eq!(
                    Some(benefit.maximum.0),
                    listed.clone().map(metric).min(),
                    "seed {seed}, k {most}"
                );
                assert_eq!(Some(benefit.zeroing.0), all.iter().map(metric).min(), "seed {seed}, k {most}");
                let with = |critical: bool| {
                    let on = listed.clone().filter(|path| (path.0 == timing.length().0) == critical);
                    on.filter(|path| on_path(&graph, &path.1, function) > 0).count()
                };
                assert_eq!((benefit.critical_paths, benefit.near_paths), (with(true), with(false)));
                settled_early += usize::from(benefit.settled() && most < all.len());
            }
            let missing = (0..FUNCTIONS).map(FunctionRef).filter(|function| {
                benefits.iter().all(|benefit| benefit.subject != Subject::Function(*function))
            });
            missing.for_each(|function| assert_eq!(on_path(&graph, &all[0].1, function), 0));
        }
    }
    assert!(settled_early > 100, "{settled_early}");
}

#[test]
fn zeroing_is_the_critical_path_of_the_graph_without_the_function() {
    for seed in 0..1500 {
        let graph = random_graph(seed, 50);
        let timing = VertexTimes::of(&graph);
        let (_, subjects) = functions_of(&graph);
        let which: Vec<Subject> =
            (0..FUNCTIONS).map(|function| Subject::Function(FunctionRef(function))).collect();
        for (function, gain) in (0..).zip(zeroing(&graph, &timing, &subjects, &which)) {
            let vertices = (0..graph.vertices()).map(|vertex| VertexId(vertex as u32));
            let mut edges: Vec<_> =
                vertices.flat_map(|vertex| graph.into_vertex(vertex).collect::<Vec<_>>()).collect();
            for edge in edges.iter_mut().filter(|edge| edge.function == Some(FunctionRef(function))) {
                edge.length = Ticks(0);
            }
            let without = ActivityGraph::of_edges(graph.vertices() as u32, &edges).expect("a graph");
            assert_eq!(timing.length().0 - VertexTimes::of(&without).length().0, gain.0, "seed {seed}");
        }
    }
}

/// 1994, section VI: "from a processor perspective". Two processes; the longer one changes its CPU in the middle.
#[test]
fn near_path_metrics_are_summed_up_by_process_and_cpu() {
    let text = r#"{"format":"longpole-program","version":1,"threads":[
        {"name":"A","process":"p","ran_on":[[0,0,0],[0,30,1],[2,20,null]],
         "ops":[["exec","f",40],["io",5,"disk"],["exec","f",60]]},
        {"name":"A2","process":"p","ran_on":[[0,0,0]],"ops":[["exec","f",8]]},
        {"name":"B","process":"q","ran_on":[[0,0,1]],"ops":[["exec","g",70]]},
        {"name":"C","ops":[["exec","h",50]]}]}"#;
    let program = engine::program::json::read(text).expect("a program");
    let graph = ActivityGraph::of(&program).expect("a graph");
    let timing = VertexTimes::of(&graph);
    let mut paths = NearPaths::new(&graph, &timing, 10);
    assert_eq!(paths.by_ref().count(), 4);
    let all = benefits(&graph, &timing, &paths, &Subjects::of(&program, &graph));
    let of = |subject: Subject| {
        let found = all.iter().find(|benefit| benefit.subject == subject).expect("there is such a row");
        assert!(found.settled());
        let ns = |ticks: Ticks| ticks.0 / Ticks::PER_NS;
        (ns(found.critical), ns(found.maximum), found.critical_paths, found.near_paths)
    };
    // Of the length 105, the 70 of B remain without p: 35 are gained.
    assert_eq!(of(Subject::Process(ThreadId(0))), (105, 35, 1, 1));
    assert_eq!(of(Subject::Cpu(0)), (30, 30, 1, 1));
    // A has 10 + 20 on CPU 1; without CPU 1 A still takes 75, and C 50.
    assert_eq!(of(Subject::Cpu(1)), (30, 30, 1, 1));
    // Computing on unknown CPUs is in no row, nor is a subject that can gain nothing.
    assert_eq!(all.iter().filter(|b| matches!(b.subject, Subject::Cpu(_) | Subject::Process(_))).count(), 3);
}

/// There are far more functions than a word has bits, and one walk is for all of them.
#[test]
fn zeroing_of_300_functions_at_once_is_exact() {
    use engine::program::{Function, Operation, Thread};
    let functions = 300;
    let named = |n| Function { name: format!("f{n}"), ..Function::default() };
    let mut program = Program { functions: (0..functions).map(named).collect(), ..Program::default() };
    for thread in 0..2 {
        let operations = (0..functions)
            .map(|n| Operation::ExecIn(FunctionRef(n), Ticks::from_ns(u64::from(n % (5 + thread) + 1))));
        let name = format!("T{thread}");
        program.threads.push(Thread { name, operations: operations.collect(), ..Thread::default() });
    }
    let graph = ActivityGraph::of(&program).expect("a graph");
    let timing = VertexTimes::of(&graph);
    let which: Vec<Subject> = (0..functions).map(|n| Subject::Function(FunctionRef(n))).collect();
    let gains = zeroing(&graph, &timing, &Subjects::of(&program, &graph), &which);
    // Both threads run 300 functions, of average length 3 in thread 0 and 3.5 in thread 1.
    let length = |thread: u32, without: u32| -> u64 {
        (0..functions).filter(|n| *n != without).map(|n| u64::from(n % (5 + thread) + 1)).sum()
    };
    let whole = length(0, functions).max(length(1, functions));
    for (function, gain) in (0..functions).zip(gains) {
        let without = length(0, function).max(length(1, function));
        assert_eq!(gain, Ticks::from_ns(whole - without), "f{function}");
    }
}

fn check_bounds(graph: &ActivityGraph, program: &Program, seed: u64) -> (usize, usize) {
    let timing = VertexTimes::of(graph);
    let subjects = Subjects::of(program, graph);
    let slacks = function_slacks(graph, &timing);
    let which: Vec<Subject> = slacks.iter().map(|slack| Subject::Function(slack.function)).collect();
    let (mut strict, mut some) = (0, 0);
    for (slack, zeroing) in slacks.iter().zip(zeroing(graph, &timing, &subjects, &which)) {
        assert!(slack.slack <= zeroing, "seed {seed}: {slack:?} promises more than {zeroing:?}");
        assert!(zeroing <= slack.critical, "seed {seed}: {zeroing:?} is more than {slack:?}");
        strict += usize::from(slack.slack < zeroing && zeroing < slack.critical);
        some += usize::from(slack.slack > Ticks(0));
    }
    (strict, some)
}

#[test]
fn slack_is_at_most_zeroing_and_zeroing_at_most_the_critical_path() {
    let (mut strict, mut some) = (0, 0);
    for seed in 0..5000 {
        let (a, b) = check_bounds(
            &random_graph(seed, if seed % 2 == 0 { 5 } else { 1000 }),
            &Program::default(),
            seed,
        );
        (strict, some) = (strict + a, some + b);
        let program = random_program(seed, if seed % 2 == 0 { Lengths::Tied } else { Lengths::Spread });
        let graph = ActivityGraph::of(&program).expect("a graph");
        let (a, b) = check_bounds(&graph, &program, seed);
        (strict, some) = (strict + a, some + b);
    }
    assert!(strict > 200 && some > 1000, "{strict} {some}: the bounds were hardly tried");
}

/// The savings that slack segments allow are real: with calls on the critical path shortened as far as every segment allows,
/// no other path becomes the longest.
#[test]
fn savings_that_slack_segments_allow_are_real() {
    for seed in 0..1500 {
        let graph = random_graph(seed, 20);
        let timing = VertexTimes::of(&graph);
        let path = timing.critical_path(&graph);
        let place = |vertex: VertexId| {
            path.iter().position(|edge| graph.activity(*edge).head == vertex).map_or(0, |place| place + 1)
        };
        let on_path = |vertex: VertexId| vertex.0 == 0 || place(vertex) > 0;
        let segments = slack_segments(&graph, &timing);
        for segment in &segments {
            assert!(segment.from < segment.to);
        }
        // Greedy savings on every edge of the critical path.
        let mut saved = vec![0_u64; path.len()];
        for number in 0..path.len() {
            let around = segments.iter().filter(|s| (s.from as usize) <= number && number < s.to as usize);
            let left = around.map(|s| s.slack.0 - saved[s.from as usize..number].iter().sum::<u64>()).min();
            let length = graph.activity(path[number]).length.0;
            saved[number] = left.unwrap_or(u64::MAX).min(length);
        }
        let total: u64 = saved.iter().sum();
        let vertices = (0..graph.vertices()).map(|vertex| VertexId(vertex as u32));
        let mut edges: Vec<_> =
            vertices.flat_map(|vertex| graph.into_vertex(vertex).collect::<Vec<_>>()).collect();
        for (edge, saved) in path.iter().zip(&saved) {
            edges[edge.0 as usize].length.0 -= saved;
        }
        let shorter = ActivityGraph::of_edges(graph.vertices() as u32, &edges).expect("a graph");
        assert_eq!(VertexTimes::of(&shorter).length().0, timing.length().0 - total, "seed {seed}");
        assert!(path.iter().all(|edge| on_path(graph.activity(*edge).head)));
    }
}

fn find(benefits: &[Benefit], function: u32) -> &Benefit {
    benefits
        .iter()
        .find(|b| b.subject == Subject::Function(FunctionRef(function)))
        .expect("on the critical path")
}

/// 1994, near-critical paths, Fig. 7, rebuilt from section VI: the largest component of the critical path is not the best one
/// to improve.
#[test]
fn the_largest_component_of_the_critical_path_is_not_the_best_to_improve() {
    // Critical path: a 60, b 40. The second path (95) has 55 of b, and none of a.
    let edge = |tail, head, length, function| compute_edge(tail, head, length, Some(FunctionRef(function)));
    let edges = [edge(0, 1, 60, 0), edge(1, 3, 40, 1), edge(0, 2, 40, 2), edge(2, 3, 55, 1)];
    let graph = ActivityGraph::of_edges(4, &edges).expect("a graph");
    let timing = VertexTimes::of(&graph);
    let (_, subjects) = functions_of(&graph);
    let metric = |most: usize| {
        let mut paths = NearPaths::new(&graph, &timing, most);
        paths.by_ref().take(most).for_each(drop);
        benefits(&graph, &timing, &paths, &subjects)
    };
    let one = metric(1);
    assert_eq!((find(&one, 0).maximum, find(&one, 1).maximum), (Ticks(60), Ticks(40)));
    let two = metric(2);
    assert_eq!((find(&two, 0).maximum, find(&two, 1).maximum), (Ticks(5), Ticks(40)));
    assert!(find(&two, 0).settled() && find(&two, 1).settled() && !find(&one, 0).settled());
}

/// Hollingsworth and Miller 1994, Fig. 1 to 3, rebuilt from the text. The critical path is A B C D E F. Ways from A and C
/// join off it in G, where A's is 1 shorter; from G two more units lead over H to F. Fig. 3 names the four slack segments.
#[test]
fn the_paper_s_example_of_1994_has_its_four_slack_segments() {
    let (a, b, c, d, g, e, h, f) = (0, 1, 2, 3, 4, 5, 6, 7);
    let edge = |tail, head, length| compute_edge(tail, head, length, None);
    let along = [(a, b, 2), (b, c, 2), (c, d, 2), (d, e, 2), (e, f, 2)];
    let around = [(a, g, 4), (c, g, 1), (g, h, 1), (h, f, 2), (c, d, 1), (b, e, 6)];
    let edges: Vec<_> =
        along.iter().chain(&around).map(|(tail, head, length)| edge(*tail, *head, *length)).collect();
    let graph = ActivityGraph::of_edges(8, &edges).expect("a graph");
    let timing = VertexTimes::of(&graph);
    let names = ["A", "B", "C", "D", "E", "F"];
    let segments = slack_segments(&graph, &timing);
    let picture: Vec<String> = segments
        .iter()
        .map(|s| format!("({}-{},{})", names[s.from as usize], names[s.to as usize], s.slack.0))
        .collect();
    assert_eq!(picture, ["(A-C,1)", "(B-E,0)", "(C-F,2)", "(C-D,1)"]);
}

/// Their Fig. 5: in a well-balanced data-parallel program, the slack metric is small, while leaving a function out gains
/// nearly all its time on the critical path. For a function outside of the parallel part, all three are alike.
#[test]
fn a_data_parallel_program_has_the_metrics_order_of_figure_5() {
    let mut threads = vec![String::new(); 4];
    let mut numbers = engine::synth::Numbers::new(5);
    for _ in 0..20 {
        for thread in &mut threads {
            for (function, length) in [("Tcol", 1000), ("sElem", 700), ("cmod", 650), ("mycalloc", 400)] {
                let length = length - 20 + numbers.below(40);
                thread.push_str(&format!("[\"exec\",\"{function}\",{length}],"));
            }
            thread.push_str("[\"barrier\",\"b\",4],");
        }
    }
    let list: Vec<String> = threads
        .iter()
        .enumerate()
        .map(|(number, operations)| {
            let last = if number == 0 { "[\"exec\",\"printCmat\",30000]" } else { "[\"exec\",1]" };
            format!("{{\"name\":\"T{number}\",\"ops\":[{operations}{last}]}}")
        })
        .collect();
    let text = format!("{{\"format\":\"longpole-program\",\"version\":1,\"threads\":[{}]}}", list.join(","));
    let program = engine::program::json::read(&text).expect("a program");
    let graph = ActivityGraph::of(&program).expect("a graph");
    let timing = VertexTimes::of(&graph);
    let subjects = Subjects::of(&program, &graph);
    let slacks = function_slacks(&graph, &timing);
    let which: Vec<Subject> = slacks.iter().map(|slack| Subject::Function(slack.function)).collect();
    for (slack, zeroing) in slacks.iter().zip(zeroing(&graph, &timing, &subjects, &which)) {
        let name = &program.functions[slack.function.0 as usize].name;
        let share = |ticks: Ticks| ticks.0 as f64 / slack.critical.0 as f64;
        if name == "printCmat" {
            assert!(share(slack.slack) > 0.99 && share(zeroing) > 0.99, "{slack:?} {zeroing:?}");
        } else {
            assert!(share(slack.slack) < 0.1, "{name}: {slack:?} {zeroing:?}");
            assert!(share(zeroing) > 0.85 && share(zeroing) <= 1.0, "{name}: {slack:?} {zeroing:?}");
        }
    }
    assert_eq!(slacks.len(), 5);
}
