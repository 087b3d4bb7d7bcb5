// A server for tests: the program that SIMSHARD_PROGRAM names.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** A server in a process of its own, whose data outlives it. */
export class Server {
  readonly #folder: string;
  readonly #options: readonly string[];
  #process: ChildProcess | undefined;
  #address = "127.0.0.1:0";
  #scheme = "http";

  private constructor(folder: string, options: readonly string[]) {
    this.#folder = folder;
    this.#options = options;
  }

  /** Starts one, with more options of `simshard serve` if there are any. */
  static async start(options: readonly string[] = []): Promise<Server> {
    const server = new Server(await mkdtemp(join(tmpdir(), "simshard-js-")), options);
    await server.restart();
    return server;
  }

  /** Its address: the same after a restart. */
  get url(): string {
    return `${this.#scheme}://${this.#address}`;
  }

  /** Starts it at its address. Returns when it serves. */
  async restart(): Promise<void> {
    const program = process.env["SIMSHARD_PROGRAM"];
    if (!program) throw new Error("SIMSHARD_PROGRAM has to be the path of the program simshard");
    const options = ["serve", "--listen", this.#address, "--data", join(this.#folder, "data"), ...this.#options];
    const started = spawn(program, options, {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, SIMSHARD_LOG: "error" },
    });
    this.#process = started;
    const lines = createInterface({ input: started.stdout });
    for await (const line of lines) {
      const listening = /^listening on (https?):\/\/(.*)$/.exec(line);
      if (!listening) continue;
      [this.#scheme = "", this.#address = ""] = listening.slice(1);
      return;
    }
    throw new Error("the server ended before it served");
  }

  /** Ends it at once, as a crash would. */
  async kill(): Promise<void> {
    const running = this.#process;
    this.#process = undefined;
    if (!running || running.exitCode !== null) return;
    const ended = once(running, "exit");
    running.kill("SIGKILL");
    await ended;
  }

  /** Stops its work, as an overloaded machine would. On a busy machine its threads go on for a moment after the signal. */
  freeze(): void {
    const running = this.#process;
    if (!running?.kill("SIGSTOP")) return;
    while (!isStopped(running.pid ?? 0));
  }

  thaw(): void {
    this.#process?.kill("SIGCONT");
  }

  /** Ends it and removes its data. */
  async end(): Promise<void> {
    await this.kill();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** Whether all threads of a process are stopped: each has the state T after its name, which is in brackets. */
function isStopped(process: number): boolean {
  const threads = `/proc/${process}/task`;
  const state = (thread: string): string | undefined => {
    try {
      const text = readFileSync(join(threads, thread, "stat"), "utf8");
      return text.slice(text.lastIndexOf(")") + 2)[0];
    } catch {
      // The thread has ended since it was listed.
      return undefined;
    }
  };
  return readdirSync(threads).every((thread) => state(thread) === "T");
}
