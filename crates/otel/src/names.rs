//! The names of spans, metrics, logs and attributes. Those that begin with `gen_ai` are of the semantic conventions for generative AI,
//! version 0.1.0; those that begin with `outrigger` are ours.

/// The span of a session: from [`Telemetry::session`](crate::Telemetry::session) until its [`SessionTelemetry`](crate::SessionTelemetry)
/// is dropped and its last process has ended.
pub const SPAN_SESSION: &str = "session";
/// The span of a turn: from the sending of the prompt to the outcome.
pub const SPAN_TURN: &str = "invoke_agent Claude Code";
/// The operation of a turn.
pub const INVOKE_AGENT: &str = "invoke_agent";
/// The operation of a request to the model; its span has the model behind it.
pub const CHAT: &str = "chat";
/// The operation of a tool call; its span has the tool behind it.
pub const EXECUTE_TOOL: &str = "execute_tool";
/// The span of a permission request; the tool is behind it.
pub const PERMISSION: &str = "permission";
/// The span of a hook; its event is behind it.
pub const HOOK: &str = "hook";

/// The operation.
pub const OPERATION_NAME: &str = "gen_ai.operation.name";
/// The provider of the model.
pub const PROVIDER_NAME: &str = "gen_ai.provider.name";
/// The agent.
pub const AGENT_NAME: &str = "gen_ai.agent.name";
/// The id of the session.
pub const CONVERSATION_ID: &str = "gen_ai.conversation.id";
/// The model that answered.
pub const RESPONSE_MODEL: &str = "gen_ai.response.model";
/// The API's id of a message.
pub const RESPONSE_ID: &str = "gen_ai.response.id";
/// Input tokens, those of the cache included.
pub const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
/// Output tokens.
pub const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
/// Input tokens read from the cache.
pub const CACHE_READ_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
/// Input tokens written to the cache.
pub const CACHE_CREATION_TOKENS: &str = "gen_ai.usage.cache_creation.input_tokens";
/// `input` or `output`.
pub const TOKEN_TYPE: &str = "gen_ai.token.type";
/// A tool.
pub const TOOL_NAME: &str = "gen_ai.tool.name";
/// The id of a tool call.
pub const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
/// The input of a tool call; content.
pub const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
/// The result of a tool call; content.
pub const TOOL_RESULT: &str = "gen_ai.tool.call.result";
/// The prompt, as JSON; content.
pub const INPUT_MESSAGES: &str = "gen_ai.input.messages";
/// The answer, as JSON; content.
pub const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
/// Why something failed.
pub const ERROR_TYPE: &str = "error.type";
/// How a turn ended: [`Verdict::name`](outrigger::Verdict::name).
pub const VERDICT: &str = "outrigger.verdict";
/// The cost of a turn in US dollars, by the CLI's price table.
pub const COST_USD: &str = "outrigger.cost_usd";
/// True for a turn that no prompt of the program began.
pub const AMBIENT: &str = "outrigger.ambient";
/// `allow`, `deny`, `error`, `withdrawn` or `unanswered`.
pub const DECISION: &str = "outrigger.decision";
/// The event of a hook.
pub const HOOK_EVENT: &str = "outrigger.hook.event";
/// The name of a gate, as the program gives it.
pub const GATE: &str = "outrigger.gate";
/// The name of a budget, as the program gives it.
pub const BUDGET: &str = "outrigger.budget";
/// The name of a supervised session, as the program gives it.
pub const SUPERVISED: &str = "outrigger.supervised";
/// The job of a batch, or the name of a supervised session, that a session was started for.
pub const START_NAME: &str = "outrigger.start.name";
/// The try of the job, or the process of the supervised session, from 1.
pub const START_NUMBER: &str = "outrigger.start.number";
/// `attempt`, `first`, `restart` or `rotation`.
pub const START_REASON: &str = "outrigger.start.reason";

/// Tokens of a turn, by model and type.
pub const METRIC_TOKENS: &str = "gen_ai.client.token.usage";
/// How long requests to the model took, as seen from outside of the CLI.
pub const METRIC_CHAT: &str = "gen_ai.client.operation.duration";
/// How long turns took, from the sending of the prompt.
pub const METRIC_TURN: &str = "gen_ai.invoke_agent.duration";
/// How long tools took, with the wait for permission.
pub const METRIC_TOOL: &str = "gen_ai.execute_tool.duration";
/// The cost in US dollars.
pub const METRIC_COST: &str = "outrigger.cost";
/// From the sending of a prompt to the first sign of the model.
pub const METRIC_WAIT: &str = "outrigger.turn.wait";
/// How long permission requests waited for the reply.
pub const METRIC_PERMISSION: &str = "outrigger.permission.duration";
/// How long hooks of this program took.
pub const METRIC_HOOK: &str = "outrigger.hook.duration";
/// Processes of the CLI that were started in place of one that had ended.
pub const METRIC_RESTARTS: &str = "outrigger.restarts";
/// Sessions that run.
pub const METRIC_SESSIONS: &str = "outrigger.sessions";
/// Prompts that wait or run.
pub const METRIC_PROMPTS: &str = "outrigger.prompts.open";
/// Frames that readers have not read yet.
pub const METRIC_FRAMES: &str = "outrigger.frames.waiting";
/// Requests of the CLI without a reply.
pub const METRIC_REQUESTS: &str = "outrigger.requests.open";
/// Resident memory of the CLI's processes; on Linux only.
pub const METRIC_MEMORY: &str = "outrigger.cli.memory";
/// Turns that have a place at a gate.
pub const METRIC_GATE_RUNNING: &str = "outrigger.gate.running";
/// Turns that wait at a gate.
pub const METRIC_GATE_WAITING: &str = "outrigger.gate.waiting";
/// How long visitors of a gate waited.
pub const METRIC_GATE_WAIT: &str = "outrigger.gate.wait";
/// How long a gate stays closed from now on.
pub const METRIC_GATE_CLOSED: &str = "outrigger.gate.closed";
/// Dollars spent in a budget, and below it.
pub const METRIC_BUDGET_SPENT: &str = "outrigger.budget.spent";
/// Dollars reserved in a budget.
pub const METRIC_BUDGET_RESERVED: &str = "outrigger.budget.reserved";
/// Tokens spent in a budget, and below it.
pub const METRIC_BUDGET_TOKENS: &str = "outrigger.budget.tokens.spent";
/// Tokens reserved in a budget.
pub const METRIC_BUDGET_TOKENS_RESERVED: &str = "outrigger.budget.tokens.reserved";
/// Whether a supervised session has a process.
pub const METRIC_SUPERVISED: &str = "outrigger.supervised.running";
/// How often the process of a supervised session died.
pub const METRIC_DEATHS: &str = "outrigger.supervised.deaths";
/// How often the conversation of a supervised session was compacted or handed over.
pub const METRIC_ROTATIONS: &str = "outrigger.supervised.rotations";

/// The log of a turn that ended.
pub const LOG_TURN: &str = "outrigger.turn.ended";
/// The log of a process of the CLI that ended.
pub const LOG_SESSION: &str = "outrigger.session.ended";
