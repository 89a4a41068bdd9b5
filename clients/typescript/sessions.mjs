// Sessions that outlive their process.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";

import { only, succeeded } from "./rig.mjs";

/** The transcripts on disk: their text by session. */
function transcripts(rig) {
  const directory = join(rig.home, ".claude", "projects");
  const files = existsSync(directory) ? readdirSync(directory, { recursive: true }) : [];
  const entries = files.filter((file) => file.endsWith(".jsonl"));
  return new Map(entries.map((file) => [basename(file, ".jsonl"), readFileSync(join(directory, file), "utf8")]));
}

/** A session is taken up by its id, in another process. */
export async function resume(rig) {
  const first = succeeded(await rig.ask("%say one"), "one");
  const second = succeeded(await rig.ask("%say two", { resume: first.session_id }), "two");
  assert.equal(second.session_id, first.session_id);
  const found = transcripts(rig);
  assert.deepEqual([...found.keys()], [first.session_id]);
  const text = found.get(first.session_id);
  assert(text.includes("%say one") && text.includes("%say two"), "the transcript has both prompts");
  assert((await rig.processes(2))[1].argv.some((argument) => argument.includes(first.session_id)), "the flag is passed");
}

/** The last session of the directory is taken up. */
export async function continueSession(rig) {
  const first = succeeded(await rig.ask("%say one"), "one");
  const second = succeeded(await rig.ask("%say two", { continue: true }), "two");
  assert.equal(second.session_id, first.session_id);
}

/** A fork has an id of its own, and leaves the session as it was. */
export async function forkSession(rig) {
  const first = succeeded(await rig.ask("%say one"), "one");
  const fork = succeeded(await rig.ask("%say two", { resume: first.session_id, forkSession: true }), "two");
  assert.notEqual(fork.session_id, first.session_id);
  const found = transcripts(rig);
  assert.deepEqual(new Set(found.keys()), new Set([first.session_id, fork.session_id]));
  assert(!found.get(first.session_id).includes("%say two"), "the first is as it was");
  assert(found.get(fork.session_id).includes("%say one"), "the fork knows what was said before");
}

/** A session gets the id that the host chose. */
export async function sessionId(rig) {
  const chosen = "6f1ef1b2-6c0f-4d0c-9a6e-0d5cf57b3f52";
  const messages = await rig.ask("%say one", { sessionId: chosen });
  assert.equal(succeeded(messages, "one").session_id, chosen);
  assert.equal(only(messages, "system/init").session_id, chosen);
}

/** A session that is not there is an error. */
export async function resumeUnknown(rig) {
  const missing = "00000000-0000-4000-8000-000000000000";
  await assert.rejects(rig.ask("%say one", { resume: missing }));
  const process = await rig.process();
  assert.equal(process.exit.exit_code, 1);
  assert(JSON.stringify([process.said, process.frames]).includes(missing), "it names the session");
}
