"""Pipelines of datatrove keep what dedup keeps. It runs where datatrove is installed and SIMSHARD_LONG is set."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
import simshard
from conftest import SEED
from engines import run_example

pytestmark = pytest.mark.skipif("SIMSHARD_LONG" not in os.environ, reason="pipelines take long to start")


def texts_of_files(files: int) -> list[list[str]]:
    """Return texts of which many are near, and some have no words."""
    chance = random.Random(SEED)
    words = [f"word{number}" for number in range(3000)]
    texts = [chance.choices(words, k=200) for _ in range(60)]
    for text in texts[20:]:
        text[:] = chance.choice(texts[:20])
        text[chance.randrange(200)] = chance.choice(words)
    joined = [" ".join(text) for text in texts] + ["", "!"]
    chance.shuffle(joined)
    return [joined[number::files] for number in range(files)]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Write files into the folder ``pages`` of an empty working folder, and return their texts."""
    pytest.importorskip("datatrove")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pages").mkdir()
    files = texts_of_files(5)
    for number, texts in enumerate(files):
        rows = [json.dumps({"id": f"{number}/{place}", "text": text}) for place, text in enumerate(texts)]
        (tmp_path / "pages" / f"{number}.jsonl").write_text("\n".join(rows))
    return files


def run(*steps: Any, tasks: int = 1) -> list[Any]:
    """Run a pipeline in this process, and return the documents that come out, task by task."""
    found = []
    for rank in range(tasks):
        data = None
        for step in steps:
            data = step(data, rank, tasks)
        found.extend(data or [])
    return found


def folder(name: str) -> str:
    """Return a folder of the working folder by its full name: fsspec keeps where a shorter one has led first."""
    return str(Path(name).absolute())


def reader() -> Any:
    from datatrove.pipeline.readers import JsonlReader

    return JsonlReader(folder("pages"))


def deduplicated(tasks: int) -> list[Any]:
    from simshard.datatrove import AddFingerprints, DropDuplicates, FindDuplicates

    run(reader(), AddFingerprints(folder("fingerprints"), batch_size=7), tasks=tasks)
    run(FindDuplicates(folder("fingerprints"), folder("duplicates")))
    return run(reader(), DropDuplicates(folder("duplicates")), tasks=tasks)


@pytest.mark.parametrize("tasks", [1, 3, 8])
def test_all_tasks_together_keep_what_dedup_keeps(files: list[list[str]], tasks: int) -> None:
    texts = [text for task in range(tasks) for texts in files[task::tasks] for text in texts]
    kept = [texts[row] for row in simshard.dedup(texts).kept]
    # Readers of datatrove leave empty texts out.
    assert [document.text for document in deduplicated(tasks)] == [text for text in kept if text]
    assert 10 < len(kept) < 60


def test_fingerprints_are_metadata(files: list[list[str]]) -> None:
    from simshard.datatrove import AddFingerprints

    documents = run(reader(), AddFingerprints())
    for document in documents:
        expected = None if document.text == "!" else str(simshard.fingerprint([document.text])[0])
        assert document.metadata["fingerprint"] == expected
    assert any(document.text == "!" for document in documents)
    assert "fingerprint" not in run(reader(), AddFingerprints(into=None))[0].metadata
    with pytest.raises(ValueError, match="nonsense"):
        AddFingerprints(recipe="nonsense")


def test_other_documents_and_tasks_are_refused(files: list[list[str]]) -> None:
    from simshard.datatrove import AddFingerprints, DropDuplicates, FindDuplicates

    drop = DropDuplicates(folder("duplicates"))
    deduplicated(tasks=2)
    with pytest.raises(ValueError, match="nothing of task 0 of 3"):
        run(reader(), drop, tasks=3)
    for name, says in [("0.jsonl", "more"), ("4.jsonl", r"\d+$")]:
        original = Path("pages", name).read_text()
        Path("pages", name).write_text(original * 2 if says == "more" else original.split("\n")[0])
        with pytest.raises(ValueError, match=f"documents of this task have been fingerprinted, and here are {says}"):
            run(reader(), drop, tasks=2)
        Path("pages", name).write_text(original)
    with pytest.raises(ValueError, match="in one task, not in 2"):
        run(FindDuplicates(folder("fingerprints"), folder("duplicates")), tasks=2)
    run(reader(), AddFingerprints(folder("fingerprints")), tasks=3)
    with pytest.raises(ValueError, match="fingerprints of 2 runs"):
        run(FindDuplicates(folder("fingerprints"), folder("duplicates")))
    Path("fingerprints/00001_of_00003.npy").unlink()
    for left in Path("fingerprints").glob("*_of_00002.npy"):
        left.unlink()
    with pytest.raises(ValueError, match="nothing of task 1 of 3"):
        run(FindDuplicates(folder("fingerprints"), folder("duplicates")))


def test_dropped_documents_are_written_where_asked(files: list[list[str]]) -> None:
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers import JsonlWriter
    from simshard.datatrove import DropDuplicates

    kept = deduplicated(tasks=2)
    run(reader(), DropDuplicates(folder("duplicates"), JsonlWriter(folder("dropped"))), tasks=2)
    dropped = run(JsonlReader(folder("dropped")))
    assert len(dropped) > 10
    assert sorted(one.id for one in [*kept, *dropped]) == sorted(one.id for one in run(reader()))


def test_the_example_runs(files: list[list[str]]) -> None:
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers import JsonlWriter

    run_example("In datatrove", reader=reader(), writer=JsonlWriter(folder("kept")))
    texts = [text for task in range(2) for texts in files[task::2] for text in texts]
    kept = [texts[row] for row in simshard.dedup(texts).kept]
    written = [document.text for document in run(JsonlReader(folder("kept")))]
    assert written == [text for text in kept if text]
