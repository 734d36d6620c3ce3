//! The program activity graph (1994, near-critical paths; Hollingsworth and Miller 1994) and its algorithms: early and late
//! times and slack, the longest paths in order, and bounds on the gain of a function, a thread or a lock. All results are for
//! the schedule on unlimited processors.

mod activity;
mod benefit;
mod build;
mod count;
mod delays;
mod detours;
mod labels;
mod objects;
mod of_program;
mod paths;
mod paths_report;
mod placed;
mod route;
mod slack;
mod slack_report;
mod subjects;
mod timing;
mod zeroing;

pub use activity::{Activity, ActivityGraph, ActivityId, ActivityKind, GraphError, VertexId};
pub use benefit::{Benefit, benefits};
pub use count::{PathCounts, Through};
pub use paths::{NearPath, NearPaths};
pub use paths_report::{
    BenefitRow, PathRow, PathsReport, PathsWanted, SegmentPaths, ShownEdge, ShownPath, path_row, paths_of,
    paths_report,
};
pub use route::{NamedActivity, Stay, StayPart};
pub use slack::{FunctionSlack, SlackSegment, function_slacks, slack_segments};
pub use slack_report::{SegmentTimes, SlackReport, SlackRow, slack_of, slack_report};
pub use subjects::{Class, Subject, Subjects};
pub use timing::{ActivityTimes, VertexTimes};
pub use zeroing::zeroing;
