// A stream of batches that are sent again until they are answered.
//
//     source --> window, kept until answered --> one stream --> answers, in order
//                     ^                              |
//                     +--- pause, a new stream <-----+ broke, failed, or says nothing
//
// It reads a batch, and takes an answer, whichever comes first. So neither a slow source nor a slow server holds up the
// other. Nothing is read from the source while the consumer is busy, but for one batch.
//
// A batch is kept until it is answered. Every new stream begins with all that are kept, in their order. Batches are
// answered in their order, each once; any other answer is an error. What may pass is an error only once nothing has
// been answered for the whole patience.

import type { ClientDuplexStream } from "@grpc/grpc-js";

import { isStatus } from "./calls.js";
import { fromStatus, malformed, noAnswer, SimshardError } from "./errors.js";
import { Patience } from "./patience.js";
import { Bell, sleep } from "./waiting.js";

/** A part of the input. */
export interface Placed {
  /** The position of its first element in the input. */
  start: number;
}

/** What differs between streams. */
export interface Kind<B extends Placed, Q, A extends { sequence: bigint }> {
  /** Opens a stream. */
  open(): ClientDuplexStream<Q, A>;
  /** The message for a batch. */
  request(sequence: bigint, batch: B): Q;
  /** A batch in two, if the answer to all of it would be too large. Undefined if that is of no use. */
  split(batch: B): B[] | undefined;
  /** Batches that are sent before the first of them is answered. */
  window: number;
}

/** How long to wait, and whom to tell. */
export interface Settings {
  url: string;
  timeoutMs: number;
  patienceMs: number;
  signal: AbortSignal | undefined;
  onWaiting: ((error: SimshardError, leftMs: number) => void) | undefined;
}

/** Where batches come from. */
export interface BatchSource<B> {
  read(): Promise<B | undefined>;
  close(): Promise<void>;
}

/** Sends the batches of a source, and yields each with its answer, in their order. */
export async function* resending<B extends Placed, Q, A extends { sequence: bigint }>(
  source: BatchSource<B>,
  kind: Kind<B, Q, A>,
  settings: Settings,
): AsyncGenerator<{ batch: B; answer: A }, void, undefined> {
  const sending = new Resending(source, kind, settings);
  try {
    for (let next = await sending.next(); next; next = await sending.next()) yield next;
  } finally {
    await sending.close();
  }
}

/** A stream that is open. */
interface InFlight<Q, A> {
  call: ClientDuplexStream<Q, A>;
  answers: A[];
  failure: Error | undefined;
}

class Resending<B extends Placed, Q, A extends { sequence: bigint }> {
  readonly #source: BatchSource<B>;
  readonly #kind: Kind<B, Q, A>;
  readonly #settings: Settings;
  readonly #patience: Patience;
  readonly #bell = new Bell();
  readonly #ring = (): void => this.#bell.ring();
  /** The batches without an answer, the oldest first. */
  #window: { sequence: bigint; batch: B }[] = [];
  #nextSequence = 0n;
  /** When the oldest of them became the one that is to be answered. */
  #waitingSince = 0;
  #inFlight: InFlight<Q, A> | undefined;
  /** Why the last attempt failed, until something is answered. */
  #failure: SimshardError | undefined;
  #isReading = false;
  #hasEnded = false;
  #read: { batch: B | undefined } | { error: unknown } | undefined;

  constructor(source: BatchSource<B>, kind: Kind<B, Q, A>, settings: Settings) {
    this.#source = source;
    this.#kind = kind;
    this.#settings = settings;
    this.#patience = new Patience(settings.patienceMs);
    settings.signal?.addEventListener("abort", this.#ring);
  }

  /** The next batch that is answered, if any is left. */
  async next(): Promise<{ batch: B; answer: A } | undefined> {
    while (!(this.#window.length === 0 && this.#hasEnded)) {
      this.#settings.signal?.throwIfAborted();
      if (this.#window.length > 0) this.#inFlight ??= this.#begin();
      // An answer that has arrived is not late, even if it is taken only after the timeout.
      const answer = this.#inFlight?.answers.shift();
      if (answer) return this.#take(answer);
      if (this.#inFlight?.failure) await this.#recover(this.#errorOf(this.#inFlight.failure));
      else if (this.#read) this.#send(this.#read);
      else if (Date.now() >= this.#lateAt) {
        const problem = `nothing came for ${this.#settings.timeoutMs} ms`;
        await this.#recover(noAnswer(this.#settings.url, problem));
      } else if (this.#failure && Date.now() >= this.#patience.end) throw this.#failure;
      else await this.#event();
    }
    return undefined;
  }

  /** Ends the stream, and the reading of the source. */
  async close(): Promise<void> {
    this.#settings.signal?.removeEventListener("abort", this.#ring);
    this.#leave();
    // A source that is waiting for something ends when that comes. It must not hold up the end of the stream.
    const closed = this.#source.close();
    if (this.#isReading) closed.catch(() => {});
    else await closed;
  }

  /** When the oldest batch has waited for too long. */
  get #lateAt(): number {
    return this.#window.length > 0 ? this.#waitingSince + this.#settings.timeoutMs : Infinity;
  }

  /** Waits for an answer, a batch, the end of a stream, or a time at which something is to be done. */
  async #event(): Promise<void> {
    if (this.#window.length < this.#kind.window && !this.#isReading && !this.#hasEnded) {
      this.#isReading = true;
      this.#source.read().then(
        (batch) => this.#hasRead({ batch }),
        (error: unknown) => this.#hasRead({ error }),
      );
    }
    const patienceEnds = this.#failure && this.#window.length > 0 ? this.#patience.end : Infinity;
    await this.#bell.heard(Math.min(this.#lateAt, patienceEnds));
  }

  #hasRead(read: { batch: B | undefined } | { error: unknown }): void {
    this.#isReading = false;
    this.#read = read;
    this.#bell.ring();
  }

  /** A new stream, with all batches of the window on it. */
  #begin(): InFlight<Q, A> {
    const inFlight: InFlight<Q, A> = { call: this.#kind.open(), answers: [], failure: undefined };
    const ended = new Error("it ended the stream too early");
    inFlight.call.on("data", (answer: A) => {
      inFlight.answers.push(answer);
      this.#bell.ring();
    });
    // Later than the answers that have arrived, which grpc-js may hand over after the error.
    const fail = (error: Error): void => {
      setImmediate(() => {
        inFlight.failure ??= error;
        this.#bell.ring();
      });
    };
    inFlight.call.on("error", fail);
    inFlight.call.on("end", () => fail(ended));
    for (const { sequence, batch } of this.#window) {
      inFlight.call.write(this.#kind.request(sequence, batch));
    }
    if (this.#hasEnded) inFlight.call.end();
    this.#waitingSince = Date.now();
    return inFlight;
  }

  /** Takes what was read into the window, and sends it. */
  #send(read: { batch: B | undefined } | { error: unknown }): void {
    this.#read = undefined;
    if ("error" in read) throw read.error;
    if (read.batch === undefined) {
      this.#hasEnded = true;
      this.#inFlight?.call.end();
      return;
    }
    const sequence = this.#nextSequence++;
    if (this.#window.length === 0) this.#waitingSince = Date.now();
    this.#window.push({ sequence, batch: read.batch });
    this.#inFlight?.call.write(this.#kind.request(sequence, read.batch));
  }

  /** Takes the answer to the oldest batch. */
  #take(answer: A): { batch: B; answer: A } {
    const oldest = this.#window.shift();
    if (oldest?.sequence !== answer.sequence) {
      throw malformed(`an answer to batch ${answer.sequence}, whose turn it was not`);
    }
    this.#waitingSince = Date.now();
    this.#patience.afterProgress();
    this.#failure = undefined;
    return { batch: oldest.batch, answer };
  }

  /** Leaves a stream that failed. Returns when it is time for the next, or throws the error, if that is of no use. */
  async #recover(error: SimshardError): Promise<void> {
    this.#leave();
    // No batch waits for an answer.
    const [oldest] = this.#window;
    if (!oldest) return;
    // Batches are answered in their order.
    error = error.countedFrom(oldest.batch.start);
    if (error.reason === "ANSWER_TOO_LARGE" && this.#splitOldest()) return;
    // A server that did not have the time says it a moment before we would.
    const now = Date.now();
    const isLate = error.reason === "DEADLINE_TOO_SHORT" || now >= this.#lateAt;
    if (!error.isPassing && !isLate) throw error;
    const began = isLate ? now : this.#waitingSince;
    const pause = this.#patience.afterFailure(began, now, error.retryDelayMs);
    if (pause === undefined) throw error;
    const left = this.#patience.overdue(Date.now());
    if (left !== undefined) this.#settings.onWaiting?.(error, left);
    this.#failure = error;
    await sleep(pause, this.#settings.signal);
  }

  /** Sends the oldest batch as two, and all after it with new numbers. */
  #splitOldest(): boolean {
    const parts = this.#window[0] && this.#kind.split(this.#window[0].batch);
    if (!parts) return false;
    const batches = [...parts, ...this.#window.slice(1).map(({ batch }) => batch)];
    this.#window = batches.map((batch) => ({ sequence: this.#nextSequence++, batch }));
    return true;
  }

  #leave(): void {
    const left = this.#inFlight?.call;
    this.#inFlight = undefined;
    left?.removeAllListeners("data");
    left?.cancel();
  }

  #errorOf(failure: Error): SimshardError {
    if (isStatus(failure)) return fromStatus(failure, this.#settings.url);
    return noAnswer(this.#settings.url, failure.message);
  }
}
