"""Hypothesis profiles and the path of the test data.

Profiles: `quick` (the default, for CI), which tries the same examples each time, and `thorough`
(`--hypothesis-profile=thorough`), which tries some forty times as many, new ones each time.

Data: tests of real schemas and vocabularies read them from `$GRAMMATON_DATA`, by default
`../shared/data` beside the repository. Without it they are skipped, saying so; with
`GRAMMATON_REQUIRE_DATA=1` they fail instead.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

_QUICK = settings(
    max_examples=40,
    stateful_step_count=20,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
)
settings.register_profile("quick", _QUICK)
settings.register_profile(
    "thorough", _QUICK, derandomize=False, max_examples=1500, stateful_step_count=40
)
settings.load_profile("quick")

DATA_PATH = Path(
    os.environ.get("GRAMMATON_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
)


@pytest.fixture(scope="session")
def data_path() -> Path:
    """The folder of the test data; the test is skipped, or fails when data is required, without."""
    if not DATA_PATH.is_dir():
        message = f"no test data at {DATA_PATH} (set GRAMMATON_DATA)"
        if os.environ.get("GRAMMATON_REQUIRE_DATA") == "1":
            pytest.fail(message)
        pytest.skip(message)
    return DATA_PATH


def pytest_report_header() -> str:
    """Says at the top of a run whether data tests will run."""
    return (
        f"grammaton data: {DATA_PATH}{'' if DATA_PATH.is_dir() else ' (absent: data tests skip)'}"
    )
