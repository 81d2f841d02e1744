"""Other engines on the same claims: Spacer on the counts of the pool, CrossHair on the formulas."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import z3


def _pool(deduct: bool) -> z3.CheckSatResult:
    """Counts of a pool under take, adopt and release; can Spacer reach a state with a negative free count?

    `free + held = usable`; an admission adopts `hits`, `evictable` of which are free, and takes `needed` blocks, if
    `needed <= free - evictable` (or, without the deduction, `needed <= free`).
    """
    engine = z3.Fixedpoint()
    engine.set(engine="spacer")
    free, held, usable = z3.Ints("free held usable")
    needed, evictable, released = z3.Ints("needed evictable released")
    reach = z3.Function("reach", z3.IntSort(), z3.IntSort(), z3.IntSort(), z3.BoolSort())
    bad = z3.Function("bad", z3.BoolSort())
    engine.register_relation(reach, bad)
    engine.declare_var(free, held, usable, needed, evictable, released)
    engine.rule(reach(usable, z3.IntVal(0), usable), [usable >= 1])
    room = free - evictable if deduct else free
    admission = [reach(free, held, usable), evictable >= 0, evictable <= free, needed >= 0, needed <= room]
    taken = needed + evictable
    engine.rule(reach(free - taken, held + taken, usable), admission)
    engine.rule(
        reach(free + released, held - released, usable),
        [reach(free, held, usable), released >= 0, released <= held],
    )
    engine.rule(bad(), [reach(free, held, usable), z3.Or(free < 0, held > usable)])
    return engine.query(bad())


def test_spacer_proves_that_the_deduction_is_enough() -> None:
    assert _pool(deduct=True) == z3.unsat


def test_spacer_finds_the_over_allocated_pool_without_it() -> None:
    assert _pool(deduct=False) == z3.sat


CONTRACTS = '''
from spec import formulas

def enough(a: int, b: int) -> bool:
    """
    pre: 1 <= b <= 16
    pre: -100 <= a <= 100
    post: _
    """
    n = formulas.ceil_div(a, b)
    return n * b >= a and (n - 1) * b < a

def threshold(tokens: int, threshold: int) -> bool:
    """
    pre: threshold >= 0
    post: _
    """
    n = formulas.below_threshold(tokens, threshold)
    return n <= tokens and (threshold == 0 or n <= threshold)

def drafts(tokens: int, computed: int, known: int) -> bool:
    """
    post: _
    """
    n = formulas.scheduled_drafts(tokens, computed, known)
    return n >= 0 and (n == 0 or computed + tokens - n == known)

def lesser_and_greater(a: int, b: int) -> bool:
    """
    post: _
    """
    low, high = formulas.least(a, b), formulas.most(a, b)
    return low + high == a + b and low <= a <= high and low <= b <= high

def demands(known: int, drafts: int, computed: int) -> bool:
    """
    post: _
    """
    wanted = formulas.running_demand(known, drafts, computed)
    return computed + wanted == known + drafts and wanted - drafts == formulas.admission_demand(known, computed)

def one_token_more(scheduled: int, generated: int) -> bool:
    """
    post: _
    """
    return generated + formulas.rejected_drafts(scheduled, generated) == scheduled + 1

def missing(computed: int, tokens: int, lookahead: int, held: int, size: int) -> bool:
    """
    pre: 1 <= size <= 16
    pre: 0 <= computed <= 100 and 0 <= tokens <= 100 and 0 <= lookahead <= 4
    post: _
    """
    n = formulas.blocks_needed(computed, tokens, lookahead, held, size)
    wanted = computed + tokens + lookahead
    return (held + n) * size >= wanted and (held + n - 1) * size < wanted

def taken(needed: int, held: int, longest: int, size: int) -> bool:
    """
    pre: 1 <= size <= 16
    pre: 1 <= longest <= 100
    post: _
    """
    n = formulas.blocks_taken(needed, held, longest, size)
    return n >= 0 and (n == 0 or n <= needed and (held + n - 1) * size < longest)

def complete(computed: int, tokens: int, drafts: int, size: int) -> bool:
    """
    pre: 1 <= size <= 16
    pre: 0 <= computed <= 100 and 0 <= tokens <= 100 and 0 <= drafts <= 4
    post: _
    """
    n = formulas.complete_blocks(computed, tokens, drafts, size)
    certain = computed + tokens - drafts
    return n >= 0 and (n == 0 or n * size <= certain) and (n + 1) * size > certain

def deduction(free: int, evictable: int) -> bool:
    """
    pre: 0 <= evictable <= free
    post: _
    """
    return 0 <= formulas.available(free, evictable) <= free
'''

WRONG = CONTRACTS.replace("(n - 1) * b < a", "n * b > a")


@pytest.mark.parametrize(("contracts", "verdict"), [(CONTRACTS, 0), (WRONG, 1)], ids=["true", "false"])
def test_crosshair_agrees(tmp_path: Path, contracts: str, verdict: int) -> None:
    (tmp_path / "contracts.py").write_text(contracts)
    options = ["--report_all", "--per_condition_timeout=20"]
    command = [sys.executable, "-m", "crosshair", "check", *options, "contracts.py"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert found.returncode == verdict, found.stdout + found.stderr
    confirmed = found.stdout.count("Confirmed over all paths")
    assert confirmed == contracts.count("def ") - verdict, found.stdout
