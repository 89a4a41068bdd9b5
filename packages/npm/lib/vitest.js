// A test function for vitest with the fixture `claude`.

import { dirname } from "node:path";

import { test as base } from "vitest";

import { Simulation } from "./simulation.js";

export const test = base.extend({
  claude: async ({ task }, use) => {
    const made = [];
    await use((script, options) => {
      const simulation = new Simulation(script, { base: dirname(task.file.filepath), ...options });
      made.push(simulation);
      return simulation;
    });
    // Also if the test has failed: the script may know why.
    const ends = await Promise.allSettled(made.map((simulation) => simulation.end()));
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  },
});
