// The client of Simshard: exact near-duplicate search over 64-bit fingerprints of texts.

export { Found, type Match, type Missing } from "./answers.js";
export type { Document, Source } from "./batches.js";
export type { CallOptions } from "./calls.js";
export { Client, type ClientOptions, type CreateOptions } from "./client.js";
export type { Documents, Queries } from "./columns.js";
export { Corpus, type FindStreamOptions, type Stream, type WholeOptions } from "./corpus.js";
export type { CorpusDescription, CorpusInfo, NodeShards } from "./descriptions.js";
export { REASONS, SimshardError, type Code, type Reason } from "./errors.js";
export type { FindFirstOptions, FindOptions, SearchOptions } from "./searches.js";
export { similarity } from "./similarity.js";
export type { Acknowledged, StreamOptions } from "./streams.js";
export type { ClusterMember, Pair, StoredDocument } from "./wholes.js";
