"""Asks DuckDB one question in a folder, and prints a line for each row of the answer."""

import os
import sys

import duckdb

os.chdir(sys.argv[1])
for row in duckdb.sql(sys.argv[2]).fetchall():
    print(*row)
