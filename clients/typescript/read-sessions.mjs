// Writes down what the official SDK reads of all sessions below CLAUDE_CONFIG_DIR, as one JSON object.
//
// The arguments are directories of projects, whose sessions are listed too; stdin has the ids.

import { readFileSync } from 'node:fs';

import {
  getSessionInfo,
  getSessionMessages,
  getSubagentMessages,
  listSessions,
  listSubagents,
} from '@anthropic-ai/claude-agent-sdk';

async function session(id) {
  const subagents = {};
  for (const agent of await listSubagents(id)) {
    subagents[agent] = await getSubagentMessages(id, agent);
  }
  return {
    info: (await getSessionInfo(id)) ?? null,
    messages: await getSessionMessages(id),
    page: await getSessionMessages(id, { limit: 2, offset: 1 }),
    system: await getSessionMessages(id, { includeSystemMessages: true }),
    subagents,
  };
}

const told = { dirs: {}, sessions: {} };
told.list = await listSessions();
told.page = await listSessions({ limit: 3, offset: 2 });
told.people = await listSessions({ includeProgrammatic: false });
for (const dir of process.argv.slice(2)) {
  told.dirs[dir] = await listSessions({ dir });
}
for (const id of JSON.parse(readFileSync(0, 'utf8'))) {
  told.sessions[id] = await session(id);
}
process.stdout.write(JSON.stringify(told));
