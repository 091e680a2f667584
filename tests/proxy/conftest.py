"""What the tests of the proxy have given to them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.proxy.stdiowire import Wire


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Wire]:
    wire = Wire(tmp_path)
    yield wire
    wire.end()
