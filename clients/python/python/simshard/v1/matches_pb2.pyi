from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class ResultForm(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RESULT_FORM_UNSPECIFIED: _ClassVar[ResultForm]
    RESULT_FORM_COLUMNS: _ClassVar[ResultForm]
    RESULT_FORM_ROWS: _ClassVar[ResultForm]
RESULT_FORM_UNSPECIFIED: ResultForm
RESULT_FORM_COLUMNS: ResultForm
RESULT_FORM_ROWS: ResultForm

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

class Match(_message.Message):
    __slots__ = ("query", "fingerprint", "distance", "document_count", "ids")
    QUERY_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    DISTANCE_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    query: int
    fingerprint: int
    distance: int
    document_count: int
    ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, query: _Optional[int] = ..., fingerprint: _Optional[int] = ..., distance: _Optional[int] = ..., document_count: _Optional[int] = ..., ids: _Optional[_Iterable[str]] = ...) -> None: ...

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
