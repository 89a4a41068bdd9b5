// Tests programs that drive the Claude Code CLI, without a key and without a network.

export { binary } from "./binary.js";
export { CannotPlay } from "./player.js";
export { Discontent, Simulation, simulate } from "./simulation.js";
export { Trace } from "./trace.js";
