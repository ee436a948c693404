#!/usr/bin/env python3
"""A table of the time that each kernel took, from what ncu measured. Usage: kernels.py FILE, the output of ncu --csv"""
import collections
import csv
import re
import sys

UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "nsecond": 1e-9, "usecond": 1e-6, "msecond": 1e-3, "second": 1,
         "byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}


def number(text):
    return float(text.replace(",", "")) if text not in ("", "n/a") else 0.0


def short(name):
    """A kernel's name without its return type, namespaces, template arguments and parameters."""
    for pattern in (r"^void ", r"starling::cuda::kernels::", r"(<unnamed>|\(anonymous namespace\))::", r"[<(].*"):
        name = re.sub(pattern, "", name)
    return name[:60]


class Total:
    def __init__(self):
        self.calls, self.seconds, self.bytes = 0, 0.0, 0.0

    def add(self, metric, unit, value):
        if "time_duration" in metric:
            self.calls += 1
            self.seconds += number(value) * UNITS.get(unit, 1e-9)
        elif "bytes" in metric:
            self.bytes += number(value) * UNITS.get(unit, 1)


rows = list(csv.reader(line for line in open(sys.argv[1], errors="replace") if line.startswith('"')))
if not rows:
    sys.exit("ncu measured nothing")
head = rows[0]
kernels = collections.defaultdict(Total)
if "Metric Name" in head:  # a row for each metric
    for row in (dict(zip(head, cells)) for cells in rows[1:]):
        kernels[short(row["Kernel Name"])].add(row["Metric Name"], row["Metric Unit"], row["Metric Value"])
else:  # --page raw: a row for each kernel, with the units in the second row
    for cells in rows[2:]:
        for name, unit, value in zip(head, rows[1], cells):
            if "__" in name:
                kernels[short(cells[head.index("Kernel Name")])].add(name, unit, value)

everything = sum(t.seconds for t in kernels.values()) or 1e-30
print(f"{'kernel':<60} {'calls':>6} {'ms':>9} {'%':>6} {'us each':>9} {'GB/s':>7}")
for name, t in sorted(kernels.items(), key=lambda item: -item[1].seconds):
    print(f"{name:<60} {t.calls:6d} {1e3 * t.seconds:9.3f} {100 * t.seconds / everything:6.1f} {1e6 * t.seconds / max(t.calls, 1):9.1f} "
          f"{t.bytes / max(t.seconds, 1e-12) / 1e9:7.0f}")
print(f"{'all':<60} {sum(t.calls for t in kernels.values()):6d} {1e3 * everything:9.3f}")
