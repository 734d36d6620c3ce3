"""Holds a file against speedscope's schema, and compares its sums with a report."""

import collections
import json
import sys

import jsonschema

profile = json.load(open(sys.argv[1]))
report = json.load(open(sys.argv[2]))
jsonschema.validate(profile, json.load(open(sys.argv[3])))

frames = [frame["name"] for frame in profile["shared"]["frames"]]
cpu, *critical = profile["profiles"]
assert cpu["name"] == "CPU time"
assert len(critical) == len(report["results"])
for one, result in zip(critical, report["results"]):
    own, within = collections.Counter(), collections.Counter()
    assert len(one["samples"]) == len(one["weights"])
    for stack, weight in zip(one["samples"], one["weights"]):
        assert stack and weight >= 0
        own[frames[stack[-1]]] += weight
        for name in {frames[frame] for frame in stack}:
            within[name] += weight
    assert sum(one["weights"]) == one["endValue"] - one["startValue"]
    room = len(one["samples"]) + 1
    has_negative = any(row["tet_ns"] < 0 for row in result["functions"])
    if not has_negative:
        for row in result["functions"]:
            assert abs(own[row["function"]] - row["tet_ns"]) <= room, (row, own[row["function"]])
            # A report counts a caller twice that both probes and samples show, if samples of several callers are together.
            off = within[row["function"]] - row["tetid_ns"]
            assert -0.03 * result["time_ns"] - room <= off <= room, (row, within[row["function"]])
print("ok")
