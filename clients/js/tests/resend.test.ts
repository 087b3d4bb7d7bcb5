// Streams send again what was not answered, and lose nothing that was.

import assert from "node:assert/strict";
import { test } from "node:test";

import { create } from "@bufbuild/protobuf";
import { status as codes, type ServerDuplexStream } from "@grpc/grpc-js";
import { Client, type Document, type SimshardError } from "@simshard/client";

import { InsertStreamResponseSchema } from "#dist/gen/simshard/v1/corpus_service_pb.js";
import type { InsertStreamRequest, InsertStreamResponse } from "#dist/gen/simshard/v1/corpus_service_pb.js";

import { failure, serve } from "./fake.js";
import { Random, SEED } from "./random.js";
import { Server } from "./server.js";

const COUNT = 10_000;
const KILLS = 5;

test("a bulk load loses nothing that was acknowledged, while the server is killed again and again", async () => {
  console.log(`SIMSHARD_SEED=${SEED}`);
  const random = new Random(1);
  const documents = Array.from({ length: COUNT }, (_, number) => ({ fingerprint: random.bits(), id: `document-${number}` }));
  const server = await Server.start();
  const client = new Client(server.url);
  try {
    const corpus = client.corpus("default");
    let acknowledged = 0;
    let kills = 0;
    for await (const batch of corpus.insertStream(documents, { batchSize: 50 })) {
      acknowledged += batch.documents;
      // The window is full here, so that batches are lost on their way and on their way back.
      if (kills === KILLS || acknowledged < ((kills + 1) * COUNT) / (KILLS + 2)) continue;
      kills++;
      await server.kill();
      const restarted = server.restart();
      // Every other time the load goes on while the server starts. It fails if that fails.
      restarted.catch(() => {});
      if (kills % 2 === 1) continue;
      await restarted;
      await everyOneIsThere(client, documents.slice(0, acknowledged));
    }
    assert.equal(kills, KILLS);
    assert.equal(acknowledged, COUNT);
    await everyOneIsThere(client, documents);
  } finally {
    client.close();
    await server.end();
  }
});

/** Scans the corpus: the documents are there, each once. */
async function everyOneIsThere(client: Client, documents: { fingerprint: bigint; id: string }[]): Promise<void> {
  const stored = new Map<string, bigint>();
  for await (const { id, fingerprint } of client.corpus("default").scan()) {
    assert.ok(!stored.has(id), `${id} is there twice`);
    stored.set(id, fingerprint);
  }
  const lost = documents.filter(({ id, fingerprint }) => stored.get(id) !== fingerprint);
  assert.deepEqual(lost, []);
}

test("a stream of queries goes on after the server was killed", async () => {
  const server = await Server.start();
  const client = new Client(server.url);
  try {
    const corpus = client.corpus("default");
    const fingerprints = Array.from({ length: 3000 }, (_, number) => BigInt(number) << 40n);
    await corpus.insert({ fingerprints });
    let next = 0;
    for await (const match of corpus.findStream(fingerprints, { maxDistance: 0, batchSize: 100 })) {
      assert.deepEqual([match.query, match.fingerprint], [next, fingerprints[next]]);
      if (next === 1000 || next === 2050) {
        await server.kill();
        await server.restart();
      }
      next++;
    }
    assert.equal(next, fingerprints.length);
  } finally {
    client.close();
    await server.end();
  }
});

type Call = ServerDuplexStream<InsertStreamRequest, InsertStreamResponse>;

function answer(call: Call, sequence: bigint, insertedCount = 1n): void {
  call.write(create(InsertStreamResponseSchema, { sequence, result: { insertedCount } }));
}

function* numbered(count: number): Generator<Document> {
  for (let number = 0; number < count; number++) yield { fingerprint: BigInt(number) };
}

test("every new stream begins with all batches that were not answered, in their order", async () => {
  const streams: bigint[][] = [];
  using fake = await serve({
    insertStream: (call: Call) => {
      const seen: bigint[] = [];
      streams.push(seen);
      let answers = 0;
      call.on("data", (request: InsertStreamRequest) => {
        seen.push(request.batch?.fingerprints[0] as bigint);
        // Each stream answers two batches more, then breaks: by a reason, or without one.
        if (answers++ < 2) answer(call, request.sequence);
        else if (streams.length % 2) call.emit("error", failure(codes.UNAVAILABLE, "STOPPING", 1));
        else call.end();
      });
      call.on("end", () => call.end());
    },
  });
  using client = new Client(fake.url);
  const results = [];
  for await (const result of client.corpus("default").insertStream(numbered(20), { batchSize: 1 })) results.push(result);
  assert.deepEqual(results, new Array(20).fill({ documents: 1, changed: 1 }));
  assert.equal(streams.length, 10);
  for (const [place, seen] of streams.entries()) {
    assert.deepEqual(seen, seen.map((_, more) => BigInt(2 * place + more)));
  }
});

test("an answer out of turn is an error", async () => {
  using fake = await serve({ insertStream: (call: Call) => answer(call, 1n) });
  using client = new Client(fake.url);
  await assert.rejects(drained(client.corpus("default").insertStream(numbered(3), { batchSize: 1 })), {
    message: /an answer to batch 1, whose turn it was not/,
  });
});

test("a stream gives up when its patience ends, and at once where trying again is of no use", async () => {
  const told: [SimshardError, number][] = [];
  using absent = new Client("127.0.0.1:1", { patienceMs: 2500, onWaiting: (error, leftMs) => told.push([error, leftMs]) });
  const began = Date.now();
  await assert.rejects(drained(absent.corpus("default").insertStream(numbered(1))), { message: /no router answers/ });
  const took = Date.now() - began;
  assert.ok(took >= 2000 && took < 5000, String(took));
  assert.equal(told.length, 1, "it tells of it once");
  assert.match(told[0]?.[0].message ?? "", /no router answers/);

  let streams = 0;
  using fake = await serve({
    insertStream: (call: Call) => {
      streams++;
      call.emit("error", failure(codes.INTERNAL, "STORAGE_FAILED"));
    },
  });
  using client = new Client(fake.url);
  await assert.rejects(drained(client.corpus("default").insertStream(numbered(1))), { reason: "STORAGE_FAILED" });
  assert.equal(streams, 1);
});

test("a batch that is not answered in time is sent again", async () => {
  let streams = 0;
  using fake = await serve({
    insertStream: (call: Call) => {
      const isDeaf = streams++ === 0;
      if (isDeaf) return;
      call.on("data", ({ sequence }: InsertStreamRequest) => answer(call, sequence));
      call.on("end", () => call.end());
    },
  });
  using client = new Client(fake.url);
  const results = [];
  const began = Date.now();
  const stream = client.corpus("default").insertStream(numbered(3), { batchSize: 1, timeoutMs: 200 });
  for await (const result of stream) results.push(result.documents);
  assert.deepEqual(results, [1, 1, 1]);
  assert.equal(streams, 2);
  assert.ok(Date.now() - began >= 295);
});

test("an error of the source ends the stream, and leaving the stream ends the source", async () => {
  using fake = await serve({
    insertStream: (call: Call) => {
      call.on("data", ({ sequence }: InsertStreamRequest) => answer(call, sequence));
      call.on("end", () => call.end());
    },
  });
  using client = new Client(fake.url);
  const corpus = client.corpus("default");
  async function* failing(): AsyncGenerator<Document> {
    yield* numbered(2);
    throw new Error("the source broke");
  }
  await assert.rejects(drained(corpus.insertStream(failing(), { batchSize: 1 })), { message: "the source broke" });
  let hasEnded = false;
  function* endless(): Generator<Document> {
    try {
      for (;;) yield { fingerprint: 1n };
    } finally {
      hasEnded = true;
    }
  }
  for await (const _ of corpus.insertStream(endless(), { batchSize: 1 })) break;
  assert.ok(hasEnded);
});

async function drained(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream);
}
