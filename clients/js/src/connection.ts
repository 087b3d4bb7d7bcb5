// The connection to a router, and the calls on it.

import { fromBinary, toBinary } from "@bufbuild/protobuf";
import type { DescMessage, DescMethod, MessageShape } from "@bufbuild/protobuf";
import { Client as GrpcClient, credentials, Metadata } from "@grpc/grpc-js";
import type { ChannelCredentials, ClientDuplexStream, ClientReadableStream } from "@grpc/grpc-js";

import { MAX_MESSAGE_BYTES } from "./batches.js";
import { gate, type Gate } from "./gate.js";

/** Room for what surrounds the largest answer. */
const MAX_ANSWER_BYTES = MAX_MESSAGE_BYTES + (64 << 10);

/** What a client needs beside the address of a router that has TLS, or asks for tokens. */
export interface Access {
  /** Certificates, in PEM as `node:tls` takes them, of the authorities that signed that of the router. Without it, those that Node knows are trusted. */
  ca?: string | Buffer;
  /** The certificate by which the router knows the client. */
  cert?: string | Buffer;
  /** Its private key. */
  key?: string | Buffer;
  /** The token by which the router knows the client. Without TLS, it is sent to this machine only. */
  token?: string;
}

type Input<M extends DescMethod> = MessageShape<M["input"]>;
type Output<M extends DescMethod> = MessageShape<M["output"]>;

/** The connection to one router, which is made when first needed, and again after it was lost. */
export class Connection {
  readonly url: string;
  readonly #client: GrpcClient;
  readonly #metadata = new Metadata();
  #isClosed = false;

  /** @throws TypeError if the address is unusable, or what TLS needs. */
  constructor(router: string, access: Access) {
    const { host, hasTls } = placeOf(router);
    this.url = `${hasTls ? "https" : "http"}://${host}`;
    if (access.token !== undefined) {
      this.#metadata.set("authorization", `Bearer ${checkedToken(access.token, hasTls || isThisMachine(host))}`);
    }
    this.#client = new GrpcClient(host, hasTls ? withTls(access) : withoutTls(access), {
      "grpc.max_receive_message_length": MAX_ANSWER_BYTES,
      // Requests are sent again by this package, which knows which of them may be.
      "grpc.enable_retries": 0,
      // A cluster is not behind the proxy of the web, which would see tokens.
      "grpc.enable_http_proxy": 0,
      "grpc.initial_reconnect_backoff_ms": 100,
      "grpc.min_reconnect_backoff_ms": 100,
      "grpc.max_reconnect_backoff_ms": 2000,
      // A connection to a machine that is gone is given up: those of the server do the same.
      "grpc.keepalive_time_ms": 10_000,
      "grpc.keepalive_timeout_ms": 5000,
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#client.close();
  }

  /** @throws Error if it was closed. */
  #open(): GrpcClient {
    if (this.#isClosed) throw new Error(`the client of ${this.url} was closed: make a new one`);
    return this.#client;
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
      const call = this.#open().makeUnaryRequest(
        path(method),
        asItIs,
        (answer: Buffer) => fromBinary(method.output, answer) as Output<M>,
        bytes,
        this.#metadata,
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
    const call = this.#open().makeServerStreamRequest(
      path(method),
      asItIs,
      (answer: Buffer) => fromBinary(method.output, answer) as Output<M>,
      encoded(method.input, request),
      this.#metadata,
      { interceptors: [opened.interceptor] },
    );
    return { call, gate: opened };
  }

  /** A stream of requests and one of answers. */
  bidiStream<M extends DescMethod>(method: M): ClientDuplexStream<Input<M>, Output<M>> {
    return this.#open().makeBidiStreamRequest(
      path(method),
      (request: Input<M>) => encoded(method.input, request),
      (answer: Buffer) => fromBinary(method.output, answer) as Output<M>,
      this.#metadata,
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

/** @throws TypeError if it is no token, or would go where others can read it. */
function checkedToken(token: unknown, isSafe: boolean): string {
  // An editor ends a file with the end of a line.
  const text = typeof token === "string" ? token.trim() : "";
  if (!/^[!-~]+$/.test(text)) {
    throw new TypeError("the token is no string, is empty, or has characters that no token has: give the text of its file");
  }
  if (!isSafe) throw new TypeError("a token goes by https:// only, or to this machine: without TLS others can read it");
  return text;
}

function isThisMachine(host: string): boolean {
  return /^(localhost|127(\.\d+){3}|\[::1\]):/i.test(host);
}

/** @throws TypeError if anything is given that only TLS makes use of. */
function withoutTls(access: Access): ChannelCredentials {
  const given = (["ca", "cert", "key"] as const).find((name) => access[name] !== undefined);
  if (given !== undefined) throw new TypeError(`${given} is of use with TLS only: the router has to start with https://`);
  return credentials.createInsecure();
}

function withTls({ ca, cert, key }: Access): ChannelCredentials {
  if ((cert === undefined) !== (key === undefined)) {
    throw new TypeError("cert and key go together: a certificate, and its private key");
  }
  return credentials.createSsl(
    checkedPem(ca, "ca", "CERTIFICATE-----"),
    checkedPem(key, "key", "PRIVATE KEY-----"),
    checkedPem(cert, "cert", "CERTIFICATE-----"),
  );
}

/** Its bytes, if it has such a section: a path of a file has none. */
function checkedPem(pem: string | Buffer | undefined, name: string, section: string): Buffer | null {
  if (pem === undefined) return null;
  const bytes = Buffer.from(pem);
  if (!bytes.includes(section)) throw new TypeError(`${name} is no text in PEM: there is no "${section}" in it`);
  return bytes;
}

/** What `host:port`, `http://host:port` or `https://host:port` says: nothing in it is ignored. */
function placeOf(router: string): { host: string; hasTls: boolean } {
  const unusable = (problem: string): TypeError =>
    new TypeError(`"${router}" is no router such as http://127.0.0.1:7460: ${problem}`);
  if (typeof router !== "string") throw unusable("it is no string");
  const scheme = /^([a-z]+):\/\//i.exec(router)?.[1];
  const hasTls = scheme?.toLowerCase() === "https";
  if (scheme !== undefined && !hasTls && scheme.toLowerCase() !== "http") {
    throw unusable("it has to start with https://, or with http:// where there is no TLS");
  }
  const host = router.slice(scheme === undefined ? 0 : scheme.length + 3).replace(/\/$/, "");
  if (!/^(\[[0-9a-f:.]+\]|[^\s:/?#@]+):\d+$/i.test(host)) throw unusable("it has to be a host and a port");
  return { host, hasTls };
}
