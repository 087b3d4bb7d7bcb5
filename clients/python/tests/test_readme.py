"""The examples of the README run as written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from servers import Server

README = Path(__file__).parent.parent / "README.md"


def test_the_examples_run(own_server: Server) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(blocks) >= 5
    names: dict[str, Any] = {}
    for block in blocks:
        code = block.replace("127.0.0.1:7460", own_server.address)
        exec(compile(code, str(README), "exec"), names)
    assert names["result"].kept.tolist() == [0, 1]
    assert names["match"].ids == ["first", "third"]
