//! The paper's best-first search (1994, near-critical paths, III.D), with shared path entries, two heaps and shrinking
//! out-degrees. O(ke) time, O(k + e) memory.

use super::rival::{Edge, Lists};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const NONE: u32 = u32::MAX;

struct Descriptor {
    /// Sum of free slack of the edges before the second segment.
    free_sum: u64,
    parent: u32,
    /// Number of edges of the first segment.
    shared: u32,
    /// First entry of the second segment.
    first: u32,
    waiting: bool,
}

struct Search<'l> {
    lists: &'l Lists,
    most: usize,
    descriptors: Vec<Descriptor>,
    /// Edge, and index of the next entry.
    entries: Vec<(Edge, u32)>,
    /// By vertex: the first entry of the longest way from it to the sink.
    longest: Vec<u32>,
    out_degree: Vec<u32>,
    least: BinaryHeap<Reverse<(u64, u32)>>,
    greatest: BinaryHeap<(u64, u32)>,
    kept: usize,
}

/// Calls `output` with length and edges of the `most` longest paths.
pub fn best_first(lists: &Lists, most: usize, mut output: impl FnMut(u64, &[u32])) {
    let vertices = lists.vertices();
    let mut search = Search {
        lists,
        most,
        descriptors: Vec::new(),
        entries: Vec::new(),
        longest: vec![NONE; vertices],
        out_degree: (0..vertices).map(|vertex| lists.out_of(vertex as u32).len() as u32).collect(),
        least: BinaryHeap::new(),
        greatest: BinaryHeap::new(),
        kept: 0,
    };
    search.evaluate_from(0, 0, 0, NONE, 0);
    let mut path = Vec::new();
    while let Some(Reverse((cost, number))) = search.least.pop() {
        if !std::mem::replace(&mut search.descriptors[number as usize].waiting, false) {
            continue;
        }
        search.traverse(number, &mut path);
        output(lists.length - cost, &path);
    }
}

impl Search<'_> {
    /// Evaluates the edges out of a vertex, without the first `skipped`.
    fn evaluate_from(&mut self, vertex: u32, skipped: u32, free_sum: u64, parent: u32, shared: u32) {
        for place in skipped..self.out_degree[vertex as usize] {
            let edge = self.lists.out_of(vertex)[place as usize];
            if !self.evaluate(edge, free_sum, parent, shared) {
                self.out_degree[vertex as usize] = place;
                return;
            }
        }
    }

    fn evaluate(&mut self, edge: Edge, free_sum: u64, parent: u32, shared: u32) -> bool {
        let cost = free_sum + edge.total_slack;
        if self.kept == self.most {
            while self.greatest.peek().is_some_and(|(_, last)| !self.descriptors[*last as usize].waiting) {
                self.greatest.pop();
            }
            match self.greatest.peek() {
                Some((most, last)) if cost < *most => {
                    self.descriptors[*last as usize].waiting = false;
                    self.greatest.pop();
                }
                _ => return false,
            }
        } else {
            self.kept += 1;
        }
        let first = self.entries.len() as u32;
        self.entries.push((edge, NONE));
        let number = self.descriptors.len() as u32;
        self.descriptors.push(Descriptor { free_sum, parent, shared, first, waiting: true });
        self.least.push(Reverse((cost, number)));
        self.greatest.push((cost, number));
        true
    }

    fn traverse(&mut self, number: u32, path: &mut Vec<u32>) {
        self.first_segment(number, path);
        let mut entry = self.descriptors[number as usize].first;
        let mut free_sum = self.descriptors[number as usize].free_sum;
        loop {
            let edge = self.entries[entry as usize].0;
            path.push(edge.number);
            let longest = &mut self.longest[edge.tail as usize];
            if *longest == NONE {
                *longest = entry;
            }
            let Some(next) = self.lists.out_of(edge.head).first().copied() else { return };
            free_sum += edge.free_slack;
            self.evaluate_from(edge.head, 1, free_sum, number, path.len() as u32);
            let mut link = self.longest[edge.head as usize];
            if link == NONE {
                link = self.entries.len() as u32;
                self.entries.push((next, NONE));
            }
            self.entries[entry as usize].1 = link;
            entry = link;
        }
    }

    /// The edges that the path shares with its ancestors.
    fn first_segment(&self, number: u32, path: &mut Vec<u32>) {
        path.clear();
        let mut chain = vec![number];
        while let Some(last) = chain.last()
            && self.descriptors[*last as usize].parent != NONE
        {
            chain.push(self.descriptors[*last as usize].parent);
        }
        for pair in chain.windows(2).rev() {
            let (child, parent) = (&self.descriptors[pair[0] as usize], &self.descriptors[pair[1] as usize]);
            let mut entry = parent.first;
            while path.len() < child.shared as usize {
                path.push(self.entries[entry as usize].0.number);
                entry = self.entries[entry as usize].1;
            }
        }
    }
}
