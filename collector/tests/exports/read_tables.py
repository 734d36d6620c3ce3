"""Reads the tables of a recording with DuckDB, and compares their sums with a report."""

import json
import sys

import duckdb

folder, kind, report = sys.argv[1], sys.argv[2], json.load(open(sys.argv[3]))
reader = {"csv": "read_csv('{}', header = true)", "ndjson": "read_json('{}', format = 'newline_delimited')",
          "parquet": "read_parquet('{}')"}[kind]
database = duckdb.connect()
# Text without rows says nothing of its columns' types.
empty = set()
for name in ["recordings", "threads", "intervals", "calls", "wakes", "sections", "functions", "locks", "waits", "stacks",
             "paths"]:
    file = f"{folder}/{name}.{kind}"
    if kind != "parquet" and sum(1 for _ in open(file)) <= (kind == "csv"):
        empty.add(name)
    else:
        database.execute(f"create view {name} as select * from " + reader.format(file))


def rows(query, *values):
    if any(f"from {name}" in query for name in empty):
        return []
    return database.execute(query, values).fetchall()


def near(a, b, room=1e-6):
    assert abs(a - b) <= room * max(abs(a), abs(b)) + 0.01, (a, b)


assert rows("select count(*) from recordings") == [(1,)]
events, lost, unknown = rows("select events, lost, unknown_ns from recordings")[0]
assert (events, lost, unknown) == tuple(report["trust"][key] for key in ["events", "lost", "unknown_ns"])
assert rows("select recorded_at_ns > 1600000000000000000 from recordings") == [(True,)]

# What threads waited for.
waits = rows("select reason, idle, count(*), sum(end_ns - start_ns) from intervals where state = 'blocked' group by all")
expected = [(wait["name"], wait["idle"], wait["waits"], wait["wait_ns"]) for wait in report.get("waits", [])]
assert sorted(waits) == sorted(expected), (waits, expected)
holes = rows("select count(*) from (select start_ns, lag(end_ns) over (partition by thread order by start_ns, end_ns) as"
             " before from intervals) where before is not null and before <> start_ns")
assert holes == [(0,)], holes
assert rows("select count(*) from wakes anti join threads on wakes.waker = threads.thread") in ([(0,)], [])

# Locks: what was measured and what is told of each CPU count.
for lock, held, waited in rows("select lock, sum(end_ns - start_ns), sum(waited_ns) from sections group by lock"):
    row = next(row for row in report["locks"] if row["lock"] == lock)
    assert (held, waited) == (row["hold_ns"], row["wait_ns"]), (row, held, waited)

for result in report["results"]:
    cpus = None if result["cpus"] == "inf" else result["cpus"]
    found = rows("select function, time_ns, own_ns, total_ns from functions where cpus is not distinct from ?", cpus)
    assert len(found) == len(result["functions"])
    for function, time_ns, own, total in found:
        row = next(row for row in result["functions"] if row["function"] == function)
        assert (time_ns, own, total) == (result["time_ns"], row["tet_ns"], row["tetid_ns"]), row
    for lock, critical in rows("select lock, critical_ns from locks where cpus is not distinct from ?", cpus):
        assert critical == next(row["held_ns"] for row in result["locks"] if row["lock"] == lock)
    time_ns, speedup = rows("select any_value(time_ns), any_value(speedup) from waits where cpus is not distinct from ?",
                            cpus)[0]
    assert (time_ns, speedup) == (result["time_ns"], result["speedup"])
    # Stacks and what is not computed are the whole predicted time, and so is the path.
    whole = rows("select sum(critical_ns) from waits where cpus is not distinct from ?", cpus)[0][0]
    near(whole, result["time_ns"])
    owed = rows("select coalesce(sum(critical_ns), 0) from stacks where cpus is not distinct from ?", cpus)[0][0]
    passed = rows("select coalesce(sum(critical_ns), 0) from waits where not starts_with(wait, 'computing') and cpus is not distinct from ?",
                  cpus)[0][0]
    near(owed + passed, result["time_ns"])
    elsewhere = rows("select critical_ns from waits where wait = 'computing_elsewhere' and cpus is not distinct from ?", cpus)
    assert len(elsewhere) == 1 and elsewhere[0][0] >= -1, elsewhere
    path = rows("select max(end_ns), sum(end_ns - start_ns) from paths where cpus is not distinct from ?", cpus)[0]
    near(path[0] or 0, result["time_ns"])
    near(path[1] or 0, result["time_ns"])
print("ok")
