// A server that answers as a test says: for what a real one does rarely.

import { create, fromBinary, toBinary, type DescMethod, type Message } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { Metadata, Server, ServerCredentials, type ServiceDefinition } from "@grpc/grpc-js";
import type { UntypedServiceImplementation } from "@grpc/grpc-js";

import { ErrorInfoSchema, RetryInfoSchema, StatusSchema } from "#dist/gen/google/rpc/details_pb.js";
import { CorpusService } from "#dist/gen/simshard/v1/corpus_service_pb.js";

/** What a method does: with a request, or with the stream of a bidirectional method. */
type Handler = (call: never, answer: (error: unknown, response?: unknown) => void) => void;

/** Serves some methods, until the block that declares it with `using` ends. */
export async function serve(handlers: Record<string, Handler>): Promise<Disposable & { url: string }> {
  const server = new Server();
  const served = Object.entries(CorpusService.method).filter(([name]) => name in handlers);
  const definition = Object.fromEntries(served.map(([name, method]) => [name, definitionOf(method)]));
  server.addService(definition as ServiceDefinition, handlers as UntypedServiceImplementation);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  return { url: `http://127.0.0.1:${port}`, [Symbol.dispose]: () => server.forceShutdown() };
}

function definitionOf(method: DescMethod) {
  const isStream = method.methodKind === "bidi_streaming";
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    requestStream: isStream,
    responseStream: isStream || method.methodKind === "server_streaming",
    requestSerialize: (request: Message) => Buffer.from(toBinary(method.input, request)),
    requestDeserialize: (bytes: Buffer) => fromBinary(method.input, bytes),
    responseSerialize: (answer: Message) => Buffer.from(toBinary(method.output, answer)),
    responseDeserialize: (bytes: Buffer) => fromBinary(method.output, bytes),
  };
}

/** An error with a reason, and with a time to try again if there is one. */
export function failure(code: number, reason: string, retryMs?: number, domain = "simshard") {
  const info = create(ErrorInfoSchema, { reason, domain, metadata: { nodes: "n1,n2" } });
  const details = [anyPack(ErrorInfoSchema, info)];
  if (retryMs !== undefined) {
    const retryDelay = { seconds: BigInt(Math.floor(retryMs / 1000)), nanos: (retryMs % 1000) * 1e6 };
    details.push(anyPack(RetryInfoSchema, create(RetryInfoSchema, { retryDelay })));
  }
  const metadata = new Metadata();
  const status = create(StatusSchema, { code, message: "no", details });
  metadata.set("grpc-status-details-bin", Buffer.from(toBinary(StatusSchema, status)));
  return { code, details: "no", metadata };
}
