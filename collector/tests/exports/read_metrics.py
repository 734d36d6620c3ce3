"""Reads metrics with the parser of Prometheus's own client, and prints name, labels and value of each sample as JSON."""

import json
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families

text = open(sys.argv[1], newline="").read()
samples = [[sample.name, sample.labels, sample.value] for family in text_string_to_metric_families(text) for sample in family.samples]
print(json.dumps(samples))
