"""Writes which vectors have passed, with both clients, into the file that VECTORS_REPORT names."""

from __future__ import annotations

import os
import re
from typing import Dict

import pytest

_passed: Dict[str, bool] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    named = re.search(r"test_vector\[(.+)-(threads|asyncio)\]$", report.nodeid)
    if named is None:
        return
    name = named.group(1)
    _passed[name] = _passed.get(name, True) and report.passed


def pytest_sessionfinish() -> None:
    file = os.environ.get("VECTORS_REPORT")
    if file:
        with open(file, "w") as out:
            for name, passed in _passed.items():
                out.write(f"{name}\t{'ok' if passed else 'failed'}\n")
