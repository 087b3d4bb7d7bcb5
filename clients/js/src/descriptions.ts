// What corpora are, and what nodes hold of them.

import { timestampDate } from "@bufbuild/protobuf/wkt";

import {
  CorpusState,
  NodeState,
  type Corpus,
  type GetCorpusResponse,
  type NodeShards as NodeShardsMessage,
} from "./gen/simshard/v1/corpus_service_pb.js";
import { malformed } from "./errors.js";

/** The configuration of a corpus, fixed when it is created, and its state. */
export interface CorpusInfo {
  name: string;
  /** Number of blocks a fingerprint is cut into. */
  blocks: number;
  /** Largest distance that is searched. */
  distance: number;
  /** What turns texts into fingerprints. */
  recipe: string;
  created: Date | undefined;
  /** Only a corpus that is `LIVE` can be used. The others are half created or half deleted. */
  state: keyof typeof CorpusState;
}

/** A corpus and what each node holds of it. */
export interface CorpusDescription extends CorpusInfo {
  /** Undefined unless all nodes are serving. */
  documentCount: number | undefined;
  /** Distinct fingerprints; undefined unless all nodes are serving. */
  fingerprintCount: number | undefined;
  nodes: NodeShards[];
}

/** What one node holds of a corpus. */
export interface NodeShards {
  node: string;
  address: string;
  state: keyof typeof NodeState;
  /** The shards that it answers for. */
  shards: number[];
  /** Documents in each of those shards. A document is in several shards. */
  documentCounts: number[];
  /** Other shards that it holds in sync, without tables. */
  coldShards: number[];
}

export function infoOf(corpus: Corpus): CorpusInfo {
  const { name, blocks, distance, recipe, createTime, state } = corpus;
  return {
    name,
    blocks,
    distance,
    recipe,
    created: createTime && timestampDate(createTime),
    state: nameOf(CorpusState, state),
  };
}

export function descriptionOf(answer: GetCorpusResponse): CorpusDescription {
  if (!answer.corpus) throw malformed("it describes no corpus");
  return {
    ...infoOf(answer.corpus),
    documentCount: answer.documentCount === undefined ? undefined : Number(answer.documentCount),
    fingerprintCount: answer.fingerprintCount === undefined ? undefined : Number(answer.fingerprintCount),
    nodes: answer.nodes.map(shardsOf),
  };
}

function shardsOf(held: NodeShardsMessage): NodeShards {
  const { node, address, state, shards, documentCounts, coldShards } = held;
  return {
    node,
    address,
    state: nameOf(NodeState, state),
    shards,
    documentCounts: documentCounts.map(Number),
    coldShards,
  };
}

/** The name of a value of an enum. A value of a newer server is as good as none. */
function nameOf<E extends Record<string | number, string | number>>(values: E, value: number): keyof E {
  return (values[value] ?? values[0]) as keyof E;
}
