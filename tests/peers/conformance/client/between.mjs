// A gateway between a client and one of the suite's mock servers.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/**
 * Starts a gateway with the mock as its only upstream, which has these keys besides; resolves to its endpoint, a way to run another
 * command of it, each of whose lines on stderr is told, and a way to end it. Lines of the gateway's own are told to `says`.
 */
export async function gateway(program, mock, more = "", says = () => {}) {
  const folder = mkdtempSync(join(tmpdir(), "trunkline-conformance-"));
  const file = join(folder, "trunkline.toml");
  const anywhere = 'listen = "127.0.0.1:0"';
  const upstream = `[upstreams.mock]\nurl = "${mock}"\nera = "${process.env.TRUNKLINE_ERA ?? "auto"}"\n${more}`;
  writeFileSync(file, `[server]\n${anywhere}\n[admin]\n${anywhere}\n[naming]\nstrategy = "flat"\n${upstream}`);
  const env = { ...process.env, HOME: folder, XDG_RUNTIME_DIR: join(folder, "run"), XDG_STATE_HOME: join(folder, "state") };
  const start = (args, heard) => {
    const child = spawn(program, [...args, "--config", file], { env, stdio: ["ignore", "ignore", "pipe"] });
    createInterface({ input: child.stderr }).on("line", (line) => {
      console.error(line);
      heard(line);
    });
    const ended = new Promise((resolve, reject) => child.once("error", reject).once("close", resolve));
    return { child, ended };
  };
  let child;
  let ended;
  const url = await new Promise((resolve, reject) => {
    const heard = (line) => {
      const found = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(line);
      if (found) resolve(found[0]);
      says(line);
    };
    ({ child, ended } = start(["serve"], heard));
    ended.then(() => reject(new Error("the gateway has ended")), reject);
  });
  const stop = async () => {
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), 10000);
    await ended;
    clearTimeout(timer);
    rmSync(folder, { recursive: true, force: true });
  };
  const run = (args, heard) => start(args, heard).ended;
  return { url, run, stop };
}
