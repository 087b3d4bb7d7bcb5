from google.protobuf import timestamp_pb2 as _timestamp_pb2
from simshard.v1 import matches_pb2 as _matches_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CorpusState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CORPUS_STATE_UNSPECIFIED: _ClassVar[CorpusState]
    CORPUS_STATE_LIVE: _ClassVar[CorpusState]
    CORPUS_STATE_DELETING: _ClassVar[CorpusState]
    CORPUS_STATE_CREATING: _ClassVar[CorpusState]

class NodeState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NODE_STATE_UNSPECIFIED: _ClassVar[NodeState]
    NODE_STATE_SERVING: _ClassVar[NodeState]
    NODE_STATE_UNREACHABLE: _ClassVar[NodeState]
    NODE_STATE_CORPUS_NOT_LOADED: _ClassVar[NodeState]
    NODE_STATE_OTHER_RECORDS: _ClassVar[NodeState]
CORPUS_STATE_UNSPECIFIED: CorpusState
CORPUS_STATE_LIVE: CorpusState
CORPUS_STATE_DELETING: CorpusState
CORPUS_STATE_CREATING: CorpusState
NODE_STATE_UNSPECIFIED: NodeState
NODE_STATE_SERVING: NodeState
NODE_STATE_UNREACHABLE: NodeState
NODE_STATE_CORPUS_NOT_LOADED: NodeState
NODE_STATE_OTHER_RECORDS: NodeState

class Corpus(_message.Message):
    __slots__ = ("name", "blocks", "distance", "recipe", "create_time", "state")
    NAME_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    DISTANCE_FIELD_NUMBER: _ClassVar[int]
    RECIPE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    name: str
    blocks: int
    distance: int
    recipe: str
    create_time: _timestamp_pb2.Timestamp
    state: CorpusState
    def __init__(self, name: _Optional[str] = ..., blocks: _Optional[int] = ..., distance: _Optional[int] = ..., recipe: _Optional[str] = ..., create_time: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., state: _Optional[_Union[CorpusState, str]] = ...) -> None: ...

class StoredCorpus(_message.Message):
    __slots__ = ("uid", "name", "blocks", "distance", "document_count", "nodes")
    UID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    DISTANCE_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    uid: str
    name: str
    blocks: int
    distance: int
    document_count: int
    nodes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, uid: _Optional[str] = ..., name: _Optional[str] = ..., blocks: _Optional[int] = ..., distance: _Optional[int] = ..., document_count: _Optional[int] = ..., nodes: _Optional[_Iterable[str]] = ...) -> None: ...

class NodeShards(_message.Message):
    __slots__ = ("node", "address", "state", "shards", "document_counts", "cold_shards")
    NODE_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    SHARDS_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_COUNTS_FIELD_NUMBER: _ClassVar[int]
    COLD_SHARDS_FIELD_NUMBER: _ClassVar[int]
    node: str
    address: str
    state: NodeState
    shards: _containers.RepeatedScalarFieldContainer[int]
    document_counts: _containers.RepeatedScalarFieldContainer[int]
    cold_shards: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, node: _Optional[str] = ..., address: _Optional[str] = ..., state: _Optional[_Union[NodeState, str]] = ..., shards: _Optional[_Iterable[int]] = ..., document_counts: _Optional[_Iterable[int]] = ..., cold_shards: _Optional[_Iterable[int]] = ...) -> None: ...

class ListStoredCorporaRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListStoredCorporaResponse(_message.Message):
    __slots__ = ("corpora",)
    CORPORA_FIELD_NUMBER: _ClassVar[int]
    corpora: _containers.RepeatedCompositeFieldContainer[StoredCorpus]
    def __init__(self, corpora: _Optional[_Iterable[_Union[StoredCorpus, _Mapping]]] = ...) -> None: ...

class RecoverCorpusRequest(_message.Message):
    __slots__ = ("uid", "name", "recipe")
    UID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RECIPE_FIELD_NUMBER: _ClassVar[int]
    uid: str
    name: str
    recipe: str
    def __init__(self, uid: _Optional[str] = ..., name: _Optional[str] = ..., recipe: _Optional[str] = ...) -> None: ...

class RecoverCorpusResponse(_message.Message):
    __slots__ = ("corpus",)
    CORPUS_FIELD_NUMBER: _ClassVar[int]
    corpus: Corpus
    def __init__(self, corpus: _Optional[_Union[Corpus, _Mapping]] = ...) -> None: ...

class CreateCorpusRequest(_message.Message):
    __slots__ = ("name", "blocks", "distance", "recipe")
    NAME_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    DISTANCE_FIELD_NUMBER: _ClassVar[int]
    RECIPE_FIELD_NUMBER: _ClassVar[int]
    name: str
    blocks: int
    distance: int
    recipe: str
    def __init__(self, name: _Optional[str] = ..., blocks: _Optional[int] = ..., distance: _Optional[int] = ..., recipe: _Optional[str] = ...) -> None: ...

class CreateCorpusResponse(_message.Message):
    __slots__ = ("corpus",)
    CORPUS_FIELD_NUMBER: _ClassVar[int]
    corpus: Corpus
    def __init__(self, corpus: _Optional[_Union[Corpus, _Mapping]] = ...) -> None: ...

class GetCorpusRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class GetCorpusResponse(_message.Message):
    __slots__ = ("corpus", "document_count", "fingerprint_count", "nodes")
    CORPUS_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_COUNT_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_COUNT_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    corpus: Corpus
    document_count: int
    fingerprint_count: int
    nodes: _containers.RepeatedCompositeFieldContainer[NodeShards]
    def __init__(self, corpus: _Optional[_Union[Corpus, _Mapping]] = ..., document_count: _Optional[int] = ..., fingerprint_count: _Optional[int] = ..., nodes: _Optional[_Iterable[_Union[NodeShards, _Mapping]]] = ...) -> None: ...

class ListCorporaRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListCorporaResponse(_message.Message):
    __slots__ = ("corpora", "next_page_token")
    CORPORA_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    corpora: _containers.RepeatedCompositeFieldContainer[Corpus]
    next_page_token: str
    def __init__(self, corpora: _Optional[_Iterable[_Union[Corpus, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class DeleteCorpusRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class DeleteCorpusResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class InsertRequest(_message.Message):
    __slots__ = ("corpus", "recipe", "fingerprints", "texts", "ids")
    CORPUS_FIELD_NUMBER: _ClassVar[int]
    RECIPE_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINTS_FIELD_NUMBER: _ClassVar[int]
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    corpus: str
    recipe: str
    fingerprints: _containers.RepeatedScalarFieldContainer[int]
    texts: _containers.RepeatedScalarFieldContainer[str]
    ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, corpus: _Optional[str] = ..., recipe: _Optional[str] = ..., fingerprints: _Optional[_Iterable[int]] = ..., texts: _Optional[_Iterable[str]] = ..., ids: _Optional[_Iterable[str]] = ...) -> None: ...

class InsertResponse(_message.Message):
    __slots__ = ("inserted_count",)
    INSERTED_COUNT_FIELD_NUMBER: _ClassVar[int]
    inserted_count: int
    def __init__(self, inserted_count: _Optional[int] = ...) -> None: ...

class RemoveRequest(_message.Message):
    __slots__ = ("corpus", "recipe", "fingerprints", "texts", "ids", "beyond_clock")
    CORPUS_FIELD_NUMBER: _ClassVar[int]
    RECIPE_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINTS_FIELD_NUMBER: _ClassVar[int]
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    BEYOND_CLOCK_FIELD_NUMBER: _ClassVar[int]
    corpus: str
    recipe: str
    fingerprints: _containers.RepeatedScalarFieldContainer[int]
    texts: _containers.RepeatedScalarFieldContainer[str]
    ids: _containers.RepeatedScalarFieldContainer[str]
    beyond_clock: bool
    def __init__(self, corpus: _Optional[str] = ..., recipe: _Optional[str] = ..., fingerprints: _Optional[_Iterable[int]] = ..., texts: _Optional[_Iterable[str]] = ..., ids: _Optional[_Iterable[str]] = ..., beyond_clock: bool = ...) -> None: ...

class RemoveResponse(_message.Message):
    __slots__ = ("removed_count",)
    REMOVED_COUNT_FIELD_NUMBER: _ClassVar[int]
    removed_count: int
    def __init__(self, removed_count: _Optional[int] = ...) -> None: ...

class FindFirstRequest(_message.Message):
    __slots__ = ("corpus", "recipe", "fingerprints", "texts", "max_distance", "max_ids", "allow_partial", "result_form")
    CORPUS_FIELD_NUMBER: _ClassVar[int]
    RECIPE_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINTS_FIELD_NUMBER: _ClassVar[int]
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    MAX_DISTANCE_FIELD_NUMBER: _ClassVar[int]
    MAX_IDS_FIELD_NUMBER: _ClassVar[int]
    ALLOW_PARTIAL_FIELD_NUMBER: _ClassVar[int]
    RESULT_FORM_FIELD_NUMBER: _ClassVar[int]
    corpus: str
    recipe: str
    fingerprints: _containers.RepeatedScalarFieldContainer[int]
    texts: _containers.RepeatedScalarFieldContainer[str]
    max_distance: int
    max_ids: int
    allow_partial: bool
    result_form: _matches_pb2.ResultForm
    def __init__(self, corpus: _Optional[str] = ..., recipe: _Optional[str] = ..., fingerprints: _Optional[_Iterable[int]] = ..., texts: _Optional[_Iterable[str]] = ..., max_distance: _Optional[int] = ..., max_ids: _Optional[int] = ..., allow_partial: bool = ..., result_form: _Optional[_Union[_matches_pb2.ResultForm, str]] = ...) -> None: ...

class FindFirstResponse(_message.Message):
    __slots__ = ("queries", "matches", "completeness", "rows")
    QUERIES_FIELD_NUMBER: _ClassVar[int]
    MATCHES_FIELD_NUMBER: _ClassVar[int]
    COMPLETENESS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    queries: _containers.RepeatedScalarFieldContainer[int]
    matches: _matches_pb2.Matches
    completeness: _matches_pb2.Completeness
    rows: _containers.RepeatedCompositeFieldContainer[_matches_pb2.Match]
    def __init__(self, queries: _Optional[_Iterable[int]] = ..., matches: _Optional[_Union[_matches_pb2.Matches, _Mapping]] = ..., completeness: _Optional[_Union[_matches_pb2.Completeness, _Mapping]] = ..., rows: _Optional[_Iterable[_Union[_matches_pb2.Match, _Mapping]]] = ...) -> None: ...

class FindAllRequest(_message.Message):
    __slots__ = ("corpus", "recipe", "fingerprints", "texts", "max_distance", "max_ids", "allow_partial", "limit", "result_form")
    CORPUS_FIELD_NUMBER: _ClassVar[int]
    RECIPE_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINTS_FIELD_NUMBER: _ClassVar[int]
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    MAX_DISTANCE_FIELD_NUMBER: _ClassVar[int]
    MAX_IDS_FIELD_NUMBER: _ClassVar[int]
    ALLOW_PARTIAL_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    RESULT_FORM_FIELD_NUMBER: _ClassVar[int]
    corpus: str
    recipe: str
    fingerprints: _containers.RepeatedScalarFieldContainer[int]
    texts: _containers.RepeatedScalarFieldContainer[str]
    max_distance: int
    max_ids: int
    allow_partial: bool
    limit: int
    result_form: _matches_pb2.ResultForm
    def __init__(self, corpus: _Optional[str] = ..., recipe: _Optional[str] = ..., fingerprints: _Optional[_Iterable[int]] = ..., texts: _Optional[_Iterable[str]] = ..., max_distance: _Optional[int] = ..., max_ids: _Optional[int] = ..., allow_partial: bool = ..., limit: _Optional[int] = ..., result_form: _Optional[_Union[_matches_pb2.ResultForm, str]] = ...) -> None: ...

class FindAllResponse(_message.Message):
    __slots__ = ("queries", "matches", "completeness", "rows", "truncated_queries")
    QUERIES_FIELD_NUMBER: _ClassVar[int]
    MATCHES_FIELD_NUMBER: _ClassVar[int]
    COMPLETENESS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_QUERIES_FIELD_NUMBER: _ClassVar[int]
    queries: _containers.RepeatedScalarFieldContainer[int]
    matches: _matches_pb2.Matches
    completeness: _matches_pb2.Completeness
    rows: _containers.RepeatedCompositeFieldContainer[_matches_pb2.Match]
    truncated_queries: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, queries: _Optional[_Iterable[int]] = ..., matches: _Optional[_Union[_matches_pb2.Matches, _Mapping]] = ..., completeness: _Optional[_Union[_matches_pb2.Completeness, _Mapping]] = ..., rows: _Optional[_Iterable[_Union[_matches_pb2.Match, _Mapping]]] = ..., truncated_queries: _Optional[_Iterable[int]] = ...) -> None: ...

class InsertStreamRequest(_message.Message):
    __slots__ = ("sequence", "batch")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    batch: InsertRequest
    def __init__(self, sequence: _Optional[int] = ..., batch: _Optional[_Union[InsertRequest, _Mapping]] = ...) -> None: ...

class InsertStreamResponse(_message.Message):
    __slots__ = ("sequence", "result")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    result: InsertResponse
    def __init__(self, sequence: _Optional[int] = ..., result: _Optional[_Union[InsertResponse, _Mapping]] = ...) -> None: ...

class RemoveStreamRequest(_message.Message):
    __slots__ = ("sequence", "batch")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    batch: RemoveRequest
    def __init__(self, sequence: _Optional[int] = ..., batch: _Optional[_Union[RemoveRequest, _Mapping]] = ...) -> None: ...

class RemoveStreamResponse(_message.Message):
    __slots__ = ("sequence", "result")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    result: RemoveResponse
    def __init__(self, sequence: _Optional[int] = ..., result: _Optional[_Union[RemoveResponse, _Mapping]] = ...) -> None: ...

class FindFirstStreamRequest(_message.Message):
    __slots__ = ("sequence", "batch")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    batch: FindFirstRequest
    def __init__(self, sequence: _Optional[int] = ..., batch: _Optional[_Union[FindFirstRequest, _Mapping]] = ...) -> None: ...

class FindFirstStreamResponse(_message.Message):
    __slots__ = ("sequence", "result")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    result: FindFirstResponse
    def __init__(self, sequence: _Optional[int] = ..., result: _Optional[_Union[FindFirstResponse, _Mapping]] = ...) -> None: ...

class FindAllStreamRequest(_message.Message):
    __slots__ = ("sequence", "batch")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    batch: FindAllRequest
    def __init__(self, sequence: _Optional[int] = ..., batch: _Optional[_Union[FindAllRequest, _Mapping]] = ...) -> None: ...

class FindAllStreamResponse(_message.Message):
    __slots__ = ("sequence", "result")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    result: FindAllResponse
    def __init__(self, sequence: _Optional[int] = ..., result: _Optional[_Union[FindAllResponse, _Mapping]] = ...) -> None: ...

class ScanRequest(_message.Message):
    __slots__ = ("corpus", "recipe")
    CORPUS_FIELD_NUMBER: _ClassVar[int]
    RECIPE_FIELD_NUMBER: _ClassVar[int]
    corpus: str
    recipe: str
    def __init__(self, corpus: _Optional[str] = ..., recipe: _Optional[str] = ...) -> None: ...

class ScanResponse(_message.Message):
    __slots__ = ("fingerprints", "ids")
    FINGERPRINTS_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    fingerprints: _containers.RepeatedScalarFieldContainer[int]
    ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, fingerprints: _Optional[_Iterable[int]] = ..., ids: _Optional[_Iterable[str]] = ...) -> None: ...

class FindPairsRequest(_message.Message):
    __slots__ = ("corpus", "recipe", "max_distance")
    CORPUS_FIELD_NUMBER: _ClassVar[int]
    RECIPE_FIELD_NUMBER: _ClassVar[int]
    MAX_DISTANCE_FIELD_NUMBER: _ClassVar[int]
    corpus: str
    recipe: str
    max_distance: int
    def __init__(self, corpus: _Optional[str] = ..., recipe: _Optional[str] = ..., max_distance: _Optional[int] = ...) -> None: ...

class FindPairsResponse(_message.Message):
    __slots__ = ("fingerprints", "id_counts", "ids", "lefts", "rights", "distances")
    FINGERPRINTS_FIELD_NUMBER: _ClassVar[int]
    ID_COUNTS_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    LEFTS_FIELD_NUMBER: _ClassVar[int]
    RIGHTS_FIELD_NUMBER: _ClassVar[int]
    DISTANCES_FIELD_NUMBER: _ClassVar[int]
    fingerprints: _containers.RepeatedScalarFieldContainer[int]
    id_counts: _containers.RepeatedScalarFieldContainer[int]
    ids: _containers.RepeatedScalarFieldContainer[str]
    lefts: _containers.RepeatedScalarFieldContainer[int]
    rights: _containers.RepeatedScalarFieldContainer[int]
    distances: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, fingerprints: _Optional[_Iterable[int]] = ..., id_counts: _Optional[_Iterable[int]] = ..., ids: _Optional[_Iterable[str]] = ..., lefts: _Optional[_Iterable[int]] = ..., rights: _Optional[_Iterable[int]] = ..., distances: _Optional[_Iterable[int]] = ...) -> None: ...

class FindClustersRequest(_message.Message):
    __slots__ = ("corpus", "recipe", "max_distance")
    CORPUS_FIELD_NUMBER: _ClassVar[int]
    RECIPE_FIELD_NUMBER: _ClassVar[int]
    MAX_DISTANCE_FIELD_NUMBER: _ClassVar[int]
    corpus: str
    recipe: str
    max_distance: int
    def __init__(self, corpus: _Optional[str] = ..., recipe: _Optional[str] = ..., max_distance: _Optional[int] = ...) -> None: ...

class FindClustersResponse(_message.Message):
    __slots__ = ("clusters", "fingerprints", "ids")
    CLUSTERS_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINTS_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    clusters: _containers.RepeatedScalarFieldContainer[int]
    fingerprints: _containers.RepeatedScalarFieldContainer[int]
    ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, clusters: _Optional[_Iterable[int]] = ..., fingerprints: _Optional[_Iterable[int]] = ..., ids: _Optional[_Iterable[str]] = ...) -> None: ...

class FingerprintRequest(_message.Message):
    __slots__ = ("corpus", "recipe", "texts")
    CORPUS_FIELD_NUMBER: _ClassVar[int]
    RECIPE_FIELD_NUMBER: _ClassVar[int]
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    corpus: str
    recipe: str
    texts: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, corpus: _Optional[str] = ..., recipe: _Optional[str] = ..., texts: _Optional[_Iterable[str]] = ...) -> None: ...

class FingerprintResponse(_message.Message):
    __slots__ = ("fingerprints", "recipe")
    FINGERPRINTS_FIELD_NUMBER: _ClassVar[int]
    RECIPE_FIELD_NUMBER: _ClassVar[int]
    fingerprints: _containers.RepeatedScalarFieldContainer[int]
    recipe: str
    def __init__(self, fingerprints: _Optional[_Iterable[int]] = ..., recipe: _Optional[str] = ...) -> None: ...
