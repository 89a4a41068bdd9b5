// The settings at rest: what the SDK makes of files is what `outrigger settings show` makes of them.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

import { filterEscalatingDefaultMode, resolveSettings } from "@anthropic-ai/claude-agent-sdk";

const execute = promisify(execFile);

/** Values of which each key holds some. */
const VALUES = [null, 7, "x", true, ["x"], { a: {} }];

/** Keys where the two differ on purpose, and why. */
const KNOWN = new Map([
  ["hooks", "a list is no map of hooks, whatever is in it: the SDK refuses the whole file when that is an object, and else not"],
]);

/** Files, and what else is given, that are more than one key. */
const CASES = [
  {},
  {
    user: { model: "a", env: { A: "1", B: 2 }, permissions: { allow: ["Read", "Edit"], deny: ["X"] }, later: 1 },
    project: { model: "b", env: { B: "3" }, permissions: { allow: ["Edit", "Bash"], defaultMode: "acceptEdits" } },
    local: { permissions: { defaultMode: "bypassPermissions", allow: ["Z"] } },
  },
  { project: { permissions: { defaultMode: "bypassPermissions" } } },
  { user: { permissions: { defaultMode: "plan" } }, project: { permissions: { defaultMode: "auto" } } },
  { user: { permissions: { defaultMode: "acceptEdits" } }, project: { permissions: { defaultMode: "plan" } } },
  { user: { permissions: { defaultMode: "plan" } }, local: { permissions: { defaultMode: "auto" } } },
  { local: { permissions: { defaultMode: "acceptEdits" } } },
  { user: { permissions: { defaultMode: "bypassPermissions" } } },
  { user: "{", project: { model: "p" } },
  { user: "[1]", project: '"x"' },
  { user: '// no\n{"model":"a"}' },
  { user: '\ufeff{"model":"a"}' },
  { user: "", project: " \n" },
  { user: '{"__proto__":{"a":1},"model":"a"}', project: '{"__proto__":{"b":1}}' },
  { user: { model: "a" }, project: { model: "b" }, options: { settingSources: [] } },
  { user: { model: "a" }, project: { model: "b" }, options: { settingSources: ["user"] } },
  { user: { model: "a" }, project: { model: "b" }, local: { model: "c" }, options: { settingSources: ["local", "user"] } },
  {
    user: { permissions: { allow: [7, "Read", "bash", "mcp__a", "Bash(npm run:*)", "*", "Read(", "Read()", "Read(a)(b)", "Web Fetch", ""] } },
  },
  {
    user: { hooks: { PreToolUse: [{ matcher: "A", hooks: [{ type: "command", command: "u" }] }] } },
    project: {
      hooks: {
        PreToolUse: [{ matcher: "A", hooks: [{ type: "command", command: "u" }] }],
        Stop: [{ hooks: [{ type: "command", command: "s" }] }],
        Nope: [],
      },
    },
  },
  { user: { hooks: { PreToolUse: [{ hooks: [{ type: "weird" }] }] }, model: "a" } },
  { user: { later: { a: [1, 2], b: { c: 1 } }, more: [1] }, project: { later: { a: [2, 3], b: { d: 2 } }, more: [1, 2] } },
  { user: { later: [{ a: 1 }] }, project: { later: [{ a: 1 }] } },
  { user: { later: [1, [2]] }, project: { later: [[2], 1] } },
  { user: { later: { a: 1 } }, project: { later: [1] } },
  { user: { later: [1] }, project: { later: { a: 1 } } },
  { user: { later: "x" }, project: { later: { a: 1 } } },
  { user: { later: { a: { b: 1 } } }, project: { later: { a: null } } },
  { user: { later: [1, 1] }, project: { later: [] } },
  { user: { statusLine: { type: "command", command: "a", padding: 1 } }, project: { statusLine: { type: "command", command: "b" } } },
  { user: { fallbackModel: ["x", "y"], availableModels: ["x", "y"] }, project: { fallbackModel: ["z", "x"], availableModels: ["z", "x"] } },
  {
    user: { extraKnownMarketplaces: { a: { source: { source: "github", repo: "a/b" } } }, pluginConfigs: { a: { options: { x: 1 } } } },
    project: { extraKnownMarketplaces: { a: { source: { source: "directory", path: "/place" } } }, pluginConfigs: { a: { options: { y: 2 } } } },
  },
  {
    user: { sandbox: { enabled: true, network: { allowedDomains: ["a"] }, excludedCommands: ["m"] } },
    project: { sandbox: { network: { allowedDomains: ["b"], deniedDomains: ["c"] }, excludedCommands: ["n"] } },
  },
  { user: { deniedModels: ["opus"] }, options: { serverManagedSettings: { deniedModels: ["opus"], model: "m", later: 1 } } },
  { options: { serverManagedSettings: { model: 7, permissions: 7, allowManagedHooksOnly: "x", availableModels: null } } },
  { options: { serverManagedSettings: {}, managedSettings: { permissions: { deny: ["E"] }, model: "m" } } },
  {
    options: {
      serverManagedSettings: { model: "m", permissions: { deny: ["D"] } },
      managedSettings: { permissions: { deny: ["E"] }, allowManagedHooksOnly: true },
    },
  },
  {
    options: {
      serverManagedSettings: { parentSettingsBehavior: "merge", permissions: { deny: ["A"], allow: ["L"] }, availableModels: ["a", "b"] },
      managedSettings: { permissions: { deny: ["P"], allow: ["K"], ask: ["Q"] }, allowManagedHooksOnly: true, availableModels: ["b", "c"] },
    },
  },
  {
    options: {
      managedSettings: {
        permissions: { allow: ["A"], deny: ["D"], ask: ["K"], defaultMode: "plan", additionalDirectories: ["/place"], disableAutoMode: "disable", later: 1 },
        sandbox: {
          enabled: true,
          failIfUnavailable: true,
          autoAllowBashIfSandboxed: true,
          network: { allowedDomains: ["a"], deniedDomains: ["b"], allowUnixSockets: ["/s"], allowAllUnixSockets: true, strictAllowlist: true },
          filesystem: { allowWrite: ["/a"], denyWrite: ["/b"], denyRead: ["/c"], allowRead: ["/d"] },
        },
      },
    },
  },
];

function show(rig, { options = {} }, more = []) {
  if (options.settingSources) more.push("--setting-sources", options.settingSources.join(","));
  for (const [flag, key] of [["--managed-settings", "managedSettings"], ["--server-managed-settings", "serverManagedSettings"]]) {
    if (options[key]) more.push(flag, JSON.stringify(options[key]));
  }
  return execute(process.env.OUTRIGGER, ["settings", "show", "--json", "--dir", rig.project, ...more]);
}

/** What `outrigger settings show` says, without what only it has. */
async function ours(rig, given) {
  const { stdout } = await show(rig, given);
  const { problems, ...resolved } = JSON.parse(stdout);
  return resolved;
}

/** What the SDK says, as JSON has it. */
async function theirs(rig, { options = {} }) {
  return JSON.parse(JSON.stringify(await resolveSettings({ cwd: rig.project, ...options })));
}

function write(rig, { user, project, local }) {
  const config = process.env.CLAUDE_CONFIG_DIR;
  for (const directory of [config, join(rig.project, ".claude")]) {
    rmSync(directory, { recursive: true, force: true });
    mkdirSync(directory, { recursive: true });
  }
  const files = [
    [join(config, "settings.json"), user],
    [join(rig.project, ".claude", "settings.json"), project],
    [join(rig.project, ".claude", "settings.local.json"), local],
  ];
  for (const [path, content] of files) {
    if (content !== undefined) writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  }
}

async function compare(rig, given) {
  write(rig, given);
  const [left, right] = await Promise.all([ours(rig, given), theirs(rig, given)]);
  assert.deepEqual(left, right, JSON.stringify(given));
  return right;
}

/** Whole files, and how they go together. */
export async function settingsAtRest(rig) {
  rig.offline = true;
  for (const given of CASES) {
    const resolved = await compare(rig, given);
    const { stdout } = await show(rig, given, ["--heeded"]);
    assert.deepEqual(JSON.parse(stdout), JSON.parse(JSON.stringify(filterEscalatingDefaultMode(resolved))), JSON.stringify(given));
  }
}

/** Each key with values that it can hold and that it cannot, in three files at once. */
export async function settingsKeys(rig) {
  rig.offline = true;
  const { stdout } = await execute(process.env.OUTRIGGER, ["settings", "keys"]);
  const wrong = [];
  for (const key of stdout.trim().split("\n")) {
    for (let at = 0; at < VALUES.length; at += 3) {
      const [user, project, local] = VALUES.slice(at, at + 3).map((value) => ({ later: 1, [key]: value }));
      const given = { user, project, local };
      try {
        await compare(rig, given);
      } catch (error) {
        if (!KNOWN.has(key)) wrong.push(`${key}: ${error.message}`);
      }
    }
  }
  assert.equal(wrong.length, 0, wrong.join("\n"));
}
