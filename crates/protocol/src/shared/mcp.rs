//! MCP servers: how they are configured and how they fare.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::closed_enum::closed_enum;
use super::object::JsonObject;
use crate::RawJson;
use crate::open_enum;
use crate::open_struct;
use crate::walk::string_at;
use crate::wire_enum::MisfitValue;

/// An MCP server to connect to, as the CLI takes it in `--mcp-config`, `initialize` and `mcp_set_servers`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
#[non_exhaustive]
pub enum McpServerConfig {
    /// A program that the CLI starts and talks to over its stdin and stdout.
    Stdio(McpStdioServerConfig),
    /// A server reached over HTTP with server-sent events.
    Sse(McpRemoteServerConfig),
    /// A server reached over streamable HTTP.
    Http(McpRemoteServerConfig),
    /// A server reached over a WebSocket. Upstream's SDKs do not declare it; the CLI takes it.
    Ws(McpRemoteServerConfig),
    /// A server inside the program that drives the CLI, reached through `mcp_message`.
    Sdk(McpSdkServerConfig),
    /// A server of another `type`, such as that of an editor (`ws-ide`, `sse-ide`), as it came: the CLI judges it.
    #[serde(untagged)]
    Other(JsonObject),
}

impl<'de> Deserialize<'de> for McpServerConfig {
    /// A config without `type` is a stdio one, as for the CLI.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let raw = RawJson::deserialize(deserializer)?;
        match string_at(raw.get(), "type").as_deref() {
            Some("stdio") | None => raw.read().map(Self::Stdio),
            Some("sse") => raw.read().map(Self::Sse),
            Some("http" | "streamable-http") => raw.read().map(Self::Http),
            Some("ws") => raw.read().map(Self::Ws),
            Some("sdk") => raw.read().map(Self::Sdk),
            Some(_) => raw.read().map(Self::Other),
        }
        .map_err(Error::custom)
    }
}

impl McpServerConfig {
    /// How long one tool call may take, in milliseconds; `None` for the CLI's default, and for [`Other`](Self::Other).
    pub fn timeout(&self) -> Option<u64> {
        match self {
            Self::Stdio(config) => config.timeout,
            Self::Sse(config) | Self::Http(config) | Self::Ws(config) => config.timeout,
            Self::Sdk(config) => config.timeout,
            Self::Other(_) => None,
        }
    }
}

/// A server that the CLI starts itself.
///
/// `Debug` shows the names of the environment variables but not their values, which are often secrets.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct McpStdioServerConfig {
    /// The program.
    pub command: String,
    /// Its arguments. Written even if empty, because `mcp_set_servers` fails without them.
    #[serde(default)]
    pub args: Vec<String>,
    /// Environment variables to add.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub env: Option<BTreeMap<String, String>>,
    /// How long one tool call may take, in milliseconds; the CLI's default if `None`.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub timeout: Option<u64>,
    /// Offers the server's tools to the model at once instead of on demand.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub always_load: Option<bool>,
    /// Fields that have no type here, as they came; written after the others.
    #[serde(flatten)]
    pub extra: BTreeMap<String, RawJson>,
}

impl<'de> Deserialize<'de> for McpStdioServerConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = ConfigFields::of("McpStdioServerConfig", deserializer)?;
        Ok(Self {
            command: fields.required("command")?,
            args: fields.optional("args")?.unwrap_or_default(),
            env: fields.optional("env")?,
            timeout: fields.optional("timeout")?,
            always_load: fields.optional("alwaysLoad")?,
            extra: fields.rest(),
        })
    }
}

impl McpStdioServerConfig {
    /// A server started as `command` with `args`.
    pub fn new<S: Into<String>>(command: impl Into<String>, args: impl IntoIterator<Item = S>) -> Self {
        Self {
            command: command.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: None,
            timeout: None,
            always_load: None,
            extra: BTreeMap::new(),
        }
    }

    /// Adds an environment variable.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.get_or_insert_default().insert(name.into(), value.into());
        self
    }
}

impl fmt::Debug for McpStdioServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpStdioServerConfig")
            .field("command", &self.command)
            .field("args", &self.args)
            .field("env", &self.env.as_ref().map(BTreeMap::keys))
            .field("timeout", &self.timeout)
            .field("always_load", &self.always_load)
            .field("extra", &self.extra.keys())
            .finish()
    }
}

/// A server reached over the network.
///
/// `Debug` shows the names of the headers but not their values, which are often secrets.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct McpRemoteServerConfig {
    /// The address of the server.
    pub url: String,
    /// Headers to send with every request.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub headers: Option<BTreeMap<String, String>>,
    /// A command that writes more headers, as a JSON object of texts. The CLI runs it. Upstream's SDKs do not declare it.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub headers_helper: Option<String>,
    /// How the CLI signs in: `clientId`, `callbackPort`, `authServerMetadataUrl`, `scopes`. Upstream's SDKs do not declare it.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub oauth: Option<JsonObject>,
    /// What to do about single tools.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub tools: Option<Vec<McpServerToolPolicy>>,
    /// How long one tool call may take, in milliseconds; the CLI's default if `None`.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub timeout: Option<u64>,
    /// Offers the server's tools to the model at once instead of on demand.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub always_load: Option<bool>,
    /// Fields that have no type here, as they came; written after the others.
    #[serde(flatten)]
    pub extra: BTreeMap<String, RawJson>,
}

impl<'de> Deserialize<'de> for McpRemoteServerConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = ConfigFields::of("McpRemoteServerConfig", deserializer)?;
        Ok(Self {
            url: fields.required("url")?,
            headers: fields.optional("headers")?,
            headers_helper: fields.optional("headersHelper")?,
            oauth: fields.optional("oauth")?,
            tools: fields.optional("tools")?,
            timeout: fields.optional("timeout")?,
            always_load: fields.optional("alwaysLoad")?,
            extra: fields.rest(),
        })
    }
}

impl McpRemoteServerConfig {
    /// A server at `url`.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            headers: None,
            headers_helper: None,
            oauth: None,
            tools: None,
            timeout: None,
            always_load: None,
            extra: BTreeMap::new(),
        }
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers
            .get_or_insert_default()
            .insert(name.into(), value.into());
        self
    }
}

impl fmt::Debug for McpRemoteServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpRemoteServerConfig")
            .field("url", &self.url)
            .field("headers", &self.headers.as_ref().map(BTreeMap::keys))
            .field("headers_helper", &self.headers_helper)
            .field("oauth", &self.oauth)
            .field("tools", &self.tools)
            .field("timeout", &self.timeout)
            .field("always_load", &self.always_load)
            .field("extra", &self.extra.keys())
            .finish()
    }
}

/// A server inside the program that drives the CLI.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct McpSdkServerConfig {
    /// The name of the server, which `mcp_message` uses.
    pub name: String,
    /// How long one tool call may take, in milliseconds; the CLI's default if `None`.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub timeout: Option<u64>,
    /// What to do about single tools.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub tools: Option<Vec<McpServerToolPolicy>>,
    /// The other settings of such a server, as they came; those of
    /// [`SdkMcpServerSettings`](crate::outbound::SdkMcpServerSettings) among them.
    #[serde(flatten)]
    pub extra: BTreeMap<String, RawJson>,
}

impl<'de> Deserialize<'de> for McpSdkServerConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = ConfigFields::of("McpSdkServerConfig", deserializer)?;
        Ok(Self {
            name: fields.required("name")?,
            timeout: fields.optional("timeout")?,
            tools: fields.optional("tools")?,
            extra: fields.rest(),
        })
    }
}

impl McpSdkServerConfig {
    /// A server by its name.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            timeout: None,
            tools: None,
            extra: BTreeMap::new(),
        }
    }
}

/// The fields of a config that were not read yet.
struct ConfigFields {
    place: &'static str,
    left: BTreeMap<String, RawJson>,
}

impl ConfigFields {
    /// All but the tag, which the union writes.
    fn of<'de, D: Deserializer<'de>>(place: &'static str, deserializer: D) -> Result<Self, D::Error> {
        let mut left = open_struct::entries(deserializer)?;
        left.remove("type");
        Ok(Self { place, left })
    }

    fn required<T: DeserializeOwned, E: serde::de::Error>(&mut self, key: &'static str) -> Result<T, E> {
        self.optional(key)?.ok_or_else(|| E::missing_field(key))
    }

    fn optional<T: DeserializeOwned, E: serde::de::Error>(&mut self, key: &str) -> Result<Option<T>, E> {
        let raw = self.left.remove(key).filter(|raw| !raw.is_null());
        let read = |raw: RawJson| raw.read().map_err(|error| E::custom(format!("{key}: {error}")));
        raw.map(read).transpose()
    }

    /// What has no field.
    fn rest(self) -> BTreeMap<String, RawJson> {
        for key in self.left.keys() {
            crate::drift::note(self.place, key, crate::drift::DriftKind::UnknownTag);
        }
        self.left
    }
}

/// What to do about one tool of a server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct McpServerToolPolicy {
    /// The tool, by its name on the server.
    pub name: String,
    /// Whether the CLI requests permission for the tool's calls; as for other tools if `None`.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub permission_policy: Option<McpPermissionPolicy>,
    /// The most that the organization lets anybody grant.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub org_max_permission: Option<McpOrgMaxPermission>,
}

impl McpServerToolPolicy {
    /// A policy for one tool.
    pub fn new(name: impl Into<String>, policy: McpPermissionPolicy) -> Self {
        Self {
            name: name.into(),
            permission_policy: Some(policy),
            org_max_permission: None,
        }
    }
}

closed_enum! {
    /// Whether the calls of one MCP tool are asked.
    #[non_exhaustive]
    pub enum McpPermissionPolicy {
        /// Calls run without a question.
        AlwaysAllow = "always_allow",
        /// Each call needs permission.
        AlwaysAsk = "always_ask",
        /// Calls are denied.
        AlwaysDeny = "always_deny",
    }
}

closed_enum! {
    /// The most that an organization lets anybody grant to one MCP tool.
    #[non_exhaustive]
    pub enum McpOrgMaxPermission {
        /// No limit.
        Allow = "allow",
        /// Each call of the tool needs permission.
        Ask = "ask",
        /// The tool may not be used.
        Blocked = "blocked",
    }
}

/// How a server is configured, as the CLI reports it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum McpServerStatusConfig {
    /// One that can be configured.
    Server(McpServerConfig),
    /// A connector of the signed-in claude.ai account.
    ClaudeAiProxy(McpClaudeAiProxyServerConfig),
    /// A kind that this build does not know, as it came.
    Unknown(RawJson),
    /// A kind that this build knows, on a value that does not fit.
    Misfit(Box<MisfitValue>),
}

/// A connector of the signed-in claude.ai account.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct McpClaudeAiProxyServerConfig {
    /// The address of the server.
    pub url: String,
    /// The connector's id.
    pub id: String,
    /// How long one tool call may take, in milliseconds.
    pub timeout: Option<u64>,
}

impl<'de> Deserialize<'de> for McpServerStatusConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = RawJson::deserialize(deserializer)?;
        let tag = string_at(raw.get(), "type").unwrap_or_else(|| "stdio".to_owned());
        let fitted = match tag.as_str() {
            "stdio" | "sse" | "http" | "streamable-http" | "ws" | "sdk" => raw.read().map(Self::Server),
            "claudeai-proxy" => raw.read().map(Self::ClaudeAiProxy),
            _ => {
                let unknown = crate::drift::DriftKind::UnknownTag;
                crate::drift::note("McpServerStatusConfig", &tag, unknown);
                return Ok(Self::Unknown(raw));
            }
        };
        Ok(fitted.unwrap_or_else(|error: serde_json::Error| {
            let reason = error.to_string();
            let misfit = crate::drift::DriftKind::Misfit(reason.clone());
            crate::drift::note("McpServerStatusConfig", &tag, misfit);
            Self::Misfit(Box::new(MisfitValue::__new(tag, reason, raw)))
        }))
    }
}

impl Serialize for McpServerStatusConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(tag = "type")]
        enum Tagged<'a> {
            #[serde(rename = "claudeai-proxy")]
            ClaudeAiProxy(&'a McpClaudeAiProxyServerConfig),
        }
        match self {
            Self::Server(config) => config.serialize(serializer),
            Self::ClaudeAiProxy(config) => Tagged::ClaudeAiProxy(config).serialize(serializer),
            Self::Unknown(raw) => raw.serialize(serializer),
            Self::Misfit(misfit) => misfit.raw.serialize(serializer),
        }
    }
}

open_enum! {
    /// How an MCP server fares.
    pub enum McpServerState {
        /// The server is connected: its tools can be called.
        Connected = "connected",
        /// The server could not be reached, or refused the connection.
        Failed = "failed",
        /// Somebody must sign in first.
        NeedsAuth = "needs-auth",
        /// The connection is being made.
        Pending = "pending",
        /// The server is switched off.
        Disabled = "disabled",
    }
}

/// One MCP server, as `mcp_status` and `reload_plugins` report it.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct McpServerStatus {
    /// The server's name.
    pub name: String,
    /// The state of the server.
    pub status: McpServerState,
    /// What the server said of itself in the handshake.
    pub server_info: Option<McpServerInfo>,
    /// Why the server failed.
    pub error: Option<String>,
    /// How the server is configured. Absent for servers inside the driving program.
    pub config: Option<McpServerStatusConfig>,
    /// How the CLI reaches the server: `stdio`, `sse`, `http`, `sdk`, …
    pub transport: Option<String>,
    /// Which settings the server comes from: `user`, `project`, `local`, `dynamic`, …
    pub scope: Option<String>,
    /// Where the server comes from: `plugin`, `sdk`, `dynamic`, …
    pub source: Option<String>,
    /// The tools of the server, once the server is connected.
    pub tools: Option<Vec<McpServerTool>>,
    /// Why the server failed, as a code.
    #[serde(rename = "error_code")]
    pub error_code: Option<String>,
    /// Whether the CLI reaches the server through the session's own proxy.
    pub session_proxied: Option<bool>,
    /// Whether the server comes from the cloud session.
    pub cloud_service_provided: Option<bool>,
    /// The host part of the server's address.
    pub url_host: Option<String>,
    /// How many tools the server has.
    pub tool_count: Option<u64>,
    /// What the server can do besides tools.
    pub capabilities: Option<RawJson>,
}

/// What an MCP server said of itself.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct McpServerInfo {
    /// The name that the server gives itself; the configured name can be another.
    pub name: String,
    /// The server's version.
    pub version: String,
    /// The server's title, for people.
    pub title: Option<String>,
    /// What the server is for.
    pub description: Option<String>,
    /// A page about the server.
    #[serde(rename = "websiteUrl")]
    pub website_url: Option<String>,
    /// Icons of the server, in the words of MCP.
    pub icons: Option<RawJson>,
}

/// One tool of an MCP server.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct McpServerTool {
    /// The tool's name without the `mcp__server__` in front.
    pub name: String,
    /// What the tool does.
    pub description: Option<String>,
    /// What the server says that the tool does not do.
    pub annotations: Option<McpToolAnnotations>,
    /// What the server attached to the tool, as `_meta`.
    pub _meta: Option<RawJson>,
}

/// Hints about a tool, in the CLI's own spelling.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct McpToolAnnotations {
    /// The tool changes nothing.
    pub read_only: Option<bool>,
    /// The tool may destroy something.
    pub destructive: Option<bool>,
    /// The tool reaches beyond this machine.
    pub open_world: Option<bool>,
}

/// Which server a tool call goes to and who brought the server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct McpServerProvenance {
    /// The server's name.
    pub name: String,
    /// Where the server comes from: `plugin`, `sdk`, `dynamic`, …
    pub source: String,
}
