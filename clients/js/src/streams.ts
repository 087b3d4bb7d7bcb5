// Streams of changes and searches: what is sent for each batch, and what comes back.

import { create } from "@bufbuild/protobuf";

import { rows, type Answer, type Match } from "./answers.js";
import { Batches, documentItem, queryItem, splitQueries } from "./batches.js";
import type { Batch, Document, Source } from "./batches.js";
import { checkedTime } from "./checks.js";
import type { Connection } from "./connection.js";
import type { SimshardError } from "./errors.js";
import {
  CorpusService,
  FindAllStreamRequestSchema,
  FindFirstStreamRequestSchema,
  InsertStreamRequestSchema,
  RemoveStreamRequestSchema,
  type FindAllRequest,
  type FindFirstRequest,
  type InsertRequest,
  type RemoveRequest,
} from "./gen/simshard/v1/corpus_service_pb.js";
import { resending, type Kind } from "./resend.js";

const { method } = CorpusService;

/** Batches of changes in flight. */
const CHANGES_WINDOW = 8;

/** Batches of queries in flight: as many as the server holds. Each answer may have 16 MiB. */
const QUERIES_WINDOW = 4;

/** How a stream works. */
export interface StreamOptions {
  /** At most this many documents or queries a batch. 4096 if it is not set; 1 sends each at once. */
  batchSize?: number | undefined;
  /** How long to wait for the answer to a batch before it is sent again, in milliseconds. */
  timeoutMs?: number | undefined;
  /** How long to go on without any progress, in milliseconds. */
  patienceMs?: number | undefined;
  /** Ends the stream, which then throws the reason of the signal. */
  signal?: AbortSignal | undefined;
}

/** The result of one batch of a stream of changes. The batch is durable. */
export interface Acknowledged {
  /** Its documents. */
  documents: number;
  /**
   * Those that changed something: that were not there before an insert, or were before a removal. A batch that was sent
   * twice may count less than it did, as the first time may have done it.
   */
  changed: number;
}

/** The settings of the client that a stream starts from. */
export interface Defaults {
  timeoutMs: number;
  patienceMs: number;
  onWaiting: ((error: SimshardError, leftMs: number) => void) | undefined;
}

/** A stream of one method. */
interface Stream<Q, A extends { sequence: bigint }> {
  kind: Kind<Batch, Q, A>;
  url: string;
}

function stream<Q, A extends { sequence: bigint }>(
  connection: Connection,
  kind: Omit<Kind<Batch, Q, A>, "split"> & Partial<Kind<Batch, Q, A>>,
): Stream<Q, A> {
  return { kind: { split: () => undefined, ...kind }, url: connection.url };
}

/** Inserts, as messages that `make` makes. */
export function inserts(connection: Connection, make: (batch: Batch) => InsertRequest) {
  return stream(connection, {
    open: () => connection.bidiStream(method.insertStream),
    request: (sequence, batch) => create(InsertStreamRequestSchema, { sequence, batch: make(batch) }),
    window: CHANGES_WINDOW,
  });
}

/** Removals. */
export function removals(connection: Connection, make: (batch: Batch) => RemoveRequest) {
  return stream(connection, {
    open: () => connection.bidiStream(method.removeStream),
    request: (sequence, batch) => create(RemoveStreamRequestSchema, { sequence, batch: make(batch) }),
    window: CHANGES_WINDOW,
  });
}

/** Searches for all matches. */
export function findAlls(connection: Connection, make: (batch: Batch) => FindAllRequest) {
  return stream(connection, {
    open: () => connection.bidiStream(method.findAllStream),
    request: (sequence, batch) => create(FindAllStreamRequestSchema, { sequence, batch: make(batch) }),
    split: splitQueries,
    window: QUERIES_WINDOW,
  });
}

/** Searches for the nearest match. */
export function findFirsts(connection: Connection, make: (batch: Batch) => FindFirstRequest) {
  return stream(connection, {
    open: () => connection.bidiStream(method.findFirstStream),
    request: (sequence, batch) => create(FindFirstStreamRequestSchema, { sequence, batch: make(batch) }),
    split: splitQueries,
    window: QUERIES_WINDOW,
  });
}

/** The results of a stream of changes, batch by batch. */
export async function* changes<Q, A extends { sequence: bigint; result?: Changed | undefined }>(
  stream: Stream<Q, A>,
  documents: Source<Document>,
  defaults: Defaults,
  options: StreamOptions,
): AsyncGenerator<Acknowledged, void, undefined> {
  const batches = new Batches(documents, documentItem, options.batchSize);
  for await (const { batch, answer } of resending(batches, stream.kind, settings(stream.url, defaults, options))) {
    yield { documents: batch.count, changed: Number(changedCount(answer.result)) };
  }
}

/** The matches of a stream of queries, in their order. */
export async function* matches<Q, A extends { sequence: bigint; result?: Answer | undefined }>(
  stream: Stream<Q, A>,
  queries: Source<bigint | string>,
  defaults: Defaults,
  options: StreamOptions,
): AsyncGenerator<Match, void, undefined> {
  const batches = new Batches(queries, queryItem, options.batchSize);
  for await (const { batch, answer } of resending(batches, stream.kind, settings(stream.url, defaults, options))) {
    if (answer.result) yield* rows(answer.result, batch.start);
  }
}

/** The count in an answer to a change. */
type Changed = { insertedCount: bigint } | { removedCount: bigint };

function changedCount(result: Changed | undefined): bigint {
  if (!result) return 0n;
  return "insertedCount" in result ? result.insertedCount : result.removedCount;
}

function settings(url: string, defaults: Defaults, options: StreamOptions) {
  return {
    url,
    timeoutMs: checkedTime(options.timeoutMs ?? defaults.timeoutMs, "timeoutMs"),
    patienceMs: checkedTime(options.patienceMs ?? defaults.patienceMs, "patienceMs"),
    signal: options.signal,
    onWaiting: defaults.onWaiting,
  };
}
