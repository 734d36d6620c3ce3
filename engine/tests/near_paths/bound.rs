//! Branch and bound (1994, near-critical paths, III.C): a depth-first search that leaves a branch when the free slack so far
//! plus the next edge's total slack exceeds the limit.

use super::Path;
use super::rival::Lists;

/// All paths shorter than the critical path by at most `most_slack`, in the order of the search.
pub fn bound(lists: &Lists, most_slack: u64) -> Vec<Path> {
    let mut search = Search { lists, most_slack, path: Vec::new(), free_sum: 0, found: Vec::new() };
    if lists.vertices() == 1 {
        return vec![(0, Vec::new())];
    }
    search.leave(0);
    search.found
}

struct Search<'l> {
    lists: &'l Lists,
    most_slack: u64,
    path: Vec<u32>,
    free_sum: u64,
    found: Vec<Path>,
}

impl Search<'_> {
    fn leave(&mut self, vertex: u32) {
        for edge in self.lists.out_of(vertex) {
            if self.free_sum + edge.total_slack > self.most_slack {
                continue;
            }
            self.path.push(edge.number);
            if self.lists.out_of(edge.head).is_empty() {
                let length = self.lists.length - (self.free_sum + edge.total_slack);
                self.found.push((length, self.path.clone()));
            } else {
                self.free_sum += edge.free_slack;
                self.leave(edge.head);
                self.free_sum -= edge.free_slack;
            }
            self.path.pop();
        }
    }
}
