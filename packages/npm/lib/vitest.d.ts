import type { TestAPI } from "vitest";

import type { Script, Simulation, SimulationOptions } from "./index.js";

/** vitest's `test` with the fixture `claude`. */
export declare const test: TestAPI<{
  /**
   * Makes a CLI for the test, simulated or real. The test fails if an expectation of its script does not hold.
   *
   * A relative path of a script belongs to the directory of the test's file.
   */
  claude: (script?: Script, options?: SimulationOptions) => Simulation;
}>;
