//! Values without what differs from run to run, for snapshots.

use outrigger_protocol::Frame;
use outrigger_sim::cassette::normalised;
use serde_json::Value;

/// A frame as a value that is the same in each run: ids are numbered in their order (`[uuid-1]`), times, durations, costs and
/// counts of tokens are their names in brackets, directories of this machine are `[cwd]`, `[home]`, `[tmp]`.
///
/// Made for `insta::assert_json_snapshot!` and its like, which needs nothing else of this crate. Ids are numbered within one call;
/// to have the same number for the same id across frames, give them together to [`snapshot_all`].
///
/// A frame that is no JSON is `null`.
pub fn snapshot(frame: &Frame) -> Value {
    snapshot_all([frame]).pop().unwrap_or_default()
}

/// Several frames as [`snapshot`] has one. An id has the same number in all of them.
pub fn snapshot_all<'f>(frames: impl IntoIterator<Item = &'f Frame>) -> Vec<Value> {
    let parse = |frame: &Frame| serde_json::from_slice(frame.bytes()).unwrap_or_default();
    normalised(frames.into_iter().map(parse).collect())
}
