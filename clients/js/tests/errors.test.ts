// Refusals by reason, deadlines, cancellation, and requests that are made again.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";

import { create } from "@bufbuild/protobuf";
import { status as codes } from "@grpc/grpc-js";
import { Client, REASONS, SimshardError } from "@simshard/client";

import { FindAllResponseSchema, InsertResponseSchema } from "#dist/gen/simshard/v1/corpus_service_pb.js";

import { failure, serve } from "./fake.js";
import { Server } from "./server.js";

let server: Server;
let client: Client;
before(async () => {
  server = await Server.start();
  client = new Client(server.url);
});
after(async () => {
  client.close();
  await server.end();
});

const one = { fingerprints: [1n] };

test("refusals have the reason, the code and the fields that the server gives", async () => {
  const corpus = client.corpus("default");
  await assert.rejects(client.corpus("nowhere").find(one), {
    name: "SimshardError",
    reason: "CORPUS_NOT_FOUND",
    code: "NOT_FOUND",
    message: /there is no corpus nowhere/,
    isPassing: false,
    retryDelayMs: undefined,
  });
  await assert.rejects(corpus.find(one, { maxDistance: 9 }), {
    reason: "INVALID_REQUEST",
    code: "INVALID_ARGUMENT",
    fields: ["max_distance"],
  });
  await assert.rejects(client.createCorpus("default"), { reason: "CORPUS_EXISTS", code: "ALREADY_EXISTS" });
  await assert.rejects(client.deleteCorpus("nowhere"), { reason: "CORPUS_NOT_FOUND" });
  await assert.rejects(drained(client.corpus("nowhere").scan()), { reason: "CORPUS_NOT_FOUND" });
  await assert.rejects(drained(client.corpus("nowhere").insertStream([{ fingerprint: 1n }])), {
    reason: "CORPUS_NOT_FOUND",
  });
  using other = new Client(server.url, { recipe: "words-v1" });
  await assert.rejects(other.corpus("default").find(one), { reason: "RECIPE_MISMATCH" });
  // The server reads no more after the text that is wrong.
  await client.createCorpus("strict", { recipe: "words-v3" });
  await assert.rejects(drained(client.corpus("strict").findStream(["a text of words", "..."])), {
    reason: "INVALID_REQUEST",
    fields: ["texts[1]"],
  });
});

test("corpora are created, listed, described and deleted", async () => {
  const made = await client.createCorpus("made", { blocks: 6, distance: 2, recipe: "words-v2" });
  assert.deepEqual({ ...made, created: undefined }, {
    name: "made", blocks: 6, distance: 2, recipe: "words-v2", created: undefined, state: "LIVE",
  });
  assert.ok(Math.abs(Date.now() - Number(made.created)) < 60_000);
  assert.deepEqual((await client.listCorpora()).find(({ name }) => name === "made"), made);
  const { nodes, ...described } = await client.corpus("made").describe();
  assert.deepEqual(described, { ...made, documentCount: 0, fingerprintCount: 0 });
  assert.equal(nodes[0]?.state, "SERVING");
  assert.equal(nodes[0]?.shards.length, 256);
  await client.deleteCorpus("made");
  assert.ok(!(await client.listCorpora()).some(({ name }) => name === "made"));
});

test("a corpus has the default recipe unless another one is named", async () => {
  const made = await client.createCorpus("usual");
  const { name, blocks, distance, recipe } = made;
  assert.deepEqual({ name, blocks, distance, recipe }, { name: "usual", blocks: 5, distance: 3, recipe: "words-v3" });
  await client.deleteCorpus("usual");
});

test("the reasons are those of the interface", async () => {
  const proto = await readFile("proto/simshard/v1/corpus_service.proto", "utf8");
  const listed = [...proto.matchAll(/^\/\/ {3}([A-Z_]+) +[A-Z_]+ /gm)].map(([, reason]) => reason);
  assert.ok(listed.length > 20);
  assert.deepEqual([...REASONS].sort(), listed.sort());
});

test("a request ends at its deadline, and when its signal says so", async () => {
  const corpus = client.corpus("default");
  await corpus.find(one);
  server.freeze();
  try {
    const began = Date.now();
    await assert.rejects(corpus.find(one, { timeoutMs: 300 }), {
      name: "SimshardError",
      code: "DEADLINE_EXCEEDED",
      message: /did not answer within 300 ms/,
    });
    assert.ok(Date.now() - began < 3000);
    for (const wait of [
      (signal: AbortSignal) => corpus.find(one, { signal }),
      (signal: AbortSignal) => client.listCorpora({ signal }),
      (signal: AbortSignal) => drained(corpus.insertStream([{ fingerprint: 1n }], { signal })),
      (signal: AbortSignal) => drained(corpus.findStream([1n], { signal })),
      (signal: AbortSignal) => drained(corpus.scan({ signal })),
    ]) {
      const controller = new AbortController();
      const reason = new Error("enough");
      const aborting = setTimeout(() => controller.abort(reason), 50);
      await assert.rejects(wait(controller.signal), (error) => error === reason);
      clearTimeout(aborting);
      await assert.rejects(wait(AbortSignal.abort(reason)), (error) => error === reason);
    }
    await assert.rejects(corpus.find(one, { signal: AbortSignal.timeout(50) }), { name: "TimeoutError" });
    const stream = corpus.insertStream([{ fingerprint: 1n }], { timeoutMs: 100, patienceMs: 400 });
    await assert.rejects(drained(stream), { code: "UNAVAILABLE", message: /nothing came for 100 ms/ });
  } finally {
    server.thaw();
  }
  await corpus.find(one);
});

test("a request is made again when the server asks for it, and no sooner", async () => {
  const times: number[] = [];
  using fake = await serve({
    insert: (_: unknown, answer: (error: unknown, response?: unknown) => void) => {
      times.push(Date.now());
      if (times.length < 3) answer(failure(codes.RESOURCE_EXHAUSTED, "DISK_FULL", 400));
      else answer(null, create(InsertResponseSchema, { insertedCount: 1n }));
    },
  });
  using other = new Client(fake.url);
  assert.equal(await other.corpus("default").insert(one), 1);
  assert.equal(times.length, 3);
  const pauses = times.slice(1).map((time, place) => time - (times[place] ?? 0));
  // The jitter adds up to as much again.
  assert.ok(pauses.every((pause) => pause >= 395 && pause < 2000), String(pauses));
});

test("what may pass fails after three more tries, and the rest at once", async () => {
  let calls = 0;
  let fails = failure(codes.UNAVAILABLE, "NODE_UNREACHABLE", 10);
  const handler = (_: unknown, answer: (error: unknown) => void): void => {
    calls++;
    answer(fails);
  };
  using fake = await serve({ findAll: handler, createCorpus: handler });
  using other = new Client(fake.url);
  await assert.rejects(other.corpus("default").find(one), {
    reason: "NODE_UNREACHABLE",
    nodes: ["n1", "n2"],
    retryDelayMs: 10,
    isPassing: true,
  });
  assert.equal(calls, 4);
  await assert.rejects(other.createCorpus("once"), { reason: "NODE_UNREACHABLE" });
  assert.equal(calls, 5, "it must not be repeated");
  await assert.rejects(other.corpus("default").find(one, { timeoutMs: 90 }), { reason: "NODE_UNREACHABLE" });
  assert.equal(calls, 6, "no time is left for a pause");
  fails = failure(codes.INTERNAL, "STORAGE_FAILED");
  await assert.rejects(other.corpus("default").find(one), { reason: "STORAGE_FAILED", code: "INTERNAL" });
  assert.equal(calls, 7);
  fails = failure(codes.NOT_FOUND, "SOMETHING", 10, "example.com");
  await assert.rejects(other.corpus("default").find(one), { reason: undefined, code: "NOT_FOUND", isPassing: false });
});

test("an answer that makes no sense is an error", async () => {
  let matches = {};
  using fake = await serve({
    findAll: (_: unknown, answer: (error: unknown, response: unknown) => void) =>
      answer(null, create(FindAllResponseSchema, { queries: [1n], matches })),
  });
  using other = new Client(fake.url);
  const row = { fingerprints: [1n], distances: [0], documentCounts: [1n], idCounts: [1], ids: ["a"] };
  for (const [columns, name] of [
    [{}, "matchCounts"],
    [{ matchCounts: [1], truncated: [false], ...row, distances: [] }, "distances"],
    [{ matchCounts: [1], truncated: [false], ...row, ids: [] }, "ids"],
    [{ matchCounts: [2], truncated: [false], ...row }, "fingerprints"],
    [{ matchCounts: [1], truncated: [], ...row }, "truncated"],
  ] as const) {
    matches = columns;
    await assert.rejects(other.corpus("default").find(one), { message: new RegExp(`nonsense: the column ${name} has`) });
  }
});

test("no router, and something else than a router, are told apart", async () => {
  using absent = new Client("127.0.0.1:1", { timeoutMs: 500 });
  await assert.rejects(absent.listCorpora(), {
    reason: undefined, code: "UNAVAILABLE", isPassing: true, message: /no router answers at http:\/\/127.0.0.1:1: start one/,
  });
  using fake = await serve({ deleteCorpus: () => assert.fail() });
  using node = new Client(fake.url);
  await assert.rejects(node.listCorpora(), { code: "UNIMPLEMENTED", message: /is no router, or one of another version/ });
  const web = createServer((_, response) => response.end("hello")).listen(0, "127.0.0.1");
  // It must not hold up the end of the tests.
  web.unref();
  await once(web, "listening");
  using page = new Client(`127.0.0.1:${(web.address() as AddressInfo).port}`, { timeoutMs: 500 });
  await assert.rejects(page.listCorpora(), (error) => error instanceof SimshardError && error.reason === undefined);
  web.closeAllConnections();
});

async function drained(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream);
}
