"""Steps of datatrove pipelines that drop near-duplicates, over the documents of all tasks.

Three pipelines run one after another: ``AddFingerprints`` in many tasks, ``FindDuplicates`` in one, and
``DropDuplicates`` with the documents and tasks of the first. Of each cluster the first document is kept, in the order
of the tasks. ``FindDuplicates`` has the fingerprints of all documents in memory, and no texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
from datatrove.io import DataFolder, get_datafolder
from datatrove.pipeline.base import PipelineStep
from datatrove.utils.batching import batched
from datatrove.utils.typeshelper import StatHints

from simshard import _simshard
from simshard._pairs import find_clusters

_FINGERPRINTS = np.dtype([("fingerprint", "<u8"), ("has_one", "?")])


class AddFingerprints(PipelineStep):  # type: ignore[misc]
    """Add the fingerprint of each document to its metadata, and write those of a task to a folder.

    The fingerprint is a text of decimal digits: many formats have no numbers of 64 bits without a sign. A document
    without a fingerprint, as one without words, has ``None``.
    """

    type = "🫂 - DEDUP"
    name = "🧮 simshard: add fingerprints"

    def __init__(
        self,
        output_folder: Any = None,
        recipe: str = "words-v3",
        into: str | None = "fingerprint",
        batch_size: int = 1000,
    ) -> None:
        super().__init__()
        # Who gives a wrong recipe learns it now, and not from a task.
        _simshard.fingerprint([], recipe)
        self.output_folder = None if output_folder is None else get_datafolder(output_folder)
        self.recipe, self.into, self.batch_size = recipe, into, batch_size

    def run(self, data: Iterable[Any], rank: int = 0, world_size: int = 1) -> Iterator[Any]:
        """Pass the documents on. The folder has their fingerprints once all have passed."""
        found = [np.empty(0, _FINGERPRINTS)]
        for documents in batched(data, self.batch_size):
            with self.track_time("batch"):
                fingerprints = self._fingerprints(documents)
            if self.output_folder is not None:
                found.append(fingerprints)
            for document, (fingerprint, has_one) in zip(documents, fingerprints.tolist(), strict=True):
                self.stat_update(StatHints.total, *([] if has_one else ["without_fingerprint"]))
                if self.into is not None:
                    document.metadata[self.into] = str(fingerprint) if has_one else None
                yield document
        if self.output_folder is not None:
            _write(self.output_folder, rank, world_size, np.concatenate(found))

    def _fingerprints(self, documents: list[Any]) -> npt.NDArray[np.void]:
        fingerprints, without = _simshard.fingerprint([document.text for document in documents], self.recipe)
        rows = np.empty(len(documents), _FINGERPRINTS)
        rows["fingerprint"] = fingerprints
        rows["has_one"] = True
        rows["has_one"][without] = False
        return rows


class FindDuplicates(PipelineStep):  # type: ignore[misc]
    """Find what is near among the fingerprints of all tasks. It runs in one task, without documents."""

    type = "🫂 - DEDUP"
    name = "🔗 simshard: find duplicates"

    def __init__(self, input_folder: Any, output_folder: Any, distance: int = 3) -> None:
        super().__init__()
        self.input_folder, self.output_folder = get_datafolder(input_folder), get_datafolder(output_folder)
        self.distance = distance

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> None:
        """Write for each task which of its documents are to go."""
        if world_size != 1:
            raise ValueError(f"FindDuplicates runs in one task, not in {world_size}")
        with self.track_time():
            tasks = _tasks_in(self.input_folder)
            rows = [_read(self.input_folder, task, tasks) for task in range(tasks)]
            places = np.flatnonzero(np.concatenate([some["has_one"] for some in rows]))
            fingerprints = np.concatenate([some["fingerprint"] for some in rows])[places]
            is_dropped = np.zeros(sum(map(len, rows)), np.bool_)
            is_dropped[places] = find_clusters(fingerprints, self.distance) != np.arange(len(places))
            self.stat_update(StatHints.total, value=len(is_dropped))
            self.stat_update("duplicates", value=int(is_dropped.sum()))
            ends = np.cumsum([len(some) for some in rows])
            for task, of_task in enumerate(np.split(is_dropped, ends[:-1])):
                _write(self.output_folder, task, tasks, of_task)


class DropDuplicates(PipelineStep):  # type: ignore[misc]
    """Drop the documents that ``FindDuplicates`` found.

    It takes the documents that ``AddFingerprints`` took, in as many tasks. Another number of documents is an error.
    ``exclusion_writer`` gets those that are dropped.
    """

    type = "🫂 - DEDUP"
    name = "🧹 simshard: drop duplicates"

    def __init__(self, input_folder: Any, exclusion_writer: Any = None) -> None:
        super().__init__()
        self.input_folder, self.exclusion_writer = get_datafolder(input_folder), exclusion_writer

    def run(self, data: Iterable[Any], rank: int = 0, world_size: int = 1) -> Iterator[Any]:
        """Pass on the documents that are kept."""
        is_dropped = _read(self.input_folder, rank, world_size).tolist()
        taken = 0
        with self.exclusion_writer or nullcontext() as writer:
            for document in data:
                if taken == len(is_dropped):
                    raise ValueError(_other_documents(taken, "more"))
                taken += 1
                self.stat_update(StatHints.total)
                if not is_dropped[taken - 1]:
                    self.stat_update(StatHints.forwarded)
                    self.update_doc_stats(document)
                    yield document
                    continue
                self.stat_update(StatHints.dropped)
                if writer is not None:
                    writer.write(document, rank)
        if taken != len(is_dropped):
            raise ValueError(_other_documents(len(is_dropped), taken))


def _other_documents(expected: int, found: int | str) -> str:
    return f"{expected} documents of this task have been fingerprinted, and here are {found}"


_NAME = re.compile(r"(\d+)_of_(\d+)\.npy")


def _name(task: int, tasks: int) -> str:
    return f"{task:05d}_of_{tasks:05d}.npy"


def _write(folder: DataFolder, task: int, tasks: int, array: npt.NDArray[Any]) -> None:
    with folder.open(_name(task, tasks), "wb") as file:
        np.lib.format.write_array(file, array, allow_pickle=False)


def _read(folder: DataFolder, task: int, tasks: int) -> npt.NDArray[Any]:
    if not folder.isfile(_name(task, tasks)):
        raise ValueError(f"{folder.path} has nothing of task {task} of {tasks}: the step before writes it")
    with folder.open(_name(task, tasks), "rb") as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _tasks_in(folder: DataFolder) -> int:
    """Return how many tasks have written into a folder."""
    names = [found for name in folder.list_files() if (found := _NAME.fullmatch(name))]
    runs = {int(name[2]) for name in names}
    if len(runs) != 1:
        raise ValueError(
            f"{folder.path} has the fingerprints of {len(runs)} runs with different numbers of tasks, not of 1"
        )
    return runs.pop()
