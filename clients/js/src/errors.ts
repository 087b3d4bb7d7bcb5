// Why a request failed, and whether to try again.

import { fromBinary } from "@bufbuild/protobuf";
import { anyUnpack, type Any } from "@bufbuild/protobuf/wkt";
import { status as codes, type Metadata } from "@grpc/grpc-js";

import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
  StatusSchema,
} from "./gen/google/rpc/details_pb.js";

/** The reasons that a server gives. A newer server may have more. */
export const REASONS = [
  "INVALID_REQUEST",
  "RECIPE_MISMATCH",
  "MESSAGE_TOO_LARGE",
  "UNKNOWN_METHOD",
  "UNSUPPORTED_ENCODING",
  "UNAUTHENTICATED",
  "PERMISSION_DENIED",
  "CORPUS_NOT_FOUND",
  "CORPUS_EXISTS",
  "TOO_MANY_CORPORA",
  "NODE_UNREACHABLE",
  "DEADLINE_TOO_SHORT",
  "NOT_OWNER",
  "WRONG_EPOCH",
  "COLD",
  "CORPUS_NOT_LOADED",
  "CORPUS_DIFFERS",
  "ANSWER_TOO_LARGE",
  "METADATA_FAILED",
  "DISK_FULL",
  "OVERLOADED",
  "WRITE_CONFLICT",
  "CLOCK_AHEAD",
  "STORAGE_FAILED",
  "STOPPING",
  "INTERNAL",
] as const;

/** Why a server refused or failed a request. */
export type Reason = (typeof REASONS)[number] | (string & {});

/** The name of a gRPC code, such as `NOT_FOUND`. */
export type Code = keyof typeof codes;

/** What a server, or the connection to it, says of a failure. */
interface Details {
  code: Code;
  reason?: Reason | undefined;
  metadata?: Readonly<Record<string, string>>;
  fields?: readonly string[];
  retryDelayMs?: number | undefined;
  isPassing?: boolean;
  cause?: unknown;
}

/** A request failed. */
export class SimshardError extends Error {
  override readonly name = "SimshardError";
  /** The gRPC code. */
  readonly code: Code;
  /** The reason in `google.rpc.ErrorInfo`. Undefined if no Simshard server gave one: a lost connection, say. */
  readonly reason: Reason | undefined;
  /** Values of the reason, for programs. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The fields that are wrong, by `google.rpc.BadRequest`: `texts[3]`, say, counted in the input of a stream. */
  readonly fields: readonly string[];
  /** When to send the same request again, by `google.rpc.RetryInfo`. */
  readonly retryDelayMs: number | undefined;
  /** Whether the same request may succeed a little later. */
  readonly isPassing: boolean;

  constructor(message: string, details: Details) {
    super(message, { cause: details.cause });
    this.code = details.code;
    this.reason = details.reason;
    this.metadata = details.metadata ?? {};
    this.fields = details.fields ?? [];
    this.retryDelayMs = details.retryDelayMs;
    this.isPassing = details.isPassing ?? details.retryDelayMs !== undefined;
  }

  /** The same with the positions of the input, where the batch that failed begins at `first`. */
  countedFrom(first: number): SimshardError {
    const moved = (text: string): string =>
      text.replace(/\b(texts|ids|fingerprints)\[(\d+)\]/g, (_, column: string, position: string) => {
        return `${column}[${Number(position) + first}]`;
      });
    const { code, reason, metadata, retryDelayMs, isPassing, cause } = this;
    const fields = this.fields.map(moved);
    return new SimshardError(moved(this.message), { code, reason, metadata, fields, retryDelayMs, isPassing, cause });
  }

  /** The nodes that the failure is about, if the server named any. */
  get nodes(): string[] {
    return (this.metadata["nodes"] ?? "").split(",").filter((node) => node !== "");
  }
}

/** The answer of a server makes no sense. */
export function malformed(problem: string): SimshardError {
  return new SimshardError(`the router answered nonsense: ${problem}`, { code: "INTERNAL" });
}

/** A server took batches and did not answer them. */
export function noAnswer(url: string, problem: string): SimshardError {
  const message = `the router at ${url} stopped answering: ${problem}, see what it logs`;
  return new SimshardError(message, { code: "UNAVAILABLE", isPassing: true });
}

/** What grpc-js reports at the end of a call. */
export interface CallStatus {
  code: number;
  details: string;
  metadata: Metadata;
}

/** The codes of a broken connection, and of a peer that is no gRPC server. */
const CONNECTION_CODES: Code[] = ["UNAVAILABLE", "UNKNOWN", "CANCELLED", "INTERNAL"];

/** The error for a status from the connection or the server. */
export function fromStatus(status: CallStatus, url: string): SimshardError {
  const code = (codes[status.code] ?? "UNKNOWN") as Code;
  const details = detailsOf(status.metadata);
  const { reason } = details;
  if (reason === "UNKNOWN_METHOD" || (reason === undefined && code === "UNIMPLEMENTED")) {
    const problem = `what answers at ${url} is no router, or one of another version: a node, say`;
    return new SimshardError(`${problem}; give the URL of the router`, { ...details, code });
  }
  if (reason === undefined && CONNECTION_CODES.includes(code)) {
    const advice = "start one with `simshard serve`, in a cluster with `simshard serve router`, or give its URL";
    const message = `no router answers at ${url}: ${advice} (${status.details})`;
    return new SimshardError(message, { code, isPassing: true, cause: status });
  }
  return new SimshardError(status.details, { ...details, code });
}

/** The details in the trailers of a call. Those of other servers than Simshard's are left out. */
function detailsOf(metadata: Metadata): Omit<Details, "code"> {
  const packed = packedDetails(metadata);
  const info = packed.map((any) => anyUnpack(any, ErrorInfoSchema)).find((found) => found);
  if (info?.domain !== "simshard") return {};
  const retry = packed.map((any) => anyUnpack(any, RetryInfoSchema)).find((found) => found);
  const bad = packed.map((any) => anyUnpack(any, BadRequestSchema)).find((found) => found);
  const delay = retry?.retryDelay;
  return {
    reason: info.reason,
    metadata: info.metadata,
    fields: bad?.fieldViolations.map((violation) => violation.field) ?? [],
    retryDelayMs: delay && Number(delay.seconds) * 1000 + delay.nanos / 1e6,
  };
}

function packedDetails(metadata: Metadata): Any[] {
  const [bytes] = metadata.get("grpc-status-details-bin");
  if (!(bytes instanceof Uint8Array)) return [];
  try {
    return fromBinary(StatusSchema, bytes).details;
  } catch {
    // A proxy's own status. It is then an error without a reason.
    return [];
  }
}
