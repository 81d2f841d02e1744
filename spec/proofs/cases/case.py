"""What is proved of each action: the state before, the call, and what must hold behind it.

A case runs an action of `spec` on a symbolic state in which the invariant holds.  Its goals are named by the law
they serve; `theorems` gathers them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import z3

from spec.proofs.state.world import World
from spec.proofs.symbols.paths import Check, Cut, Endless, Infeasible, Path, Prefix, explore, running

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
    """One path through a case: what the scheduler logged, what was decided where, and the checks.

    possible   whether some input takes it; not asked where verdicts are enough
    """

    log: tuple[tuple[str, str], ...]
    decisions: tuple[str, ...]
    checks: list[Check]
    possible: bool = True

    @property
    def failed(self) -> list[Check]:
        return [check for check in self.checks if not check.proved]

    @property
    def logged(self) -> str:
        return "; ".join(f"{action}: {how}" for action, how in self.log)


def ways(
    case: Case, modules: SimpleNamespace, verdicts_only: bool = False, prefixes: Iterable[Prefix] = ((),)
) -> Iterator[Way]:
    """Every path of a case that begins with one of the prefixes, as it is walked.

    `verdicts_only`, for a mutant: goals are asked together, and neither counterexamples nor whether a path is
    possible are worked out.
    """
    with running(Path(verdicts_only)) as start:
        beginning = World(start, modules, **case.setting)

    def run(path: Path) -> None:
        world = beginning.copy(path)
        try:
            with standing_in(case.contracts, world):
                answer = case.act(world)
            goals = case.goals(world, answer)
            path.check_all({name: z3.BoolVal(goal) if isinstance(goal, bool) else goal for name, goal in goals.items()})
        except (Infeasible, Cut):
            raise
        except Endless:
            path.check("STATE: comes to an end", z3.BoolVal(False))
        except Exception as error:
            path.check(f"STATE: raises nothing ({type(error).__name__}: {error})", z3.BoolVal(False))

    for path in explore(start, run, prefixes):
        possible = path.reached and (verdicts_only or path.possible())
        yield Way(tuple(path.world.state.log), path.told_decisions(), path.checks, possible)


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
