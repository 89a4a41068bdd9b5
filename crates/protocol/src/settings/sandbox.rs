//! The sandbox that shell commands run in.
// Written by `cargo xtask types` from what upstream declares and upstream/settings/sandbox.toml: change that instead.

use std::collections::BTreeMap;

crate::open_struct::open_struct! {
    /// Whether and how shell commands are confined.
    pub struct SandboxSettings {
        /// Whether shell commands are confined; false if absent.
        enabled: "enabled" => bool,
        /// Whether the CLI refuses to start without the sandbox. If false or absent, commands run unconfined where the sandbox is
        /// not available.
        fail_if_unavailable: "failIfUnavailable" => bool,
        /// Whether confined commands run without a permission request.
        auto_allow_bash_if_sandboxed: "autoAllowBashIfSandboxed" => bool,
        /// Whether the model may request that a command runs unconfined.
        allow_unsandboxed_commands: "allowUnsandboxedCommands" => bool,
        /// What commands may reach.
        network: "network" => SandboxNetworkSettings,
        /// What commands may read and write.
        filesystem: "filesystem" => SandboxFilesystemSettings,
        /// Secrets that commands must not see.
        credentials: "credentials" => SandboxCredentialSettings,
        /// Paths whose violations are not reported, by command pattern; `*` is every command.
        ignore_violations: "ignoreViolations" => BTreeMap<String, Vec<String>>,
        /// Whether the sandbox has no `/proc` of its own, for containers that cannot have one. Linux; less secure.
        enable_weaker_nested_sandbox: "enableWeakerNestedSandbox" => bool,
        /// Whether commands may make user namespaces. Linux.
        allow_nested_user_namespaces: "allowNestedUserNamespaces" => bool,
        /// Whether commands may use the system's trust service for certificates. macOS; less secure.
        enable_weaker_network_isolation: "enableWeakerNetworkIsolation" => bool,
        /// Whether commands may send Apple Events. macOS; less secure.
        allow_apple_events: "allowAppleEvents" => bool,
        /// Patterns of commands that run unconfined.
        excluded_commands: "excludedCommands" => Vec<String>,
        /// The ripgrep to use.
        ripgrep: "ripgrep" => SandboxRipgrep,
        /// The bubblewrap to use, as an absolute path. Linux; only heeded from managed settings.
        bwrap_path: "bwrapPath" => String,
        /// The socat to use, as an absolute path. Linux; only heeded from managed settings.
        socat_path: "socatPath" => String,
    }
}

crate::open_struct::open_struct! {
    /// What confined commands may reach.
    pub struct SandboxNetworkSettings {
        /// Domains that commands may reach.
        allowed_domains: "allowedDomains" => Vec<String>,
        /// Domains that commands may not reach, even if allowed.
        denied_domains: "deniedDomains" => Vec<String>,
        /// Whether other domains are denied without a permission request.
        strict_allowlist: "strictAllowlist" => bool,
        /// Whether only the domains of managed settings count.
        allow_managed_domains_only: "allowManagedDomainsOnly" => bool,
        /// Unix sockets that commands may use.
        allow_unix_sockets: "allowUnixSockets" => Vec<String>,
        /// Whether commands may use all Unix sockets.
        allow_all_unix_sockets: "allowAllUnixSockets" => bool,
        /// Whether commands may listen on local ports.
        allow_local_binding: "allowLocalBinding" => bool,
        /// Mach services that commands may look up. macOS.
        allow_mach_lookup: "allowMachLookup" => Vec<String>,
        /// The port of the user's HTTP proxy, which the commands' requests go through.
        http_proxy_port: "httpProxyPort" => u16,
        /// The port of the user's SOCKS proxy, which the commands' requests go through.
        socks_proxy_port: "socksProxyPort" => u16,
        /// Decrypts HTTPS to inspect it. With an empty object the CLI uses a certificate authority of its own.
        tls_terminate: "tlsTerminate" => SandboxTlsTerminate,
    }
}

crate::open_struct::open_struct! {
    /// The certificate authority that decrypts HTTPS.
    pub struct SandboxTlsTerminate {
        /// The certificate of the authority.
        ca_cert_path: "caCertPath" => String,
        /// The key of the authority.
        ca_key_path: "caKeyPath" => String,
    }
}

crate::open_struct::open_struct! {
    /// What confined commands may read and write.
    pub struct SandboxFilesystemSettings {
        /// Paths that commands may write besides the working directories.
        allow_write: "allowWrite" => Vec<String>,
        /// Paths that commands may not write.
        deny_write: "denyWrite" => Vec<String>,
        /// Paths that commands may not read.
        deny_read: "denyRead" => Vec<String>,
        /// Paths that commands may read although a directory above them is denied.
        allow_read: "allowRead" => Vec<String>,
        /// Whether only the readable paths of managed settings count.
        allow_managed_read_paths_only: "allowManagedReadPathsOnly" => bool,
        /// Whether only the network is confined, and not the file system. macOS and Linux.
        disabled: "disabled" => bool,
    }
}

crate::open_struct::open_struct! {
    /// Secrets that confined commands must not see.
    pub struct SandboxCredentialSettings {
        /// Files with secrets.
        files: "files" => Vec<SandboxCredentialFile>,
        /// Environment variables with secrets.
        env_vars: "envVars" => Vec<SandboxCredentialEnvVar>,
        /// Whether secrets may be put into unencrypted requests.
        allow_plaintext_inject: "allowPlaintextInject" => bool,
        /// Environment variables that make up AWS credentials.
        aws_pairs: "awsPairs" => Vec<SandboxAwsPair>,
        /// What becomes of kinds of AWS signatures that cannot be made anew.
        sigv4: "sigv4" => SandboxSigv4,
    }
}

crate::open_struct::open_struct! {
    /// A file with a secret.
    pub struct SandboxCredentialFile {
        /// The file.
        path: "path" => String,
        /// What commands see instead.
        mode: "mode" => SandboxCredentialMode,
        /// A regular expression that finds the secret in the file.
        extract: "extract" => String,
        /// What the CLI does if the expression finds nothing: `warn`, `deny` or `error`.
        on_extract_no_match: "onExtractNoMatch" => String,
        /// How the secret is encoded: `jwt`.
        decode: "decode" => String,
        /// Claims of the token that are secret too.
        mask_claims: "maskClaims" => Vec<String>,
        /// Whether other places of the same secret in the file are masked too.
        mask_duplicates: "maskDuplicates" => bool,
        /// Hosts to which the true secret is sent.
        inject_hosts: "injectHosts" => Vec<String>,
    }
}

crate::open_struct::open_struct! {
    /// An environment variable with a secret.
    pub struct SandboxCredentialEnvVar {
        /// The variable.
        name: "name" => String,
        /// What commands see instead.
        mode: "mode" => SandboxCredentialMode,
        /// A regular expression that finds the secret in the value.
        extract: "extract" => String,
        /// What the CLI does if the expression finds nothing: `warn`, `deny` or `error`.
        on_extract_no_match: "onExtractNoMatch" => String,
        /// How the secret is encoded: `jwt`.
        decode: "decode" => String,
        /// Claims of the token that are secret too.
        mask_claims: "maskClaims" => Vec<String>,
        /// Hosts to which the true secret is sent.
        inject_hosts: "injectHosts" => Vec<String>,
    }
}

crate::open_enum! {
    /// What commands see instead of a secret.
    pub enum SandboxCredentialMode {
        /// Commands do not see the credential.
        Deny = "deny",
        /// Commands see a stand-in instead of the credential.
        Mask = "mask",
    }
}

crate::open_struct::open_struct! {
    /// Environment variables that make up AWS credentials.
    pub struct SandboxAwsPair {
        /// The variable with the key's id.
        access_key_id_var: "accessKeyIdVar" => String,
        /// The variable with the key.
        secret_access_key_var: "secretAccessKeyVar" => String,
        /// The variable with the session token.
        session_token_var: "sessionTokenVar" => String,
    }
}

crate::open_struct::open_struct! {
    /// What happens to requests whose AWS signature the CLI cannot compute again: `deny` or `passthrough`.
    pub struct SandboxSigv4 {
        /// Requests whose body is a stream.
        streaming: "streaming" => String,
        /// Requests with the signature in their address.
        presigned: "presigned" => String,
        /// Those of version 4a.
        sigv4a: "sigv4a" => String,
    }
}

crate::open_struct::open_struct! {
    /// A ripgrep to use instead of the CLI's own.
    pub struct SandboxRipgrep {
        /// The program.
        command: "command" => String,
        /// Arguments in front of the CLI's own.
        args: "args" => Vec<String>,
    }
}
