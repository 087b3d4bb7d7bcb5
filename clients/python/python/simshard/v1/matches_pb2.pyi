from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class Matches(_message.Message):
    __slots__ = ("match_counts", "fingerprints", "distances", "document_counts", "id_counts", "ids", "truncated")
    MATCH_COUNTS_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINTS_FIELD_NUMBER: _ClassVar[int]
    DISTANCES_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_COUNTS_FIELD_NUMBER: _ClassVar[int]
    ID_COUNTS_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    match_counts: _containers.RepeatedScalarFieldContainer[int]
    fingerprints: _containers.RepeatedScalarFieldContainer[int]
    distances: _containers.RepeatedScalarFieldContainer[int]
    document_counts: _containers.RepeatedScalarFieldContainer[int]
    id_counts: _containers.RepeatedScalarFieldContainer[int]
    ids: _containers.RepeatedScalarFieldContainer[str]
    truncated: _containers.RepeatedScalarFieldContainer[bool]
    def __init__(self, match_counts: _Optional[_Iterable[int]] = ..., fingerprints: _Optional[_Iterable[int]] = ..., distances: _Optional[_Iterable[int]] = ..., document_counts: _Optional[_Iterable[int]] = ..., id_counts: _Optional[_Iterable[int]] = ..., ids: _Optional[_Iterable[str]] = ..., truncated: _Optional[_Iterable[bool]] = ...) -> None: ...

class Completeness(_message.Message):
    __slots__ = ("unreachable_nodes", "missing_shards", "missing_lead_groups", "guaranteed_distances")
    UNREACHABLE_NODES_FIELD_NUMBER: _ClassVar[int]
    MISSING_SHARDS_FIELD_NUMBER: _ClassVar[int]
    MISSING_LEAD_GROUPS_FIELD_NUMBER: _ClassVar[int]
    GUARANTEED_DISTANCES_FIELD_NUMBER: _ClassVar[int]
    unreachable_nodes: _containers.RepeatedScalarFieldContainer[str]
    missing_shards: _containers.RepeatedScalarFieldContainer[int]
    missing_lead_groups: _containers.RepeatedScalarFieldContainer[int]
    guaranteed_distances: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, unreachable_nodes: _Optional[_Iterable[str]] = ..., missing_shards: _Optional[_Iterable[int]] = ..., missing_lead_groups: _Optional[_Iterable[int]] = ..., guaranteed_distances: _Optional[_Iterable[int]] = ...) -> None: ...
