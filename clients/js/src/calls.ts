// Single requests, which are repeated where that may help, and streams about whole corpora.

import type { DescMethod, MessageShape } from "@bufbuild/protobuf";

import { checkedTime } from "./checks.js";
import type { Connection } from "./connection.js";
import { fromStatus, SimshardError, type CallStatus } from "./errors.js";
import { pauseBefore } from "./patience.js";
import { sleep } from "./waiting.js";

/** A request that may succeed later is tried again so often. */
const RETRIES = 3;

/** What every request takes. */
export interface CallOptions {
  /** How long to wait for the answer, retries included, in milliseconds. That of the client if it is not set. */
  timeoutMs?: number | undefined;
  /** Ends the request. It then rejects with the reason of the signal. */
  signal?: AbortSignal | undefined;
}

/** The time and the signal of one request. */
export interface Limits {
  timeoutMs: number;
  signal: AbortSignal | undefined;
}

/** What a request may take, where the caller did not say. */
export function limitsOf(options: CallOptions, timeoutMs: number): Limits {
  const time = options.timeoutMs ?? timeoutMs;
  return { timeoutMs: checkedTime(time, "timeoutMs"), signal: options.signal };
}

/** Makes a request that may be repeated: again, where that may help and time is left. */
export async function call<M extends DescMethod>(
  connection: Connection,
  method: M,
  request: MessageShape<M["input"]>,
  limits: Limits,
): Promise<MessageShape<M["output"]>> {
  const end = Date.now() + limits.timeoutMs;
  for (let attempt = 0; ; attempt++) {
    try {
      return await callWithin(connection, method, request, end, limits);
    } catch (error) {
      if (!(error instanceof SimshardError) || !error.isPassing || attempt === RETRIES) throw error;
      const pause = pauseBefore(attempt, error.retryDelayMs);
      if (Date.now() + pause >= end) throw error;
      await sleep(pause, limits.signal);
    }
  }
}

/** Makes a request that must not be repeated. */
export function callOnce<M extends DescMethod>(
  connection: Connection,
  method: M,
  request: MessageShape<M["input"]>,
  limits: Limits,
): Promise<MessageShape<M["output"]>> {
  return callWithin(connection, method, request, Date.now() + limits.timeoutMs, limits);
}

async function callWithin<M extends DescMethod>(
  connection: Connection,
  method: M,
  request: MessageShape<M["input"]>,
  end: number,
  limits: Limits,
): Promise<MessageShape<M["output"]>> {
  try {
    return await connection.unary(method, request, end, limits.signal);
  } catch (error) {
    if (!isStatus(error)) throw error;
    const failure = fromStatus(error, connection.url);
    if (failure.code !== "DEADLINE_EXCEEDED" || failure.reason !== undefined) throw failure;
    const message = `the router at ${connection.url} did not answer within ${limits.timeoutMs} ms`;
    throw new SimshardError(message, { code: failure.code, cause: error });
  }
}

/** The answers of a stream about a whole corpus, each read when it is asked for. It has no deadline. */
export async function* answers<M extends DescMethod>(
  connection: Connection,
  method: M,
  request: MessageShape<M["input"]>,
  signal: AbortSignal | undefined,
): AsyncGenerator<MessageShape<M["output"]>, void, undefined> {
  signal?.throwIfAborted();
  const { call, gate } = connection.serverStream(method, request);
  const abort = (): void => call.cancel();
  signal?.addEventListener("abort", abort, { once: true });
  // A stream that was left reports its end too.
  call.on("error", () => {});
  try {
    gate.open();
    for await (const answer of call) {
      yield answer as MessageShape<M["output"]>;
      signal?.throwIfAborted();
      gate.open();
    }
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    throw isStatus(error) ? fromStatus(error, connection.url) : error;
  } finally {
    signal?.removeEventListener("abort", abort);
    call.cancel();
  }
}

/** Whether this is the status of a call, as grpc-js reports it. */
export function isStatus(error: unknown): error is Error & CallStatus {
  return error instanceof Error && "code" in error && "details" in error && "metadata" in error;
}
