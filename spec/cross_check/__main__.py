"""`python -m spec.cross_check`: states and transitions of every core, by SPIN and by the explorer.

Exit codes: 0 if all are equal, 1 if not, 2 if SPIN is not installed.
"""

from __future__ import annotations

import sys

from spec.cross_check.cores import COMPARED
from spec.cross_check.spin import NoSpin, count
from spec.explore.search import explore


def main() -> int:
    differ = 0
    print(f"{'core':10} {'states':>10} {'transitions':>12}   by SPIN, by the explorer without renaming")
    for scope in COMPARED:
        try:
            spin = count(scope)
        except NoSpin as problem:
            print(f"cross-check: {problem}", file=sys.stderr)
            return 2
        graph = explore(scope, rename=False)
        equal = (
            (spin.states, spin.transitions) == (len(graph.values), graph.transitions)
            and not spin.errors
            and graph.breach is None
            and not graph.stopped
        )
        differ += not equal
        print(f"{scope.name:10} {spin.states:10} {spin.transitions:12}   SPIN, {spin.errors} errors")
        print(f"{'':10} {len(graph.values):10} {graph.transitions:12}   {'equal' if equal else 'DIFFERENT'}")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
