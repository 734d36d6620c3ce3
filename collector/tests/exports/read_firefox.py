"""Checks a processed profile of the Firefox Profiler, and compares its sums with a report."""

import collections
import json
import sys

profile, report = (json.load(open(path)) for path in sys.argv[1:3])
meta = profile["meta"]
assert meta["preprocessedProfileVersion"] > 40 and meta["categories"] and meta["interval"] > 0
types = {schema["name"] for schema in meta["markerSchema"]}
waits = collections.Counter()
paths = []
for thread in profile["threads"]:
    strings = thread["stringArray"] if "stringArray" in thread else profile["shared"]["stringArray"]
    frames, stacks, samples, markers = (thread[key] for key in ["frameTable", "stackTable", "samples", "markers"])
    assert all(0 <= func < thread["funcTable"]["length"] for func in frames["func"])
    assert all(0 <= name < len(strings) for name in thread["funcTable"]["name"])
    assert all(prefix is None or prefix < place for place, prefix in enumerate(stacks["prefix"]))
    assert all(stack is None or 0 <= stack < stacks["length"] for stack in samples["stack"])
    assert len(samples["stack"]) == samples["length"] and len(markers["data"]) == markers["length"]
    length = 0.0
    for place in range(markers["length"]):
        data, name = markers["data"][place], strings[markers["name"][place]]
        assert data["type"] in types
        taken = (markers["endTime"][place] - markers["startTime"][place]) * 1e6
        assert taken >= 0
        if data["type"] == "Wait" and name.startswith("blocked: "):
            wait = next(w for w in report["waits"] if name.startswith("blocked: " + w["name"]))
            waits[wait["name"]] += taken
        if data["type"] == "Path":
            length = max(length, markers["endTime"][place] * 1e6)
    if thread["name"].startswith("critical path"):
        paths.append(length)
expected = collections.Counter()
for wait in report.get("waits", []):
    expected[wait["name"]] += wait["wait_ns"]
for name, ns in expected.items():
    assert abs(waits[name] - ns) < 1e-6 * ns + 1000, (name, waits[name], ns)
assert len(paths) == len(report["results"])
if waits:
    for length, result in zip(paths, report["results"]):
        assert abs(length - result["time_ns"]) < 1000, (length, result["time_ns"])
print("ok")
