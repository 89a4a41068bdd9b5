//! Tools made of async functions.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use outrigger_protocol::RawJson;
use rmcp::model::{CallToolResult, Icon, JsonObject, MetaObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::output::{IntoToolResult, failed};
use super::schema;
use super::tool_context::ToolContext;
use super::toolbox::ALWAYS_LOAD;
use crate::peer::BoxFuture;

type ToolFn = dyn Fn(JsonObject, ToolContext) -> BoxFuture<'static, CallToolResult> + Send + Sync;

/// A tool made of an async function or closure.
///
/// ```
/// use outrigger::mcp::{Json, Tool};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Add {
///     /// The first number.
///     a: f64,
///     b: f64,
/// }
///
/// #[derive(serde::Serialize, schemars::JsonSchema)]
/// struct Sum {
///     sum: f64,
/// }
///
/// let add = Tool::new("add", "Adds two numbers", async |input: Add, _| Json(Sum { sum: input.a + input.b }))
///     .read_only()
///     .idempotent();
/// # let _ = add;
/// ```
///
/// The model sees the tool as `mcp__SERVER__NAME`, its description, and the JSON schema of its input; comments on fields
/// are descriptions there. The arguments are decoded as the input type; if that fails, the model gets an error with the reason,
/// and the function is not called.
///
/// The function may be called many times at once. The CLI runs calls in one answer of the model one after another unless the
/// tool is [`read_only`](Self::read_only). A panic only fails its call.
#[derive(Clone)]
pub struct Tool {
    pub(super) definition: rmcp::model::Tool,
    pub(super) timeout: Option<Duration>,
    pub(super) ends_turn: bool,
    call: Arc<ToolFn>,
    /// The problem of the tool, if any.
    pub(super) problem: Option<String>,
}

impl Tool {
    /// A tool of this name (1 to 128 of `A-Z a-z 0-9 _ - .`), with a description for the model.
    ///
    /// The input type must be a struct, or another type whose JSON schema is of type `object`; for a tool without input it is a
    /// struct without fields.
    pub fn new<I, O, F, Fut>(name: impl Into<String>, description: impl Into<String>, function: F) -> Self
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        O: IntoToolResult,
        F: Fn(I, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = O> + Send + 'static,
    {
        let name = name.into();
        let called = name.clone();
        let call = move |arguments: JsonObject, context| -> BoxFuture<'static, CallToolResult> {
            // From text, so that numbers and what else is special about JSON text reach the type as they were written.
            let input = RawJson::encode(&arguments).and_then(|text| text.decode::<I>());
            match input {
                Ok(input) => {
                    let future = function(input, context);
                    Box::pin(async move { future.await.into_tool_result() })
                }
                Err(error) => {
                    let why = format!("the arguments do not fit the input schema of `{called}`: {error}");
                    Box::pin(std::future::ready(failed(why)))
                }
            }
        };
        Self::of(
            name,
            description,
            schema::read::<I>().to_value(),
            O::output_schema(),
            Arc::new(call),
        )
    }

    /// As [`new`](Self::new), with state that the calls share.
    ///
    /// One state serves all sessions that use this tool. For a separate state in each session, make the tool anew for each.
    pub fn with_state<S, I, O, F, Fut>(
        name: impl Into<String>,
        description: impl Into<String>,
        state: impl Into<Arc<S>>,
        function: F,
    ) -> Self
    where
        S: Send + Sync + 'static,
        I: DeserializeOwned + JsonSchema + Send + 'static,
        O: IntoToolResult,
        F: Fn(Arc<S>, I, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = O> + Send + 'static,
    {
        let state = state.into();
        Self::new(name, description, move |input, context| {
            function(Arc::clone(&state), input, context)
        })
    }

    /// A tool with an untyped input: `schema` is the JSON schema of the input, and the function gets the arguments as JSON.
    pub fn untyped<O, F, Fut>(
        name: impl Into<String>,
        description: impl Into<String>,
        schema: Value,
        function: F,
    ) -> Self
    where
        O: IntoToolResult,
        F: Fn(JsonObject, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = O> + Send + 'static,
    {
        let call = move |arguments: JsonObject, context| -> BoxFuture<'static, CallToolResult> {
            let future = function(arguments, context);
            Box::pin(async move { future.await.into_tool_result() })
        };
        Self::of(
            name.into(),
            description,
            schema,
            O::output_schema(),
            Arc::new(call),
        )
    }

    fn of(
        name: String,
        description: impl Into<String>,
        input: Value,
        output: Option<schemars::Schema>,
        call: Arc<ToolFn>,
    ) -> Self {
        let mut problem = check_name(&name);
        let mut schema_of = |what: &str, schema| {
            schema::object(schema).unwrap_or_else(|why| {
                problem.get_or_insert_with(|| format!("the JSON schema of its {what} {why}"));
                Arc::default()
            })
        };
        let input = schema_of("input", input);
        let output = output.map(|schema| schema_of("output", schema.to_value()));
        let mut definition = rmcp::model::Tool::new(name, description.into(), input);
        definition.output_schema = output;
        Self {
            definition,
            timeout: None,
            ends_turn: false,
            call,
            problem,
        }
    }

    /// The tool's name.
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// Calls the tool directly, without a session.
    pub(super) fn call(
        &self,
        arguments: JsonObject,
        context: ToolContext,
    ) -> BoxFuture<'static, CallToolResult> {
        (self.call)(arguments, context)
    }

    /// A name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        let title = title.into();
        self.annotations().title = Some(title.clone());
        self.definition.title = Some(title);
        self
    }

    /// Declares that the tool changes nothing (`readOnlyHint`). Such calls run in parallel.
    pub fn read_only(mut self) -> Self {
        self.annotations().read_only_hint = Some(true);
        self
    }

    /// Declares whether the tool may destroy something (`destructiveHint`); true unless set.
    pub fn destructive(mut self, destructive: bool) -> Self {
        self.annotations().destructive_hint = Some(destructive);
        self
    }

    /// Declares that a repeated call with the same arguments changes nothing more (`idempotentHint`).
    pub fn idempotent(mut self) -> Self {
        self.annotations().idempotent_hint = Some(true);
        self
    }

    /// Declares whether the tool accesses an open world, such as the web (`openWorldHint`); true unless set.
    pub fn open_world(mut self, open_world: bool) -> Self {
        self.annotations().open_world_hint = Some(open_world);
        self
    }

    /// Keywords for the CLI's tool search (`anthropic/searchHint`).
    pub fn search_hint(self, hint: impl Into<String>) -> Self {
        self.meta("anthropic/searchHint", hint.into())
    }

    /// Offers the tool to the model from the start instead of on demand (`anthropic/alwaysLoad`). With
    /// `.meta("anthropic/alwaysLoad", false)` it comes on demand even if its whole server does not.
    pub fn always_load(self) -> Self {
        self.meta(ALWAYS_LOAD, true)
    }

    /// How many characters of its result the model gets before the CLI puts the rest into a file
    /// (`anthropic/maxResultSizeChars`); about 50,000 unless set.
    pub fn max_result_size_chars(self, characters: u64) -> Self {
        self.meta("anthropic/maxResultSizeChars", characters)
    }

    /// Ends the turn with the result, unless that is an error: the model is not called again (`claude/endTurn` of the result).
    pub fn end_turn(mut self) -> Self {
        self.ends_turn = true;
        self
    }

    /// The deadline of a call; none unless set. After it the future is dropped, and the call has failed.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Icons for user interfaces.
    pub fn icons(mut self, icons: impl IntoIterator<Item = Icon>) -> Self {
        self.definition.icons = Some(icons.into_iter().collect());
        self
    }

    /// Adds other metadata to the definition (`_meta`). A value that does not serialize makes the tool invalid.
    pub fn meta(mut self, key: impl Into<String>, value: impl Serialize) -> Self {
        let key = key.into();
        match serde_json::to_value(value) {
            Ok(value) => {
                let meta = self.definition.meta.get_or_insert_with(MetaObject::default);
                meta.insert(key, value);
            }
            Err(error) => {
                self.problem
                    .get_or_insert_with(|| format!("its `_meta` {key:?} can't be written as JSON: {error}"));
            }
        }
        self
    }

    pub(super) fn has_meta(&self, key: &str) -> bool {
        let meta = self.definition.meta.as_ref();
        meta.is_some_and(|meta| meta.contains_key(key))
    }

    fn annotations(&mut self) -> &mut ToolAnnotations {
        self.definition.annotations.get_or_insert_default()
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool")
            .field("definition", &self.definition)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// Checks a tool's name by the demands of MCP and the CLI.
fn check_name(name: &str) -> Option<String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_valid = (1..=128).contains(&name.len()) && name.chars().all(allowed);
    (!is_valid).then(|| "its name has to be 1 to 128 of the characters A-Z a-z 0-9 _ - .".to_owned())
}
