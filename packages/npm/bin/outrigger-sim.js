#!/usr/bin/env node
// `npx outrigger-sim`: the executable itself, for `--check`, `--schema` and the like.

import { spawnSync } from "node:child_process";

import { binary } from "../lib/index.js";

const { status, signal, error } = spawnSync(binary(), process.argv.slice(2), { stdio: "inherit" });
if (error) throw error;
if (signal) process.kill(process.pid, signal);
process.exitCode = status ?? 1;
