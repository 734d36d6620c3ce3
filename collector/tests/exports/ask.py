"""Asks an engine in a folder: `ask.py ENGINE FOLDER STATEMENT...`. Prints a line for each row of the last one's answer."""

import os
import sys

engine, folder, *statements = sys.argv[1:]
os.chdir(folder)
if engine == "duckdb":
    import duckdb

    def ask(statement):
        answer = duckdb.sql(statement)
        return answer.fetchall() if answer else []
else:
    import datafusion

    context = datafusion.SessionContext()

    def ask(statement):
        return [tuple(row.values()) for row in context.sql(statement).to_pylist()]

for statement in statements:
    answer = ask(statement.strip().rstrip(";"))
for row in answer:
    print(*row)
