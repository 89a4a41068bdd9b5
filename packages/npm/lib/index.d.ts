/** A JSON object. */
export type Json = { [key: string]: any };

/**
 * A script: the path or URL of a file, the YAML text itself, or the same as an object.
 *
 * A text with a line break, or with `{` at its beginning, is the script itself.
 */
export type Script = string | URL | Json;

/**
 * The path of the executable `outrigger-sim` for this machine.
 *
 * The environment variable `OUTRIGGER_SIM` names another one.
 */
export function binary(): string;

/** Something that the script expected otherwise. */
export interface Flaw {
  /** Where in the script, as `FILE:LINE:COLUMN`. */
  place: string | null;
  what: string;
}

/** What the script expected did not happen. */
export class Discontent extends Error {
  readonly flaws: Flaw[];
}

export interface SimulationOptions {
  /** The directory to which a relative path of a script belongs; the working directory unless given. */
  base?: string;
  /** Added to the environment of the CLI. */
  env?: Record<string, string>;
  /** How many milliseconds a process of the CLI may take to end; 10,000 unless given. */
  patience?: number;
  /**
   * Whether the real CLI plays the script: the one that the official SDK brings in its optional package, else the one that this
   * version is tested with, which npm fetches once. A path names an executable. Unless given, the environment variable
   * `OUTRIGGER_SIM_REAL` decides: `1`, or the path of an executable.
   */
  real?: boolean | string;
}

/** The script cannot be played by this CLI, or the CLI cannot be had. */
export class CannotPlay extends Error {}

/**
 * The CLI with a script, simulated or real, in a home and a project of its own.
 *
 * Without a script, the prompts say what the model says. Throws {@link CannotPlay} if there is something in the script that this CLI
 * cannot play, or if the CLI cannot be had.
 */
export function simulate(script?: Script, options?: SimulationOptions): Simulation;

/** The CLI with a script. Nothing of the user's own `~/.claude` is read or written. */
export class Simulation {
  constructor(script?: Script, options?: SimulationOptions);

  /** Options for `query()`: the executable, the environment and the working directory. */
  readonly options: { pathToClaudeCodeExecutable: string; env: Record<string, string | undefined>; cwd: string };
  /** Whether it is the real CLI. */
  readonly real: boolean;
  /** The executable to start in place of the CLI. */
  readonly path: string;
  /** The whole environment for it: that of this process without accounts, and what the simulation needs. */
  readonly env: Record<string, string | undefined>;
  /** The temporary directory that has all of the others. */
  readonly place: string;
  readonly home: string;
  /** The project in which the CLI is to work. */
  readonly cwd: string;

  /** What went through, as soon as all processes have ended, or when the patience is at its end. */
  trace(): Promise<Trace>;
  /** Waits for the end of the CLI, and rejects with {@link Discontent} if the script's expectations do not hold. */
  check(): Promise<Trace>;
  /** Checks, ends processes that the program left behind, and removes the directory. */
  end(): Promise<void>;
  /** Whether the script waits, or has waited, for this gate. */
  gateReached(name: string): boolean;
  /** Has the script go on behind `wait: {gate: NAME}`. */
  openGate(name: string): void;
}

/** One JSON object on a line of a pipe. */
export interface Frame {
  /** When, in milliseconds since the start of its process. */
  atMs: number;
  /** `client` is the program under test. */
  sender: "client" | "cli";
  /** Its type, with the subtype: `assistant`, `control_request/can_use_tool`. */
  kind: string;
  data: Json;
}

/** One run of the CLI. */
export interface Process {
  pid: number;
  /** Its command line, without the program. */
  arguments: string[];
  /** Its working directory. */
  cwd: string;
  /** Whether it has not ended yet. */
  running: boolean;
  /** `null` if it runs, if a signal ended it, or if it is the real CLI. */
  exitCode: number | null;
  signal: number | null;
  frames: Frame[];
}

/** A call of a tool by the model. */
export interface ToolCall {
  id: string;
  name: string;
  input: Json;
  /** The id of the call that started the subagent which made this one. */
  parent: string | null;
  /** The text that the model read; `null` if no result came. */
  result: string | null;
  isError: boolean;
}

/**
 * What became of a request for a permission; `failed` without a decision that the CLI understands. It understands an `allow` unless its
 * `updatedInput` is no object, and a `deny` with a `message`.
 */
export type Outcome = "allowed" | "denied" | "failed";

/** A request for a permission, with what the program replied. */
export interface PermissionRequest {
  tool: string;
  input: Json;
  outcome: Outcome;
  /** The reply as it was sent: `behavior`, `updatedInput`, `message`. */
  reply: Json | null;
  /** What the program replied in place of a decision, when its callback failed. */
  error: string | null;
}

/** A call of a hook, with what the program replied. */
export interface HookCall {
  event: string;
  input: Json;
  reply: Json | null;
  error: string | null;
}

/** What went through, of all processes of a simulation, in the order in which they were started. */
export class Trace {
  readonly processes: Process[];
  /** What the script expected otherwise, up to now. */
  readonly flaws: Flaw[];
  /** All frames of both directions. */
  readonly frames: Frame[];
  /** The text of each prompt that the program sent. */
  readonly prompts: string[];
  /** The `result` message of each turn. */
  readonly results: Json[];
  /** The calls that the model made, those of subagents included; the CLI does not tell those of agents that a subagent started. */
  readonly toolCalls: ToolCall[];
  /** What the program was asked to permit, and how it decided. */
  readonly permissionRequests: PermissionRequest[];
  /** The calls of the program's hooks. */
  readonly hookCalls: HookCall[];

  /** The frames of a kind, such as `result/success` or `control_request/interrupt`. */
  ofKind(kind: string): Frame[];
  /** Fails unless these are the prompts that the program sent. */
  assertPrompts(...expected: string[]): void;
  /**
   * Fails unless the tool was called, and returns those calls.
   *
   * `input` has the keys that the input must have at least, `isError` says how it must have ended, and `times` how many such
   * calls there must be; without it, at least one.
   */
  assertTool(name: string, expected?: { input?: Json; times?: number; isError?: boolean }): ToolCall[];
  /** Fails unless the program was asked to permit the tool and this came of it, and returns the first such request. */
  assertPermission(tool: string, outcome: Outcome, input?: Json): PermissionRequest;
  /** Fails unless a hook was called for this event, and returns those calls. */
  assertHook(event: string, expected?: { times?: number }): HookCall[];
  /** A line for each frame, to read after a failure. */
  summary(): string;
}
