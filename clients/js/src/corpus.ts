// The documents of one corpus.

import { create } from "@bufbuild/protobuf";

import { Found, type Answer, type Match } from "./answers.js";
import type { Batch, Document, Source } from "./batches.js";
import { answers, call, limitsOf, type CallOptions, type Limits } from "./calls.js";
import { checkedCount } from "./checks.js";
import { documentColumns, halves, queryColumns, type Documents, type Queries, type QueryColumns } from "./columns.js";
import type { Connection } from "./connection.js";
import { descriptionOf, type CorpusDescription } from "./descriptions.js";
import { SimshardError } from "./errors.js";
import {
  CorpusService,
  FindAllRequestSchema,
  FindClustersRequestSchema,
  FindFirstRequestSchema,
  FindPairsRequestSchema,
  FingerprintRequestSchema,
  GetCorpusRequestSchema,
  InsertRequestSchema,
  RemoveRequestSchema,
  ScanRequestSchema,
} from "./gen/simshard/v1/corpus_service_pb.js";
import { CALL, checkOptions, FIND, FIND_FIRST, FIND_FIRST_STREAM, FIND_STREAM, SCAN, STREAM, WHOLE } from "./options.js";
import { checkedSpec, type FindFirstOptions, type FindOptions, type SearchOptions } from "./searches.js";
import { changes, findAlls, findFirsts, inserts, matches, removals } from "./streams.js";
import type { Acknowledged, Defaults, StreamOptions } from "./streams.js";
import { members, pairs, scanned, type ClusterMember, type Pair, type StoredDocument } from "./wholes.js";

const { method } = CorpusService;

/** The settings of a client, all of them set. */
export interface Settings extends Defaults {
  recipe: string;
}

/** What streams return: iterate over it with `for await`, which also ends it early. */
export type Stream<T> = AsyncGenerator<T, void, undefined>;

/** How a stream of searches works. */
export type FindStreamOptions = SearchOptions & StreamOptions & { limit?: number | undefined };

/** The distance of streams about a whole corpus. */
export interface WholeOptions {
  /** The largest distance of a pair, in bits; at most that of the corpus, and that if it is not set. */
  maxDistance?: number | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * The documents of one corpus.
 *
 * Single requests take at most 65,536 documents or queries, and 16 MiB. Streams take any number. An option that there is
 * not is refused with a TypeError.
 */
export class Corpus {
  readonly name: string;
  readonly #connection: Connection;
  readonly #settings: Settings;

  /** Made by {@link Client.corpus}. */
  constructor(connection: Connection, name: string, settings: Settings) {
    this.name = name;
    this.#connection = connection;
    this.#settings = settings;
  }

  /** Describes the corpus and what each node holds of it. */
  async describe(options: CallOptions = {}): Promise<CorpusDescription> {
    checkOptions(options, CALL);
    const request = create(GetCorpusRequestSchema, { name: this.name });
    return descriptionOf(await call(this.#connection, method.getCorpus, request, this.#limits(options)));
  }

  /** Turns texts into fingerprints by the recipe of the corpus. */
  async fingerprint(texts: ArrayLike<string>, options: CallOptions = {}): Promise<bigint[]> {
    checkOptions(options, CALL);
    const columns = queryColumns({ texts });
    const request = create(FingerprintRequestSchema, { ...this.#corpus(), texts: columns.texts });
    const answer = await call(this.#connection, method.fingerprint, request, this.#limits(options));
    return answer.fingerprints;
  }

  /** Inserts documents; returns how many were new. */
  async insert(documents: Documents, options: CallOptions = {}): Promise<number> {
    checkOptions(options, CALL);
    const request = create(InsertRequestSchema, { ...this.#corpus(), ...documentColumns(documents) });
    const answer = await call(this.#connection, method.insert, request, this.#limits(options));
    return Number(answer.insertedCount);
  }

  /** Removes documents; returns how many there were. */
  async remove(documents: Documents, options: CallOptions = {}): Promise<number> {
    checkOptions(options, CALL);
    const request = create(RemoveRequestSchema, { ...this.#corpus(), ...documentColumns(documents) });
    const answer = await call(this.#connection, method.remove, request, this.#limits(options));
    return Number(answer.removedCount);
  }

  /** Finds all matches of each query. */
  async find(queries: Queries, options: FindOptions = {}): Promise<Found> {
    checkOptions(options, FIND);
    const spec = checkedSpec(options);
    const limits = this.#limits(options);
    return inHalves(queryColumns(queries), (columns) => {
      const request = create(FindAllRequestSchema, { ...this.#corpus(), ...spec, ...columns });
      return call(this.#connection, method.findAll, request, limits);
    });
  }

  /** Finds the nearest match of each query: none or one each. */
  async findFirst(queries: Queries, options: FindFirstOptions = {}): Promise<Found> {
    checkOptions(options, FIND_FIRST);
    const { limit: _, ...spec } = checkedSpec(options);
    const limits = this.#limits(options);
    return inHalves(queryColumns(queries), (columns) => {
      const request = create(FindFirstRequestSchema, { ...this.#corpus(), ...spec, ...columns });
      return call(this.#connection, method.findFirst, request, limits);
    });
  }

  /**
   * Inserts the documents of a source; yields what became of each batch, in their order, as it becomes durable.
   *
   * Up to 8 batches are in flight, and are kept until they are answered. After a lost connection, or where the server
   * does not answer in time, they are sent again. It gives up when nothing has been answered for the client's patience.
   * Inserting again changes nothing, but what the first time inserted then counts as there already.
   *
   * After an error, the batches that were not yielded may be inserted or not: insert them again.
   */
  insertStream(documents: Source<Document>, options: StreamOptions = {}): Stream<Acknowledged> {
    checkOptions(options, STREAM);
    const make = (batch: Batch) => create(InsertRequestSchema, this.#changeOf(batch));
    return changes(inserts(this.#connection, make), documents, this.#settings, options);
  }

  /** Removes the documents of a source, with the rules of {@link insertStream}. */
  removeStream(documents: Source<Document>, options: StreamOptions = {}): Stream<Acknowledged> {
    checkOptions(options, STREAM);
    const make = (batch: Batch) => create(RemoveRequestSchema, this.#changeOf(batch));
    return changes(removals(this.#connection, make), documents, this.#settings, options);
  }

  /**
   * Finds all matches of the queries of a source: fingerprints, or strings, which are texts. Yields the matches in the
   * order of the queries. Up to 4 batches are in flight, and are sent again as {@link insertStream} does it.
   */
  findStream(queries: Source<bigint | string>, options: FindStreamOptions = {}): Stream<Match> {
    checkOptions(options, FIND_STREAM);
    const spec = checkedSpec(options);
    const make = (batch: Batch) => create(FindAllRequestSchema, { ...this.#queriesOf(batch), ...spec });
    return matches(findAlls(this.#connection, make), queries, this.#settings, options);
  }

  /** Finds the nearest match of each query of a source, with the rules of {@link findStream}. */
  findFirstStream(queries: Source<bigint | string>, options: SearchOptions & StreamOptions = {}): Stream<Match> {
    checkOptions(options, FIND_FIRST_STREAM);
    const { limit: _, ...spec } = checkedSpec(options);
    const make = (batch: Batch) => create(FindFirstRequestSchema, { ...this.#queriesOf(batch), ...spec });
    return matches(findFirsts(this.#connection, make), queries, this.#settings, options);
  }

  /**
   * Yields every document once, by fingerprint, then id. Those that are inserted or removed meanwhile may be among them
   * or not. It has no deadline; the server waits for its reader for 10 minutes.
   */
  async *scan(options: { signal?: AbortSignal } = {}): Stream<StoredDocument> {
    checkOptions(options, SCAN);
    const request = create(ScanRequestSchema, this.#corpus());
    for await (const answer of answers(this.#connection, method.scan, request, options.signal)) {
      yield* scanned(answer);
    }
  }

  /** Yields every pair of documents that are near each other, once, in no order. With the rules of {@link scan}. */
  async *findPairs(options: WholeOptions = {}): Stream<Pair> {
    checkOptions(options, WHOLE);
    const request = create(FindPairsRequestSchema, { ...this.#corpus(), ...distanceOf(options) });
    for await (const answer of answers(this.#connection, method.findPairs, request, options.signal)) {
      yield* pairs(answer);
    }
  }

  /**
   * Yields the documents that are linked by pairs, directly or through others: one cluster after another, ordered by
   * cluster, fingerprint, and id. With the rules of {@link scan}.
   */
  async *findClusters(options: WholeOptions = {}): Stream<ClusterMember> {
    checkOptions(options, WHOLE);
    const request = create(FindClustersRequestSchema, { ...this.#corpus(), ...distanceOf(options) });
    for await (const answer of answers(this.#connection, method.findClusters, request, options.signal)) {
      yield* members(answer);
    }
  }

  #corpus(): { corpus: string; recipe: string } {
    return { corpus: this.name, recipe: this.#settings.recipe };
  }

  #changeOf({ fingerprints, texts, ids }: Batch) {
    return { ...this.#corpus(), fingerprints, texts, ids };
  }

  #queriesOf({ fingerprints, texts }: Batch) {
    return { ...this.#corpus(), fingerprints, texts };
  }

  #limits(options: CallOptions): Limits {
    return limitsOf(options, this.#settings.timeoutMs);
  }
}

function distanceOf({ maxDistance }: WholeOptions): { maxDistance?: number } {
  return maxDistance === undefined ? {} : { maxDistance: checkedCount(maxDistance, "maxDistance") };
}

/** Asks with all queries, or with ever smaller parts of them where the answer is too large. */
async function inHalves(queries: QueryColumns, ask: (part: QueryColumns) => Promise<Answer>): Promise<Found> {
  const found = new Found();
  const waiting = [queries];
  for (let part = waiting.pop(); part; part = waiting.pop()) {
    try {
      found.add(await ask(part));
    } catch (error) {
      const isTooLarge = error instanceof SimshardError && error.reason === "ANSWER_TOO_LARGE";
      const parts = isTooLarge ? halves(part) : undefined;
      if (!parts) throw error;
      waiting.push(parts[1], parts[0]);
    }
  }
  return found;
}
