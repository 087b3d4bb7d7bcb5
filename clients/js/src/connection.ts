// The connection to a router, and the calls on it.

import { fromBinary, toBinary } from "@bufbuild/protobuf";
import type { DescMessage, DescMethod, MessageShape } from "@bufbuild/protobuf";
import { Client as GrpcClient, credentials, Metadata } from "@grpc/grpc-js";
import type { ClientDuplexStream, ClientReadableStream } from "@grpc/grpc-js";

import { MAX_MESSAGE_BYTES } from "./batches.js";
import { gate, type Gate } from "./gate.js";

/** Room for what surrounds the largest answer. */
const MAX_ANSWER_BYTES = MAX_MESSAGE_BYTES + (64 << 10);

type Input<M extends DescMethod> = MessageShape<M["input"]>;
type Output<M extends DescMethod> = MessageShape<M["output"]>;

/** The connection to one router, which is made when first needed, and again after it was lost. */
export class Connection {
  readonly url: string;
  readonly #client: GrpcClient;

  /** @throws TypeError if the address is unusable. */
  constructor(router: string) {
    const host = hostOf(router);
    this.url = `http://${host}`;
    this.#client = new GrpcClient(host, credentials.createInsecure(), {
      "grpc.max_receive_message_length": MAX_ANSWER_BYTES,
      // Requests are sent again by this package, which knows which of them may be.
      "grpc.enable_retries": 0,
      "grpc.initial_reconnect_backoff_ms": 100,
      "grpc.min_reconnect_backoff_ms": 100,
      "grpc.max_reconnect_backoff_ms": 2000,
      // A connection to a machine that is gone is given up: those of the server do the same.
      "grpc.keepalive_time_ms": 10_000,
      "grpc.keepalive_timeout_ms": 5000,
    });
  }

  close(): void {
    this.#client.close();
  }

  /** One request and its answer. Rejects with the status of grpc-js, or with the reason of the signal. */
  unary<M extends DescMethod>(
    method: M,
    request: Input<M>,
    deadline: number,
    signal: AbortSignal | undefined,
  ): Promise<Output<M>> {
    // Encoded here, so that what cannot be encoded is thrown to the caller as it is.
    const bytes = encoded(method.input, request);
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const call = this.#client.makeUnaryRequest(
        path(method),
        asItIs,
        (answer: Buffer) => fromBinary(method.output, answer) as Output<M>,
        bytes,
        new Metadata(),
        { deadline },
        (error, answer) => {
          signal?.removeEventListener("abort", abort);
          if (answer !== undefined && !error) resolve(answer);
          else reject(signal?.aborted ? signal.reason : error);
        },
      );
      const abort = (): void => call.cancel();
      signal?.addEventListener("abort", abort, { once: true });
    });
  }

  /** One request and a stream of answers, each of which is read when the gate is opened for it. */
  serverStream<M extends DescMethod>(
    method: M,
    request: Input<M>,
  ): { call: ClientReadableStream<Output<M>>; gate: Gate } {
    const opened = gate();
    const call = this.#client.makeServerStreamRequest(
      path(method),
      asItIs,
      (answer: Buffer) => fromBinary(method.output, answer) as Output<M>,
      encoded(method.input, request),
      new Metadata(),
      { interceptors: [opened.interceptor] },
    );
    return { call, gate: opened };
  }

  /** A stream of requests and one of answers. */
  bidiStream<M extends DescMethod>(method: M): ClientDuplexStream<Input<M>, Output<M>> {
    return this.#client.makeBidiStreamRequest(
      path(method),
      (request: Input<M>) => encoded(method.input, request),
      (answer: Buffer) => fromBinary(method.output, answer) as Output<M>,
      new Metadata(),
    );
  }
}

function path(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

function encoded<D extends DescMessage>(description: D, message: MessageShape<D>): Buffer {
  const bytes = toBinary(description, message);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function asItIs(bytes: Buffer): Buffer {
  return bytes;
}

/** The host and port of `host:port` or `http://host:port`: nothing in it is ignored. */
function hostOf(router: string): string {
  const unusable = (problem: string): TypeError =>
    new TypeError(`"${router}" is no router such as http://127.0.0.1:7460: ${problem}`);
  if (typeof router !== "string") throw unusable("it is no string");
  const scheme = /^([a-z]+):\/\//i.exec(router)?.[1];
  if (scheme !== undefined && scheme.toLowerCase() !== "http") {
    throw unusable("it has to start with http://, as there is no TLS");
  }
  const host = router.slice(scheme === undefined ? 0 : scheme.length + 3).replace(/\/$/, "");
  if (!/^(\[[0-9a-f:.]+\]|[^\s:/?#@]+):\d+$/i.test(host)) throw unusable("it has to be a host and a port");
  return host;
}
