"""Asks a Prometheus for the value of each series now: `ask_prometheus.py ADDRESS QUESTION`. Prints labels and values as JSON."""

import json
import sys
import urllib.error
import urllib.parse
import urllib.request

address = sys.argv[1] + "?" + urllib.parse.urlencode({"query": sys.argv[2]})
try:
    answer = json.load(urllib.request.urlopen(address, timeout=5))
    print(json.dumps([[of["metric"], float(of["value"][1])] for of in answer["data"]["result"]]))
except urllib.error.HTTPError as refused:
    # A question that it does not understand; or it is still beginning.
    sys.exit(refused.read().decode()) if refused.code == 400 else print("[]")
except (urllib.error.URLError, ConnectionError):
    print("[]")
