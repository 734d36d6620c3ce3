"""Checks a trace of Chrome's trace event format, and compares its sums with a report."""

import collections
import json
import sys

trace, report = (json.load(open(path)) for path in sys.argv[1:3])
known = {"M": set(), "X": {"ts", "dur", "name"}, "B": {"ts", "name"}, "E": {"ts"}, "C": {"ts", "name", "args"},
         "s": {"ts", "id", "cat", "name"}, "f": {"ts", "id", "cat", "name", "bp"}, "b": {"ts", "id", "cat", "name"},
         "e": {"ts", "id", "cat", "name"}}
names, open_calls, flows = {}, collections.Counter(), {}
slices, async_open = collections.defaultdict(list), {}
waits = collections.Counter()
for event in trace["traceEvents"]:
    assert known[event["ph"]] <= event.keys(), event
    track = event["pid"], event["tid"]
    if event["ph"] == "M" and event["name"] == "thread_name":
        names[track] = event["args"]["name"]
    elif event["ph"] == "X":
        assert event["dur"] >= 0
        slices[track].append(event)
    elif event["ph"] in "BE":
        open_calls[track] += 1 if event["ph"] == "B" else -1
        assert open_calls[track] >= 0
    elif event["ph"] == "s":
        assert event["id"] not in flows
        flows[event["id"]] = event["ts"]
    elif event["ph"] == "b":
        async_open[event["id"], event["name"]] = event["ts"]
    elif event["ph"] == "e":
        assert async_open.pop((event["id"], event["name"])) <= event["ts"]
for event in trace["traceEvents"]:
    if event["ph"] == "f":
        assert flows[event["id"]] <= event["ts"]
assert not any(open_calls.values()) and not async_open
for track, of_track in slices.items():
    if names.get(track, "").endswith(" state"):
        for event in of_track:
            if event["name"].startswith("blocked: "):
                wait = next(w for w in report["waits"] if event["name"].startswith("blocked: " + w["name"]))
                waits[wait["name"]] += event["dur"] * 1000
expected = collections.Counter()
for wait in report.get("waits", []):
    expected[wait["name"]] += wait["wait_ns"]
for name, ns in expected.items():
    assert abs(waits[name] - ns) < 1e-6 * ns + 1000, (name, waits[name], ns)
paths = [track for track in sorted(slices) if track[0] == 0]
if waits:
    assert len(paths) == len(report["results"])
    for track, result in zip(paths, report["results"]):
        length = sum(event["dur"] for event in slices[track]) * 1000
        assert abs(length - result["time_ns"]) < 1e-6 * result["time_ns"] + 1, (length, result["time_ns"])
print("ok")
