"""`python -m grammaton.fuzz`: runs the targets and prints what they find; kept cases come first.

    --seconds S     how long, shared equally by the targets (30)
    --seed N        which cases (0); the same seed draws the same cases
    --target NAME   only this one
    --replay CASE   checks one case of `--target`, in the JSON that a finding prints

The exit status is 1 when there are findings.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import sys
from collections.abc import Sequence

from grammaton.fuzz.ecma_patterns import Ecma
from grammaton.fuzz.kept import check_kept
from grammaton.fuzz.lalr import Lalr
from grammaton.fuzz.languages import Languages
from grammaton.fuzz.matcher import Matchers
from grammaton.fuzz.patterns import Patterns
from grammaton.fuzz.schemas import Schemas
from grammaton.fuzz.target import Finding, Target, failure_of, search
from grammaton.fuzz.vocabularies import Vocabularies

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        Patterns(),
        Ecma(),
        Languages(),
        Schemas(),
        Lalr(),
        Matchers(),
        Vocabularies(),
    )
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m grammaton.fuzz", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--seconds", type=_seconds, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", choices=TARGETS)
    parser.add_argument("--replay", metavar="CASE")
    options = parser.parse_args(arguments)
    if options.replay is not None:
        if options.target is None:
            parser.error("--replay needs --target")
        return _replay(TARGETS[options.target], options.replay)
    names = [options.target] if options.target else list(TARGETS)
    status = 0
    for name in names:
        lacking = TARGETS[name].lacks()
        if lacking is not None:
            print(f"{name}: NOT RUN, there is no {lacking}", flush=True)
            status = 2 if options.target else status
            continue
        known = check_kept(TARGETS[name])
        if known is not None:
            _print_finding(known, f"kept case {known.number}")
            status = 1
            continue
        report = search(TARGETS[name], seed=options.seed, seconds=options.seconds / len(names))
        finding = report.finding
        counts = TARGETS[name].counts
        counted = f" ({report.counted:,} {counts})" if counts else ""
        outcome = "no finding" if finding is None else "FAILED"
        print(f"{name}: {report.cases:,} cases{counted}, {outcome}", flush=True)
        if finding is not None:
            _print_finding(finding, f"case {finding.number} of seed {options.seed}, made smaller")
            status = 1
    return status


def _seconds(text: str) -> float:
    number = float(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no time above 0")
    return number


def _print_finding(finding: Finding, where: str) -> None:
    print(f"  {finding.message}")
    print(f"  {where}; again with")
    case = shlex.quote(json.dumps(finding.case))
    print(f"    python -m grammaton.fuzz --target {finding.target} --replay {case}")


def _replay(target: Target, text: str) -> int:
    try:
        case = json.loads(text)
    except ValueError as error:
        print(f"--replay: not JSON: {error}", file=sys.stderr)
        return 2
    if not isinstance(case, dict):
        print("--replay: a case is an object of JSON, as a finding prints it", file=sys.stderr)
        return 2
    failure = failure_of(target, case)
    print(f"{target.name}: {'everything holds' if failure is None else failure[1]}")
    return int(failure is not None)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
