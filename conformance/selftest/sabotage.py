"""A sabotage: one small change to the reference scheduler that breaks one rule.

The files of the reference are never touched.  A sabotaged copy is imported beside the sound one: every
module of the package anew, one of them from a changed source.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

from conformance import deviations
from conformance.adapters.reference import InspectedReference
from conformance.protocol import CAPABILITIES, Implementation
from conformance.trace import Trace, read

PACKAGE = "reference"
REFERENCE = Path(__file__).resolve().parents[2] / PACKAGE
TRACES = (Path(__file__).parent / "traces", deviations.TRACES)


@dataclass(frozen=True)
class Sabotage:
    """What is changed, and what should notice.

    name    what the changed scheduler does wrong
    breaks  id of the rule or law under attack
    module  module of the reference that is changed
    old     fragment of its source; stands there exactly once
    new     what stands there instead
    trace   a trace that shows it, where random runs come there too rarely
    """

    name: str
    breaks: str
    module: str
    old: str
    new: str
    trace: str | None = None

    def source(self) -> str:
        """The changed source.  Raises StaleSabotage if the fragment is not there exactly once."""
        text = REFERENCE.joinpath(self.module.removeprefix(PACKAGE + ".") + ".py").read_text()
        found = text.count(self.old)
        if found != 1:
            raise StaleSabotage(f"{self.name}: its fragment stands {found} times in {self.module}: {self.old!r}")
        return text.replace(self.old, self.new)

    def shown_by(self) -> Trace | None:
        """The trace that shows it, where one is named."""
        if self.trace is None:
            return None
        return read(next(path for at in TRACES if (path := at / f"{self.trace}.jsonl").exists()))

    def load(self) -> Implementation:
        """A fresh copy of the reference with this change, as an implementation that shows its inside."""
        with _patched(self.module, self.source()):
            scheduler: Any = importlib.import_module(f"{PACKAGE}.scheduler").Scheduler
        inside = {name: value for name, value in vars(InspectedReference).items() if not name.startswith("__")}
        factory = type("SabotagedReference", (scheduler,), inside)
        return Implementation(self.name, factory, frozenset(CAPABILITIES))


class StaleSabotage(ValueError):
    """The reference has changed under a sabotage."""


class _ChangedModule(SourceFileLoader):
    """Loads a module from a text in place of its file."""

    def __init__(self, fullname: str, path: str, text: str) -> None:
        super().__init__(fullname, path)
        self._text = text

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._text, self.get_filename(fullname), "exec", dont_inherit=True)


class _Finder(MetaPathFinder):
    """Answers for one module only."""

    def __init__(self, module: str, text: str) -> None:
        self._module = module
        self._text = text

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if fullname != self._module:
            return None
        file = str(REFERENCE / f"{fullname.removeprefix(PACKAGE + '.')}.py")
        return importlib.util.spec_from_file_location(fullname, file, loader=_ChangedModule(fullname, file, self._text))


@contextmanager
def _patched(module: str, text: str) -> Iterator[None]:
    """While it lasts, an import of the reference gives a fresh copy with one module changed."""

    def forget() -> dict[str, Any]:
        names = [name for name in sys.modules if name == PACKAGE or name.startswith(PACKAGE + ".")]
        return {name: sys.modules.pop(name) for name in names}

    sound = forget()
    finder = _Finder(module, text)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        forget()
        sys.modules.update(sound)
