"""The generated pages say what the code says."""

from __future__ import annotations

import pytest

from conformance.pages import PAGES, ROOT


@pytest.mark.parametrize("name", PAGES)
def test_page_is_up_to_date(name: str) -> None:
    assert (ROOT / name).read_text() == PAGES[name](), "run `make docs`"
