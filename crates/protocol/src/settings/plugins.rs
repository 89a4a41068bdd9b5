//! Plugins and the marketplaces they come from.
// Written by `cargo xtask types` from what upstream declares and upstream/settings/plugins.toml: change that instead.

use std::collections::BTreeMap;

use crate::RawJson;

crate::open_struct::open_struct! {
    /// A marketplace to offer.
    pub struct MarketplaceSettings {
        /// The source of the marketplace.
        source: "source" => MarketplaceSource,
        /// Where the marketplace is kept on this machine.
        install_location: "installLocation" => String,
        /// Whether the CLI keeps the marketplace up to date.
        auto_update: "autoUpdate" => bool,
        /// Hashes that plugins of the marketplace may have, by plugin.
        plugin_digests: "pluginDigests" => BTreeMap<String, Vec<String>>,
    }
}

crate::wire_enum! {
    /// Where a marketplace is.
    pub enum MarketplaceSource by "source" {
        /// At an address.
        "url" => Url(UrlSource),
        /// On GitHub.
        "github" => Github(GithubSource),
        /// In a git repository.
        "git" => Git(GitSource),
        /// In an npm package.
        "npm" => Npm(NpmSource),
        /// In a file on this machine.
        "file" => File(PathSource),
        /// In a directory on this machine.
        "directory" => Directory(PathSource),
        /// In the directory of skills.
        "skills-dir" => SkillsDir(EmptySource),
        /// On any host that fits a pattern; in lists of what is allowed.
        "hostPattern" => HostPattern(HostPatternSource),
        /// At any path that fits a pattern; in lists of what is allowed.
        "pathPattern" => PathPattern(PathPatternSource),
        /// In the settings themselves.
        "settings" => Settings(SettingsSource),
    }
}

crate::open_struct::open_struct! {
    /// A marketplace at an address.
    pub struct UrlSource in "source" {
        /// The address.
        url: "url" => String,
        /// Headers for the request.
        headers: "headers" => BTreeMap<String, String>,
        /// A command that writes headers for the request.
        headers_helper: "headersHelper" => String,
    }
}

crate::open_struct::open_struct! {
    /// A marketplace on GitHub.
    pub struct GithubSource in "source" {
        /// Owner and name.
        repo: "repo" => String,
        /// Branch or tag.
        reference: "ref" => String,
        /// The path in the repository.
        path: "path" => String,
        /// Directories to check out; all if absent.
        sparse_paths: "sparsePaths" => Vec<String>,
        /// Whether to leave out large files that git keeps elsewhere.
        skip_lfs: "skipLfs" => bool,
    }
}

crate::open_struct::open_struct! {
    /// A marketplace in a git repository.
    pub struct GitSource in "source" {
        /// The repository.
        url: "url" => String,
        /// Branch or tag.
        reference: "ref" => String,
        /// The path in the repository.
        path: "path" => String,
        /// Directories to check out; all if absent.
        sparse_paths: "sparsePaths" => Vec<String>,
        /// Whether to leave out large files that git keeps elsewhere.
        skip_lfs: "skipLfs" => bool,
    }
}

crate::open_struct::open_struct! {
    /// An npm package.
    pub struct NpmSource in "source" {
        /// The package.
        package: "package" => String,
        /// The package's version.
        version: "version" => String,
        /// The registry, if not the usual one.
        registry: "registry" => String,
    }
}

crate::open_struct::open_struct! {
    /// A marketplace on this machine.
    pub struct PathSource in "source" {
        /// The path.
        path: "path" => String,
    }
}

crate::open_struct::open_struct! {
    /// A marketplace that its kind says everything about.
    pub struct EmptySource in "source" {
    }
}

crate::open_struct::open_struct! {
    /// A pattern of hosts.
    pub struct HostPatternSource in "source" {
        /// The pattern, a regular expression.
        host_pattern: "hostPattern" => String,
    }
}

crate::open_struct::open_struct! {
    /// A pattern of paths.
    pub struct PathPatternSource in "source" {
        /// The pattern, a regular expression.
        path_pattern: "pathPattern" => String,
    }
}

crate::open_struct::open_struct! {
    /// A marketplace that is in the settings themselves.
    pub struct SettingsSource in "source" {
        /// The marketplace's name.
        name: "name" => String,
        /// The marketplace's plugins.
        plugins: "plugins" => Vec<InlinePlugin>,
        /// The owner of the marketplace.
        owner: "owner" => MarketplaceOwner,
    }
}

crate::open_struct::open_struct! {
    /// The owner of a marketplace.
    pub struct MarketplaceOwner {
        /// The owner's name.
        name: "name" => String,
        /// The owner's e-mail address.
        email: "email" => String,
        /// The owner's web page.
        url: "url" => String,
    }
}

crate::open_struct::open_struct! {
    /// A plugin of a marketplace in the settings.
    pub struct InlinePlugin {
        /// The plugin's name.
        name: "name" => String,
        /// The source of the plugin.
        source: "source" => InlinePluginSource,
        /// What the plugin is for.
        description: "description" => String,
        /// The plugin's version.
        version: "version" => String,
        /// Whether the plugin must have a manifest of its own.
        strict: "strict" => bool,
        /// What the plugin needs to run.
        engines: "engines" => BTreeMap<String, RawJson>,
        /// Headers for the request.
        headers: "headers" => BTreeMap<String, String>,
        /// A command that writes headers for the request.
        headers_helper: "headersHelper" => String,
    }
}

/// Where a plugin of a marketplace in the settings is.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum InlinePluginSource {
    /// A path.
    Path(String),
    /// A place to fetch the plugin from.
    Fetched(PluginSource),
    /// Anything else, as it came.
    Unknown(RawJson),
}

crate::shape::by_shape!(InlinePluginSource {
    String => Path,
    Object => Fetched,
});

crate::wire_enum! {
    /// Where a plugin is fetched from.
    pub enum PluginSource by "source" {
        /// From an npm package.
        "npm" => Npm(NpmSource),
        /// From a git repository.
        "url" => Url(GitPluginSource),
        /// From GitHub.
        "github" => Github(GithubPluginSource),
        /// From a directory of a git repository.
        "git-subdir" => GitSubdir(GitSubdirSource),
        /// From an archive.
        "archive" => Archive(ArchiveSource),
        /// From what a command makes.
        "command" => Command(CommandSource),
        /// From a source that the CLI did not understand.
        "unsupported" => Unsupported(UnsupportedSource),
    }
}

crate::open_struct::open_struct! {
    /// A plugin in a git repository.
    pub struct GitPluginSource in "source" {
        /// The repository.
        url: "url" => String,
        /// Branch or tag.
        reference: "ref" => String,
        /// The commit.
        sha: "sha" => String,
    }
}

crate::open_struct::open_struct! {
    /// A plugin on GitHub.
    pub struct GithubPluginSource in "source" {
        /// Owner and name.
        repo: "repo" => String,
        /// Branch or tag.
        reference: "ref" => String,
        /// The commit.
        sha: "sha" => String,
    }
}

crate::open_struct::open_struct! {
    /// A plugin in a directory of a git repository.
    pub struct GitSubdirSource in "source" {
        /// The repository.
        url: "url" => String,
        /// The directory.
        path: "path" => String,
        /// Branch or tag.
        reference: "ref" => String,
        /// The commit.
        sha: "sha" => String,
    }
}

crate::open_struct::open_struct! {
    /// A plugin in an archive.
    pub struct ArchiveSource in "source" {
        /// The archive.
        url: "url" => String,
        /// The archive's hash.
        sha256: "sha256" => String,
    }
}

crate::open_struct::open_struct! {
    /// A plugin that a command makes.
    pub struct CommandSource in "source" {
        /// The command.
        command: "command" => String,
        /// How long the command may run, in seconds.
        timeout: "timeout" => serde_json::Number,
        /// Whether the CLI copies or links what the command makes: `copy` or `link`.
        mode: "mode" => String,
    }
}

crate::open_struct::open_struct! {
    /// A plugin whose source the CLI did not understand.
    pub struct UnsupportedSource in "source" {
        /// Why the source is not supported.
        error: "error" => String,
    }
}

/// Whether a plugin is on.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum PluginEnabled {
    /// The plugin is on or off.
    Flag(bool),
    /// A list of versions. The CLI accepts it but leaves a marketplace's plugin off.
    Versions(Vec<String>),
    /// Anything else, as it came.
    Unknown(RawJson),
}

crate::shape::by_shape!(PluginEnabled {
    Bool => Flag,
    Array => Versions,
});

crate::open_struct::open_struct! {
    /// What the user set for a plugin.
    pub struct PluginOptions {
        /// Values for the plugin's MCP servers, by server.
        mcp_servers: "mcpServers" => BTreeMap<String, BTreeMap<String, RawJson>>,
        /// Values for the plugin's own options.
        options: "options" => BTreeMap<String, RawJson>,
    }
}

crate::open_struct::open_struct! {
    /// A plugin that may push messages into sessions.
    pub struct ChannelPlugin {
        /// The marketplace.
        marketplace: "marketplace" => String,
        /// The plugin.
        plugin: "plugin" => String,
    }
}
