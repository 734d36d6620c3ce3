"""Reads a trace with Perfetto's protobuf classes, checks that it is well made, and compares its sums with a report."""

import collections
import json
import sys

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

trace = Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())
report = json.load(open(sys.argv[2]))

tracks, names, keys = {}, {}, {}
open_slices = collections.defaultdict(list)
last = collections.defaultdict(int)
slices = collections.defaultdict(list)
flow_starts, flow_ends = {}, {}
counter = []

for number, packet in enumerate(trace.packet):
    assert packet.trusted_packet_sequence_id == 1
    assert bool(packet.sequence_flags & 1) == (number == 0), "numbers of names begin anew once"
    for name in packet.interned_data.event_names:
        assert name.iid and name.iid not in names
        names[name.iid] = name.name
    for name in packet.interned_data.debug_annotation_names:
        assert name.iid and name.iid not in keys
        keys[name.iid] = name.name
    if packet.HasField("track_descriptor"):
        track = packet.track_descriptor
        assert track.uuid and track.uuid not in tracks
        assert not track.parent_uuid or track.parent_uuid in tracks, "parents come first"
        tracks[track.uuid] = track
    if not packet.HasField("track_event"):
        continue
    event, time = packet.track_event, packet.timestamp
    assert event.track_uuid in tracks, "an event on no track"
    values = {}
    for value in event.debug_annotations:
        values[keys[value.name_iid]] = value.string_value or value.double_value or value.uint_value or value.bool_value
    if event.type == TrackEvent.TYPE_SLICE_BEGIN:
        assert time >= last[event.track_uuid], "time goes back"
        last[event.track_uuid] = time
        open_slices[event.track_uuid].append((names[event.name_iid], time, values))
    elif event.type == TrackEvent.TYPE_SLICE_END:
        assert time >= last[event.track_uuid], "time goes back"
        last[event.track_uuid] = time
        name, begun, values = open_slices[event.track_uuid].pop()
        slices[event.track_uuid].append((name, begun, time, values))
    elif event.type == TrackEvent.TYPE_COUNTER:
        counter.append((time, event.counter_value))
    else:
        assert event.type == TrackEvent.TYPE_INSTANT and names[event.name_iid]
    for flow in event.flow_ids:
        assert flow not in flow_starts
        flow_starts[flow] = time
    for flow in event.terminating_flow_ids:
        assert flow not in flow_ends
        flow_ends[flow] = time

assert not any(open_slices.values()), "slices that never end"
assert flow_ends.keys() <= flow_starts.keys(), "an arrow from nowhere"
assert all(flow_starts[flow] <= time for flow, time in flow_ends.items()), "a cause after its effect"
told = []


def name_of(uuid):
    return tracks[uuid].name


def parent_of(uuid):
    return tracks[uuid].parent_uuid


# States: a thread's follow each other without a hole, and waits add up to those of the report.
waits = collections.Counter()
running = 0
unknown = 0
for uuid, track in tracks.items():
    if track.name != "state" or not tracks[track.parent_uuid].HasField("thread"):
        continue
    states = slices[uuid]
    for before, after in zip(states, states[1:]):
        assert before[2] == after[1], f"a hole between {before} and {after}"
    for name, begun, ended, values in states:
        if name.startswith("blocked: "):
            wait = name.removeprefix("blocked: ").split(", ")[0]
            wait = next(w["name"] for w in report["waits"] if name.startswith("blocked: " + w["name"]))
            waits[wait, bool(values.get("idle"))] += ended - begun
        elif name.startswith("running") or name.startswith("spinning"):
            running += ended - begun
        elif name.startswith("unknown"):
            unknown += ended - begun
if running:
    expected = collections.Counter()
    for wait in report.get("waits", []):
        expected[wait["name"], wait["idle"]] += wait["wait_ns"]
    assert waits == expected, (waits, expected)
    assert unknown == report["trust"]["unknown_ns"], unknown
    # What the counter says is what the states say.
    area = sum(value * (after - time) for (time, value), (after, _) in zip(counter, counter[1:]))
    assert counter[-1][1] == 0 and area == running, (area, running)
    told.append("states")
if flow_ends:
    told.append("flows")

# Locks.
held, waited = collections.Counter(), collections.Counter()
for uuid, of_track in slices.items():
    lock = parent_of(uuid)
    if not lock or parent_of(lock) == 0 or name_of(parent_of(lock)) != "Locks":
        continue
    for name, begun, ended, _ in of_track:
        (waited if name == "waits for it" else held)[name_of(lock)] += ended - begun
for lock in report.get("locks", []):
    if lock["lock"] in held:
        assert held[lock["lock"]] == lock["hold_ns"], (lock, held)
        assert waited[lock["lock"]] == lock["wait_ns"], (lock, waited)
        told.append("locks")
assert set(held) <= {lock["lock"] for lock in report.get("locks", [])}

# Critical paths.
group = next(uuid for uuid, track in tracks.items() if track.name.startswith("Critical path"))
by_count = {}
for uuid, track in tracks.items():
    if track.parent_uuid == group:
        by_count[track.sibling_order_rank] = uuid
assert len(by_count) == len(report["results"])
for place, result in enumerate(report["results"]):
    uuid = by_count[place]
    if "--weights" in sys.argv:
        below = [child for child, track in tracks.items() if track.parent_uuid == uuid]
        sums = collections.Counter()
        for child in below:
            for name, begun, ended, values in slices[child]:
                sums[name] += values["weight"] * (ended - begun)
        for row in result["functions"]:
            assert abs(sums[row["function"]] - row["tet_ns"]) < 1, (row, sums)
    else:
        path = slices[uuid]
        for before, after in zip(path, path[1:]):
            assert before[2] == after[1], "a hole in the path"
        length = path[-1][2] - path[0][1] if path else 0
        assert abs(length - result["time_ns"]) <= 1, (length, result["time_ns"])
told.append("paths")
print("ok", *dict.fromkeys(told))
