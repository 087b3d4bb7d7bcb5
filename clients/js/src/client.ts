// A client of a router: its corpora.

import { create } from "@bufbuild/protobuf";

import { call, callOnce, limitsOf, type CallOptions } from "./calls.js";
import { checkedCount, checkedString, checkedTime } from "./checks.js";
import { Connection, type Access } from "./connection.js";
import { Corpus, type Settings } from "./corpus.js";
import { infoOf, type CorpusInfo } from "./descriptions.js";
import { malformed, type SimshardError } from "./errors.js";
import {
  CorpusService,
  CreateCorpusRequestSchema,
  DeleteCorpusRequestSchema,
  ListCorporaRequestSchema,
} from "./gen/simshard/v1/corpus_service_pb.js";
import { CALL, checkOptions, CLIENT, CREATE } from "./options.js";

/** Where a router listens, if nothing else is said. */
const DEFAULT_ROUTER = "http://127.0.0.1:7460";

/** The recipe of new corpora, if nothing else is said. On the wire, none means `words-v1`. */
const DEFAULT_RECIPE = "words-v3";

/** How a client works. Times are in milliseconds. */
export interface ClientOptions extends Access {
  /** How long a request may take. 30,000 if it is not set. */
  timeoutMs?: number;
  /** How long a stream goes on without any progress, after a lost connection, say. 30,000 if it is not set. */
  patienceMs?: number;
  /** If set, whatever concerns corpora of other recipes is refused with `RECIPE_MISMATCH`. */
  recipe?: string;
  /** Is told why a stream waits, and for how long it goes on trying: once until something gets through. */
  onWaiting?: (error: SimshardError, leftMs: number) => void;
}

/** What a corpus is made of. */
export interface CreateOptions extends CallOptions {
  /** Number of blocks a fingerprint is cut into. The server chooses if it is not set. */
  blocks?: number;
  /** Largest distance that is searched. The server chooses if it is not set. */
  distance?: number;
  /** What turns texts into fingerprints. `words-v3` if it is not set. */
  recipe?: string;
}

/**
 * A client of one router, and one connection to it.
 *
 * Every request has a deadline. Those that may be repeated without harm are tried again where that may help: all but
 * the creation and deletion of corpora. A request that fails rejects with a {@link SimshardError}.
 */
export class Client {
  readonly #connection: Connection;
  readonly #settings: Settings;

  /**
   * A client of the router at `host:port` or `http://host:port`, which is connected to when first needed. With TLS it is
   * `https://host:port`. Without an address it is that of the variable SIMSHARD_ROUTER, or 127.0.0.1:7460.
   *
   * @throws TypeError if the address is unusable, or what TLS needs, or there is no such option.
   */
  constructor(router = process.env["SIMSHARD_ROUTER"] ?? DEFAULT_ROUTER, options: ClientOptions = {}) {
    checkOptions(options, CLIENT);
    this.#settings = {
      timeoutMs: checkedTime(options.timeoutMs ?? 30_000, "timeoutMs"),
      patienceMs: checkedTime(options.patienceMs ?? 30_000, "patienceMs"),
      recipe: checkedString(options.recipe ?? "", "recipe"),
      onWaiting: options.onWaiting,
    };
    this.#connection = new Connection(router, options);
  }

  /** The documents of a corpus. Asks nothing of the server. */
  corpus(name: string): Corpus {
    return new Corpus(this.#connection, checkedString(name, "the name"), this.#settings);
  }

  /** Creates a corpus. */
  async createCorpus(name: string, options: CreateOptions = {}): Promise<CorpusInfo> {
    checkOptions(options, CREATE);
    const { blocks, distance, recipe } = options;
    const request = create(CreateCorpusRequestSchema, {
      name: checkedString(name, "the name"),
      recipe: checkedString(recipe ?? DEFAULT_RECIPE, "recipe"),
      ...(blocks === undefined ? {} : { blocks: checkedCount(blocks, "blocks") }),
      ...(distance === undefined ? {} : { distance: checkedCount(distance, "distance") }),
    });
    const limits = limitsOf(options, this.#settings.timeoutMs);
    const answer = await callOnce(this.#connection, CorpusService.method.createCorpus, request, limits);
    if (!answer.corpus) throw malformed("it describes no corpus");
    return infoOf(answer.corpus);
  }

  /** Lists all corpora, by name. */
  async listCorpora(options: CallOptions = {}): Promise<CorpusInfo[]> {
    checkOptions(options, CALL);
    const corpora: CorpusInfo[] = [];
    const limits = limitsOf(options, this.#settings.timeoutMs);
    let pageToken = "";
    do {
      const request = create(ListCorporaRequestSchema, { pageToken });
      const page = await call(this.#connection, CorpusService.method.listCorpora, request, limits);
      corpora.push(...page.corpora.map(infoOf));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    return corpora;
  }

  /** Deletes a corpus and all its documents. */
  async deleteCorpus(name: string, options: CallOptions = {}): Promise<void> {
    checkOptions(options, CALL);
    const request = create(DeleteCorpusRequestSchema, { name: checkedString(name, "the name") });
    const limits = limitsOf(options, this.#settings.timeoutMs);
    await callOnce(this.#connection, CorpusService.method.deleteCorpus, request, limits);
  }

  /** Closes the connection. Requests in flight may still be answered; new ones fail. */
  close(): void {
    this.#connection.close();
  }

  /** Closes the connection at the end of the block that declares the client with `using`. */
  [Symbol.dispose](): void {
    this.close();
  }
}
