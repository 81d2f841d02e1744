"""What is proved of each action: the state before, the call, and what must hold behind it.

A case runs an action of `spec` on a symbolic state in which the invariant holds.  Its goals are named by the law
they serve; `theorems` gathers them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import z3

from spec.proofs.paths import Cut, Endless, Infeasible, Path, explore, running
from spec.proofs.world import World

Term = Any
Goals = dict[str, Term]


@dataclass(frozen=True)
class Case:
    """An action, in one situation.

    setting    arguments of World
    act        assumes the precondition, calls the action, returns its answer
    goals      what must hold behind it, by name
    bounded    what is not symbolic here, in words
    contracts  functions, as `module.name`, in whose place a contract stands that another case proved
    """

    name: str
    act: Callable[[World], Any]
    goals: Callable[[World, Any], Goals]
    setting: dict[str, Any] = field(default_factory=dict)
    bounded: str = ""
    contracts: dict[str, Callable[..., Any]] = field(default_factory=dict)


@dataclass
class Way:
    """One path through a case: what the scheduler logged, and the checks."""

    outcome: str
    checks: list[Any]
    possible: bool
    log: tuple[tuple[str, str], ...] = ()


def prove(case: Case, modules: SimpleNamespace, to_the_first_failure: bool = False) -> list[Way]:
    """Every path of a case; or, for a mutant, the paths up to one on which something fails."""
    ways: list[Way] = []
    with running(Path()) as start:
        beginning = World(start, modules, **case.setting)

    def run(path: Path) -> None:
        outcome, reached = "cut", True
        world = beginning.copy(path)
        try:
            with standing_in(case.contracts, world):
                answer = case.act(world)
            outcome = "; ".join(f"{action}: {how}" for action, how in world.state.log)
            goals = case.goals(world, answer)
            for name, goal in goals.items():
                path.check(name, z3.BoolVal(goal) if isinstance(goal, bool) else goal)
        except Infeasible:
            reached = False
            raise
        except Cut:
            raise
        except Endless:
            path.check("STATE: comes to an end", z3.BoolVal(False))
        except Exception as error:
            path.check(f"STATE: raises nothing ({type(error).__name__}: {error})", z3.BoolVal(False))
        finally:
            for check in path.checks:
                if check.model is not None:
                    check.values = world.explain(check.model)
            possible = to_the_first_failure or path.possible()
            if reached or path.checks:
                ways.append(Way(outcome, path.checks, possible, tuple(world.state.log)))

    for path in explore(start, run):
        if to_the_first_failure and not all(check.proved for check in path.checks):
            break
    return ways


@contextmanager
def standing_in(contracts: dict[str, Callable[..., Any]], world: World) -> Iterator[None]:
    """Contracts in the place of functions, in every module that imports them."""
    replaced = []
    for path, contract in contracts.items():
        name = path.partition(".")[2]
        real = world.real[path] = getattr(getattr(world.modules, path.partition(".")[0]), name)
        for module in vars(world.modules).values():
            if module.names.get(name) is real:
                replaced.append((module.names, name, real))
                module.names[name] = partial(contract, world)
    try:
        yield
    finally:
        for names, name, real in replaced:
            names[name] = real
