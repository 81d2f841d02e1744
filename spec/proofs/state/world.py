"""A symbolic state of the scheduler: any pool, any number of requests, of which two are looked at.

`own` is the request that an action is about, `other` any other one; what holds of `other` holds of all the rest.
What the tables of everybody else hold is one array, `elsewhere`.  Slots are looked at through one offset, any
within a block: `due` is what each block holds there once the step in flight is done.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import z3

from spec import validity
from spec.proofs.state import invariants, loop_invariants, step_invariants
from spec.proofs.state.invariants import length
from spec.proofs.symbols.keys import KEY_OF, NEW_KEY, WORD, ItemsOf, key_axiom
from spec.proofs.symbols.lists import Blocks, Members, Tokens
from spec.proofs.symbols.loops import Invariant, Loop, at_anything
from spec.proofs.symbols.maps import Cells, Holders, Keys, Queue
from spec.proofs.symbols.paths import Path
from spec.proofs.symbols.queues import Line, sequence
from spec.proofs.symbols.value import Number, Truth, term
from spec.vocabulary import Config, EncoderItem, Profile, Request, Status

Term = Any

FLAGS = ("enable_prefix_caching", "use_eagle", "disable_chunked_mm_input", "use_connector")


class KeyTable:
    """Equal meaning, equal key, and only then: a key is a function of its meaning, and one to one (HASH-2)."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.size = world.path.integer("keys worked out")

    def length(self) -> Number:
        return Number(self.size)

    def setdefault(self, meaning: tuple[Any, ...], new: Any) -> Number:
        """The key of a meaning.

        It is the key of block `index` of a request if its tokens are the tokens of that block, its adapter and its
        items are that request's, and its parent is the key of the block before.
        """
        world = self.world
        world.path.require("KEY: a new key is new", term(new) > self.size)
        parent, adapter, items, tokens = meaning
        live, index = tokens.word, term(sys._getframe(1).f_locals["index"])
        (start, stop), size = tokens.part, world.block_size
        key = NEW_KEY(term(parent), term(adapter), live.number, start, stop)
        right_parent = z3.If(index == 0, term(parent) == 0, term(parent) == KEY_OF(live.number, index - 1))
        right_tokens = z3.And(index >= 0, start == index * size, stop == index * size + size)
        right_items = items.index == index if isinstance(items, ItemsOf) and items.live is live else z3.BoolVal(False)
        right = z3.And(right_parent, right_tokens, right_items, term(adapter) == term(live.request.lora_id))
        world.path.assume(z3.Implies(right, key == KEY_OF(live.number, index)))
        world.mention_key_of(live.number, index)
        return Number(key)


class Lives(dict[Any, Any]):
    """The live requests by id; whether an unknown id is live is a choice."""

    world: World

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or self.world.path.choose(self.world.id_is_live)


class World:
    """One symbolic state, the invariants assumed of it, and names for everything in it.

    A case notes on it what its goals will need: mostly `before`, the cells before the action.
    """

    before: dict[str, Any]

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

    def __init__(
        self,
        path: Path,
        modules: SimpleNamespace,
        status: Status = Status.RUNNING,
        items: int = 0,
        adapter: bool = False,
        without: tuple[str, ...] = (),
        blocks: bool = True,
    ) -> None:
        path.world = self
        self.path, self.modules, self.without, self.blocks = path, modules, without, blocks
        self.any = {kind: path.integer(f"any {kind}") for kind in ("block", "key", "place")}
        self.any["pair"] = (self.any["key"], self.any["block"])
        self.victim_place: Term = None
        self.real: dict[str, Any] = {}
        """What contracts stand in for."""
        self.lemmas: Callable[[World], None] = lambda w: None
        self.repeating: dict[tuple[str, int], tuple[Invariant, Term, dict[str, Term]]] = {}
        self.offset = path.integer("offset")
        self.config = self._config()
        self.block_size, self.num_blocks = term(self.config.block_size), term(self.config.num_blocks)
        self.lookahead = z3.If(term(self.config.use_eagle), term(self.config.num_speculative_tokens), z3.IntVal(0))
        """`Config.lookahead`, as one term: no path is taken for it."""
        path.block_size = self.block_size
        path.assume(self.offset >= 0, self.offset < self.block_size)
        self.elsewhere = path.array("occurrences elsewhere")
        self.due = path.array("due content")
        self.id_is_live = path.truth("id is live")
        self.state = self._state()
        self.own = self._live("own", 0, status, items, adapter)
        self.others = 1
        self.other = self._live("other", self.others, Status.RUNNING, 0, False)
        own = {self.own: z3.BoolVal(True)}
        waiting, running = (own, {}) if status is not Status.RUNNING else ({}, own)
        self.state.running = Line(self, "running", {**running, self.other: self._another()})
        self.state.waiting = Line(self, "waiting", waiting)
        self.place = (self.state.running if status is Status.RUNNING else self.state.waiting).places[self.own]
        self.state.live.update(own=self.own, other=self.other)
        self.step = self._step()
        for live in (self.own, self.other):
            path.for_all("place", partial(key_axiom, live.number))
        for kind, name in self.any.items():
            path.mention(kind, name)
        self.assume_invariants()
        self.start, self.sequence = self.cells(), sequence(self)

    def copy(self, path: Path) -> World:
        """The same state at the beginning of another path: terms are shared, containers are not."""
        shared = (self.modules, self.config, self.own.request, self.other.request)
        made = copy.deepcopy(self, {id(self.path): path, **{id(each): each for each in shared}})
        path.world = made
        return made

    # --- the parts -----------------------------------------------------------------------------

    def _config(self) -> Config:
        values: dict[str, Any] = {}
        for field in Config.__slots__:
            values[field] = Truth(self.path.truth(field)) if field in FLAGS else Number(self.path.integer(field))
        for eagle in (True, False):
            config = Config(**{**values, "use_eagle": eagle})
            rows = [term(holds(config)) for _, holds, _ in validity.CONFIG_ROWS]
            self.path.assume(z3.Implies(term(values["use_eagle"]) == eagle, z3.And(*rows)))
        return Config(**values)

    def _state(self) -> Any:
        state = self.modules.state.State.__new__(self.modules.state.State)
        pool = self.modules.pool.Pool.__new__(self.modules.pool.Pool)
        pool.refs, pool.free = Cells("refs", self.num_blocks), Queue("free")
        pool.key_of, pool.holders = Keys(), Holders()
        state.config, state.profile, state.pool = self.config, Profile("proofs"), pool
        state.live = Lives()
        state.live.world = self
        state.key_table = KeyTable(self)
        state.encoder_free = Number(self.path.integer("encoder space"))
        state.finished, state.freed, state.log = [], [], []
        return state

    def _live(self, name: str, number: int, status: Status, items: int, adapter: bool) -> Any:
        path = self.path
        kind: Any = type("Live", (_Live, self.modules.state.Live), {})
        live: Any = kind.__new__(kind)
        prompt = Tokens(path.integer(f"{name} prompt"))
        live.number = z3.IntVal(number)
        live.request = Request(
            name,
            prompt,  # type: ignore[arg-type]
            Number(path.integer(f"{name} max_tokens")),  # type: ignore[arg-type]
            eos_token_id=Number(path.integer(f"{name} eos")),  # type: ignore[arg-type]
            ignore_eos=Truth(path.truth(f"{name} ignore_eos")),  # type: ignore[arg-type]
            stop_token_ids=Members(f"{name} stops"),  # type: ignore[arg-type]
            lora_id=Number(path.integer(f"{name} adapter")) if adapter else 0,  # type: ignore[arg-type]
            items=tuple(self._item(name, index) for index in range(items)),
            prompt_logprobs=Truth(path.truth(f"{name} prompt_logprobs")),  # type: ignore[arg-type]
            external_tokens=Number(path.integer(f"{name} external")),  # type: ignore[arg-type]
        )
        live.status, live.grammar_ready = status, Truth(path.truth(f"{name} grammar ready"))
        live.known, live.computed = Number(path.integer(f"{name} known")), Number(path.integer(f"{name} computed"))
        live.limit, live.published = Number(path.integer(f"{name} limit")), Number(path.integer(f"{name} published"))
        live.tokens = Tokens(term(live.known), live)
        live.drafts = Tokens(path.integer(f"{name} drafts"), live)
        live.table, live.keys = Blocks.fresh(f"{name} table"), Blocks.fresh(f"{name} keys", "key")
        live.cached = set()
        live.end = None
        return live

    def rename_other(self) -> None:
        """`other` is now any other running request, also one that was not looked at before."""
        old = self.other
        self.others += 1
        self.other = self._live("other", self.others, Status.RUNNING, 0, False)
        self.path.for_all("place", partial(key_axiom, self.other.number))
        self.elsewhere = self.path.array("occurrences elsewhere")
        self.state.live["other"] = self.other
        for line in (self.state.running, self.state.waiting):
            line.forget(old)
        self.state.running.there[self.other] = self._another()

    def _another(self) -> Term:
        """Whether there is another running request; if not, `other` holds nothing."""
        there, other = self.path.truth("another one runs"), self.other
        nothing = (length(other.table) == 0, term(other.computed) == 0, term(other.published) == 0)
        self.path.assume(z3.Or(there, z3.And(*nothing)))
        return there

    def _item(self, name: str, index: int) -> EncoderItem:
        parts = [Number(self.path.integer(f"{name} item {index} {part}")) for part in EncoderItem._fields]
        item = EncoderItem(*parts)  # type: ignore[arg-type]
        self.path.assume(term(item.offset) >= 0, term(item.length) >= 1)
        return item

    def _step(self) -> Any:
        step = self.modules.allocation.Step.__new__(self.modules.allocation.Step)
        step.budget = Number(self.path.integer("budget left"))
        step.encoder_budget = Number(self.path.integer("encoder budget left"))
        step.index = Number(self.place)
        step.grants, step.preempted, step.skipped = [], [], Line(self, "set aside", {})
        step.adapters = Members("adapters in use")
        self.granted = self.path.integer("granted so far")
        self.path.assume(self.granted >= 0, self.granted + step.budget.term == term(self.config.max_num_batched_tokens))
        self.path.assume(step.budget.term >= 0)
        return step

    # --- invariants ----------------------------------------------------------------------------

    def assume_invariants(self) -> None:
        self.path.assume(*(fact for name, fact in invariants.plain(self).items() if name not in self.without))
        for kind, facts in invariants.each(self).items() if self.blocks else ():
            for fact in facts.values():
                self.path.for_all(kind, invariants.frozen(fact, kind))

    def holds_now(self) -> dict[str, Term]:
        """Every invariant of the state as it is now, at anything of its kind."""
        return at_anything(self, invariants.plain(self), invariants.each(self))

    def invariant_of(self, loop: Loop) -> Invariant:
        kind = "range" if loop.over is None else "list"
        make: Callable[[World, Loop], Invariant] = loop_invariants.LOOPS[loop.name, kind]
        return make(self, loop)

    def invariant_of_while(self, function: str, number: int) -> Invariant:
        make: Callable[[World], Invariant] = step_invariants.WHILES[function, number]
        return make(self)

    def mention_key_of(self, who: Term, place: Term) -> None:
        """What the key of a block says: its content is that of the request's own prefix, its depth the place."""
        self.path.assume(key_axiom(who, place))
        self.path.mention("key", KEY_OF(who, place))

    def write(self, live: Any, start: Term, end: Term) -> None:
        """What a grant will have written when the step is done: positions `start .. end` of `live`."""
        before, table, size = self.due, live.table, self.block_size
        count, where = table.count, table.where
        self.due = due = self.path.array("due content")
        position: Callable[[Term], Term] = lambda b: where[b] * size + self.offset  # noqa: E731
        self.path.for_all(
            "block",
            lambda b: (
                due[b]
                == z3.If(
                    z3.And(count[b] >= 1, start <= position(b), position(b) < end),
                    WORD(live.number, where[b]),
                    before[b],
                )
            ),
        )

    # --- what there is -------------------------------------------------------------------------

    def told(self) -> dict[str, tuple[Term, Term]]:
        """The numbers that a counterexample is told in, each before and now; arrays are left out.

        First the configuration, then the state, then whatever else came up.
        """
        found = {field: term(getattr(self.config, field)) for field in Config.__slots__}
        told = {name: (value, value) for name, value in found.items()}
        now = self.cells()
        told |= {name: (old, now.get(name, old)) for name, old in self.start.items()}
        told = {name: pair for name, pair in told.items() if not any(z3.is_array(each) for each in pair)}
        shown = {each.get_id() for pair in told.values() for each in pair}
        rest = {name: each for name, each in self.path.symbols.items() if each.get_id() not in shown}
        return told | {name: (each, each) for name, each in rest.items()}

    def containers(self) -> dict[str, Any]:
        pool = self.state.pool
        found = {"refs": pool.refs, "free": pool.free, "key_of": pool.key_of, "holders": pool.holders}
        for name, live in (("own", self.own), ("other", self.other)):
            found |= {f"{name} table": live.table, f"{name} keys": live.keys, f"{name} drafts": live.drafts}
        return found

    def cells(self) -> dict[str, Term]:
        """Every term that the state consists of, by name."""
        found = {}
        for name, container in self.containers().items():
            for field, value in _terms(container):
                found[f"{name} {field}"] = value
        for name, live in (("own", self.own), ("other", self.other)):
            for field in ("computed", "known", "published", "limit"):
                found[f"{name} {field}"] = term(getattr(live, field))
            found[f"{name} grammar ready"] = term(live.grammar_ready)
            found[f"{name} waits or runs"] = z3.StringVal(live.status.value)
        lines = (self.state.running, self.state.waiting, self.step.skipped)
        found |= {line.name: line.size for line in lines}
        found["preempted"] = length(self.step.preempted)
        found |= {"budget left": term(self.step.budget), "encoder space": term(self.state.encoder_free)}
        found |= {"encoder budget left": term(self.step.encoder_budget), "visited": term(self.step.index)}
        return found

    def names_of(self, invariant: Invariant) -> set[str]:
        changed = {id(each) for each in invariant.changes}
        names = {name for name, each in self.containers().items() if id(each) in changed}
        return {cell for cell in self.cells() if any(cell.startswith(f"{name} ") for name in names)} | set(
            invariant.resets
        )


def _terms(container: Any) -> list[tuple[str, Term]]:
    if isinstance(container, (list, tuple)):
        return [("length", z3.IntVal(len(container)))]
    return [(field, value) for field, value in vars(container).items() if z3.is_expr(value)]


class _Live:
    """What a live request has in a proof beside its own fields: a number, and what it has computed after this step."""

    number: Term
    end: Term = None
    request: Request
