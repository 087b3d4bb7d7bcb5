"""The corpora of a cluster: requests about them, and their descriptions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from simshard._client.retry import UnarySteps, once, repeated
from simshard._client.settings import Settings
from simshard._inputs import to_blocks, to_distance, to_name
from simshard.v1 import corpus_service_pb2 as pb

Clock = Callable[[], float]


@dataclass(frozen=True)
class CorpusInfo:
    """The configuration of a corpus, fixed when it is created, and its state."""

    name: str
    blocks: int
    """How many blocks a fingerprint is cut into."""
    distance: int
    """The largest distance that is searched."""
    recipe: str
    """What turns its texts into fingerprints."""
    created: datetime
    """When it was created, in UTC."""
    state: str
    """``LIVE``, or ``CREATING`` or ``DELETING`` where that is not complete."""


@dataclass(frozen=True)
class NodeInfo:
    """What a node holds of a corpus."""

    name: str
    address: str
    state: str
    """``SERVING``, ``UNREACHABLE`` or ``CORPUS_NOT_LOADED``."""
    shards: list[int]
    """The shards that it answers for."""


@dataclass(frozen=True)
class CorpusDescription:
    """A corpus and what is in it."""

    info: CorpusInfo
    documents: int | None
    """How many documents it has; ``None`` unless all nodes serve."""
    fingerprints: int | None
    """How many distinct fingerprints it has; ``None`` unless all nodes serve."""
    nodes: list[NodeInfo]


def create_corpus(settings: Settings, name: str, blocks: int, distance: int, recipe: str) -> UnarySteps[CorpusInfo]:
    """Create a corpus. Not repeated."""
    blocks, distance = to_blocks(blocks), to_distance(distance)
    name, recipe = _name(name), to_name(recipe, "recipe")
    request = pb.CreateCorpusRequest(name=name, blocks=blocks, distance=distance, recipe=recipe)
    answer = yield from once(settings, "CreateCorpus", request)
    return _info(answer.corpus)


def delete_corpus(settings: Settings, name: str) -> UnarySteps[None]:
    """Delete a corpus. Not repeated."""
    yield from once(settings, "DeleteCorpus", pb.DeleteCorpusRequest(name=_name(name)))


def list_corpora(settings: Settings, clock: Clock) -> UnarySteps[list[CorpusInfo]]:
    """List all corpora, page by page."""
    corpora: list[CorpusInfo] = []
    request = pb.ListCorporaRequest()
    while True:
        page = yield from repeated(settings, clock, "ListCorpora", request)
        corpora.extend(map(_info, page.corpora))
        if not page.next_page_token:
            return corpora
        request = pb.ListCorporaRequest(page_token=page.next_page_token)


def describe_corpus(settings: Settings, clock: Clock, name: str) -> UnarySteps[CorpusDescription]:
    """Describe a corpus and what each node holds of it."""
    answer = yield from repeated(settings, clock, "GetCorpus", pb.GetCorpusRequest(name=_name(name)))
    counts = [
        getattr(answer, field) if answer.HasField(field) else None for field in ("document_count", "fingerprint_count")
    ]
    return CorpusDescription(_info(answer.corpus), counts[0], counts[1], list(map(_node, answer.nodes)))


def _name(name: Any) -> str:
    return to_name(name, "the name of a corpus")


def _info(corpus: Any) -> CorpusInfo:
    created = corpus.create_time.ToDatetime(tzinfo=timezone.utc)
    state = pb.CorpusState.Name(corpus.state).removeprefix("CORPUS_STATE_")
    return CorpusInfo(corpus.name, corpus.blocks, corpus.distance, corpus.recipe, created, state)


def _node(node: Any) -> NodeInfo:
    state = pb.NodeState.Name(node.state).removeprefix("NODE_STATE_")
    return NodeInfo(node.node, node.address, state, list(node.shards))
