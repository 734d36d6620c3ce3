//! The deciding points of a schedule. Exactly one point decides each moment: the end of the timed step (compute, I/O,
//! sleep) that arrived last. An earlier point, the parent, decides the step's own start, so the points form a tree
//! under the start of the program (a method of longpole's own;  see docs/algorithms.md). Of two last arrivals at the
//! same time neither decides alone: their lowest common ancestor does.

/// A deciding point. A parent's number is smaller than its children's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PointId(pub u32);

impl PointId {
    /// The start of the program.
    pub const START: PointId = PointId(0);

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Copy, Debug)]
struct Point {
    parent: u32,
    /// An ancestor further up (skew-binary jump pointers: Myers, "An applicative random-access stack", 1983). By it,
    /// finding an ancestor takes logarithmic time in a tree that grows at its leaves.
    jump: u32,
    depth: u32,
}

/// The tree of deciding points, grown by the simulation.
#[derive(Clone, Debug)]
pub struct Forest {
    points: Vec<Point>,
}

impl Forest {
    pub(in crate::schedule) fn with_capacity(points: usize) -> Forest {
        let mut forest = Forest { points: Vec::with_capacity(points.saturating_add(1)) };
        forest.points.push(Point { parent: 0, jump: 0, depth: 0 });
        forest
    }

    /// Number of points, [`PointId::START`] included; they are numbered from 0.
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Never: there is always [`PointId::START`].
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// The point that decided the start of the step that ends in `point`; the start of the program is its own parent.
    pub fn parent(&self, point: PointId) -> PointId {
        PointId(self.points[point.index()].parent)
    }

    /// Adds a point whose step starts at `parent`. [`crate::program::Program::check`] bounds the number of points.
    pub(in crate::schedule) fn add(&mut self, parent: PointId) -> PointId {
        let above = self.points[parent.index()];
        let jump = self.points[above.jump as usize];
        let further = self.points[jump.jump as usize];
        let even = above.depth.wrapping_sub(jump.depth) == jump.depth.wrapping_sub(further.depth);
        let id = PointId(self.points.len() as u32);
        self.points.push(Point {
            parent: parent.0,
            jump: if even { jump.jump } else { parent.0 },
            depth: above.depth.saturating_add(1),
        });
        id
    }

    /// The lowest common ancestor; a point counts as its own ancestor. Takes time logarithmic in the points' depth.
    pub fn common(&self, a: PointId, b: PointId) -> PointId {
        if a == b {
            return a;
        }
        let (mut a, mut b) = self.level(a, b);
        while a != b {
            let (at, bt) = (self.points[a.index()], self.points[b.index()]);
            (a, b) = if at.jump == bt.jump {
                (PointId(at.parent), PointId(bt.parent))
            } else {
                (PointId(at.jump), PointId(bt.jump))
            };
        }
        a
    }

    /// Compares two points by the order of a depth-first walk, which visits children by their numbers.
    pub(crate) fn walk_order(&self, a: PointId, b: PointId) -> std::cmp::Ordering {
        if a == b {
            return std::cmp::Ordering::Equal;
        }
        let (depth_a, depth_b) = (self.points[a.index()].depth, self.points[b.index()].depth);
        let (mut above_a, mut above_b) = self.level(a, b);
        if above_a == above_b {
            return depth_a.cmp(&depth_b);
        }
        loop {
            let (at, bt) = (self.points[above_a.index()], self.points[above_b.index()]);
            if at.parent == bt.parent {
                return above_a.cmp(&above_b);
            }
            (above_a, above_b) = if at.jump == bt.jump {
                (PointId(at.parent), PointId(bt.parent))
            } else {
                (PointId(at.jump), PointId(bt.jump))
            };
        }
    }

    /// Returns both points, the deeper one replaced by its ancestor at the depth of the other point.
    fn level(&self, a: PointId, b: PointId) -> (PointId, PointId) {
        let (depth_a, depth_b) = (self.points[a.index()].depth, self.points[b.index()].depth);
        (self.ancestor(a, depth_a.min(depth_b)), self.ancestor(b, depth_a.min(depth_b)))
    }

    fn ancestor(&self, mut point: PointId, depth: u32) -> PointId {
        loop {
            let here = self.points[point.index()];
            if here.depth <= depth {
                return point;
            }
            let far = self.points[here.jump as usize].depth >= depth;
            point = PointId(if far { here.jump } else { here.parent });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn above(forest: &Forest, mut point: PointId) -> Vec<PointId> {
        let mut path = vec![point];
        while point != PointId::START {
            point = forest.parent(point);
            path.push(point);
        }
        path
    }

    proptest! {
        #[test]
        fn common_ancestors_and_walk_order_in_a_forest_agree_with_its_paths(choices in prop::collection::vec(any::<u32>(), 1..200)) {
            let mut forest = Forest::with_capacity(choices.len());
            for (index, choice) in choices.iter().enumerate() {
                // Long chains with some branches.
                let up = if choice % 4 == 0 { *choice as usize % (index + 1) } else { 0 };
                forest.add(PointId((index - up) as u32));
            }
            for (index, choice) in choices.iter().enumerate() {
                let (a, b) = (PointId(index as u32), PointId(choice % (index as u32 + 2)));
                let (path_a, path_b) = (above(&forest, a), above(&forest, b));
                let expected = path_a.iter().find(|point| path_b.contains(point)).copied();
                prop_assert_eq!(Some(forest.common(a, b)), expected);
                let from_start = |path: &[PointId]| path.iter().rev().copied().collect::<Vec<_>>();
                prop_assert_eq!(forest.walk_order(a, b), from_start(&path_a).cmp(&from_start(&path_b)));
            }
        }
    }
}
