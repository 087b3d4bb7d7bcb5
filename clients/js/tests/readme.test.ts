// The examples of the README print what it shows, with the package as users install it.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { promisify } from "node:util";

import { Server } from "./server.js";

const run = promisify(execFile);

/** Below the folder with the dependencies, where Node finds them. */
const FOLDER = "build/user";

/** Packs the package, and unpacks it as npm would. */
async function installed(): Promise<string[]> {
  await rm(FOLDER, { recursive: true, force: true });
  await mkdir(`${FOLDER}/node_modules/@simshard`, { recursive: true });
  const packed = await run("npm", ["pack", "--ignore-scripts", "--json", "--pack-destination", FOLDER]);
  const [{ filename, files }] = JSON.parse(packed.stdout) as [{ filename: string; files: { path: string }[] }];
  await run("tar", ["-xzf", filename], { cwd: FOLDER });
  await cp(`${FOLDER}/package`, `${FOLDER}/node_modules/@simshard/client`, { recursive: true });
  return files.map(({ path }) => path);
}

test("the examples of the README print what it shows", async () => {
  const files = await installed();
  for (const file of ["dist/index.js", "dist/index.d.ts", "proto/simshard/v1/corpus_service.proto", "README.md"]) {
    assert.ok(files.includes(file), file);
  }
  assert.ok(!files.some((file) => /^(src|tests|scripts|build)\//.test(file)), String(files));

  const blocks = [...(await readFile("README.md", "utf8")).matchAll(/^```(\w+)\n(.*?)^```$/gms)];
  const of = (language: string): string[] => blocks.filter((block) => block[1] === language).map((block) => block[2] ?? "");
  assert.equal(blocks.length, of("js").length + of("text").length + of("sh").length);
  assert.ok(of("js").length >= 5);
  // One program, as a reader would try one after the other.
  await writeFile(`${FOLDER}/package.json`, `{ "type": "module" }`);
  await writeFile(`${FOLDER}/examples.js`, of("js").join("\n"));
  const server = await Server.start();
  try {
    const env = { ...process.env, SIMSHARD_ROUTER: server.url };
    const { stdout } = await run(process.execPath, ["examples.js"], { cwd: FOLDER, env, timeout: 60_000 });
    assert.equal(stdout, of("text").join(""));
  } finally {
    await server.end();
  }
});
