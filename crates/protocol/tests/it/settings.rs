//! Settings files: read, changed, merged and written back.

use outrigger_protocol::settings::*;
use outrigger_protocol::shared::JsonObject;
use outrigger_protocol::{RawJson, drift};

fn raw(text: &str) -> RawJson {
    RawJson::from_text(text).unwrap()
}

/// What `settings` and the sandbox `asked` become.
fn merged(settings: Option<&str>, asked: &str) -> String {
    let settings = settings.map(|text| JsonObject::try_from(raw(text)).unwrap());
    let asked: SandboxSettings = raw(asked).decode().unwrap();
    let merged = merge_sandbox(settings.as_ref(), &asked).unwrap();
    merged.get().to_owned()
}

/// Rows of (the sandbox in the settings, the sandbox that is asked for, what they become).
#[track_caller]
fn table(rows: &[(&str, &str, &str)]) {
    for (had, asked, expected) in rows {
        let got = merged(Some(&format!(r#"{{"sandbox":{had}}}"#)), asked);
        let expected = format!(r#"{{"sandbox":{expected}}}"#);
        // Order does not matter, and differs where `SandboxSettings` has an order of its own.
        assert_eq!(
            raw(&got).to_value().unwrap(),
            raw(&expected).to_value().unwrap(),
            "{had} and {asked}"
        );
    }
}

#[test]
fn a_sandbox_without_settings_is_settings() {
    assert_eq!(
        merged(None, r#"{"enabled":false}"#),
        r#"{"sandbox":{"enabled":false}}"#
    );
    assert_eq!(merged(Some("{}"), "{}"), r#"{"sandbox":{}}"#);
}

#[test]
fn the_other_settings_stay_as_they_are() {
    assert_eq!(
        merged(
            Some(r#"{"model":"\ud83d","n":1e999,"__proto__":{"x":1},"sandbox":{"x":1}}"#),
            r#"{"enabled":false}"#
        ),
        r#"{"model":"\ud83d","n":1e999,"__proto__":{"x":1},"sandbox":{"x":1,"enabled":false}}"#
    );
}

#[test]
fn a_sandbox_that_is_no_object_is_replaced() {
    table(&[
        ("5", r#"{"enabled":false}"#, r#"{"enabled":false}"#),
        ("null", r#"{"enabled":false}"#, r#"{"enabled":false}"#),
        ("[1]", r#"{"enabled":false}"#, r#"{"enabled":false}"#),
    ]);
}

#[test]
fn objects_are_merged_and_what_is_asked_for_wins() {
    table(&[
        (
            r#"{"enabled":true,"allowAppleEvents":true}"#,
            r#"{"enabled":false}"#,
            r#"{"enabled":false,"allowAppleEvents":true}"#,
        ),
        (
            r#"{"network":{"allowLocalBinding":true,"allowAllUnixSockets":true}}"#,
            r#"{"network":{"allowLocalBinding":false}}"#,
            r#"{"network":{"allowLocalBinding":false,"allowAllUnixSockets":true}}"#,
        ),
        (
            r#"{"ignoreViolations":{"a":["1"],"b":["2"]}}"#,
            r#"{"ignoreViolations":{"a":["3"]}}"#,
            r#"{"ignoreViolations":{"a":["3"],"b":["2"]}}"#,
        ),
        (
            r#"{"ignoreViolations":["x"]}"#,
            r#"{"ignoreViolations":{"a":["1"]}}"#,
            r#"{"ignoreViolations":{"a":["1"]}}"#,
        ),
        (r#"{"network":{"a":1}}"#, r#"{"network":5}"#, r#"{"network":5}"#),
        (
            r#"{"network":5}"#,
            r#"{"network":{"strictAllowlist":true}}"#,
            r#"{"network":{"strictAllowlist":true}}"#,
        ),
        (
            r#"{"allowAppleEvents":true}"#,
            r#"{"allowAppleEvents":null}"#,
            r#"{"allowAppleEvents":null}"#,
        ),
        (r#"{"zz":1}"#, r#"{"yy":2}"#, r#"{"zz":1,"yy":2}"#),
        (r#"{"a":1,"b":2,"a":3}"#, "{}", r#"{"a":3,"b":2}"#),
    ]);
}

#[test]
fn a_list_replaces_a_list() {
    for key in ["excludedCommands", "denyRead"] {
        table(&[(
            &format!(r#"{{"{key}":["a"]}}"#),
            &format!(r#"{{"{key}":["b"]}}"#),
            &format!(r#"{{"{key}":["b"]}}"#),
        )]);
    }
    for (outer, inner) in [
        ("network", "allowedDomains"),
        ("network", "allowUnixSockets"),
        ("filesystem", "allowWrite"),
        ("filesystem", "allowRead"),
    ] {
        table(&[(
            &format!(r#"{{"{outer}":{{"{inner}":["a"]}}}}"#),
            &format!(r#"{{"{outer}":{{"{inner}":["b"]}}}}"#),
            &format!(r#"{{"{outer}":{{"{inner}":["b"]}}}}"#),
        )]);
    }
}

#[test]
fn lists_of_refusals_are_united() {
    for (outer, inner) in [
        ("filesystem", "denyRead"),
        ("filesystem", "denyWrite"),
        ("network", "deniedDomains"),
    ] {
        let sandbox = |list: &str| format!(r#"{{"{outer}":{{"{inner}":{list}}}}}"#);
        table(&[
            (
                &sandbox(r#"["a","b","a"]"#),
                &sandbox(r#"["c","\u0061","c"]"#),
                &sandbox(r#"["a","b","c"]"#),
            ),
            // Only two lists are put together.
            (&sandbox(r#""a""#), &sandbox(r#"["b"]"#), &sandbox(r#"["b"]"#)),
            (&sandbox(r#"["a"]"#), &sandbox("null"), &sandbox("null")),
            (&sandbox(r#"["a","a"]"#), "{}", &sandbox(r#"["a","a"]"#)),
        ]);
    }
    table(&[
        (
            r#"{"credentials":{"files":[{"path":"a","mode":"deny"}]}}"#,
            r#"{"credentials":{"files":[{"path":"a","mode":"deny"},{"path":"b","mode":"mask"}]}}"#,
            r#"{"credentials":{"files":[{"path":"a","mode":"deny"},{"path":"a","mode":"deny"},{"path":"b","mode":"mask"}]}}"#,
        ),
        (
            r#"{"credentials":{"envVars":[{"name":"a","mode":"deny"}]}}"#,
            r#"{"credentials":{"envVars":[{"name":"a","mode":"mask"}]}}"#,
            r#"{"credentials":{"envVars":[{"name":"a","mode":"deny"},{"name":"a","mode":"mask"}]}}"#,
        ),
        (
            r#"{"credentials":{"awsPairs":[{"accessKeyIdVar":"a","secretAccessKeyVar":"b"}]}}"#,
            r#"{"credentials":{"awsPairs":[{"accessKeyIdVar":"c","secretAccessKeyVar":"d"}]}}"#,
            r#"{"credentials":{"awsPairs":[{"accessKeyIdVar":"c","secretAccessKeyVar":"d"}]}}"#,
        ),
    ]);
}

#[test]
fn parts_that_belong_together_are_replaced_whole() {
    table(&[
        (
            r#"{"ripgrep":{"command":"rg","args":["-x"]}}"#,
            r#"{"ripgrep":{"command":"rg2"}}"#,
            r#"{"ripgrep":{"command":"rg2"}}"#,
        ),
        (
            r#"{"network":{"tlsTerminate":{"caCertPath":"a","caKeyPath":"b"}}}"#,
            r#"{"network":{"tlsTerminate":{"caCertPath":"c"}}}"#,
            r#"{"network":{"tlsTerminate":{"caCertPath":"c"}}}"#,
        ),
        // The same names elsewhere are merged.
        (
            r#"{"network":{"ripgrep":{"a":1}}}"#,
            r#"{"network":{"ripgrep":{"b":1}}}"#,
            r#"{"network":{"ripgrep":{"a":1,"b":1}}}"#,
        ),
    ]);
}

#[test]
fn an_inherited_open_file_system_gives_way() {
    let open = r#"{"filesystem":{"disabled":true}}"#;
    table(&[
        (open, r#"{"filesystem":{}}"#, r#"{"filesystem":{}}"#),
        (
            open,
            r#"{"filesystem":{"allowWrite":["a"]}}"#,
            r#"{"filesystem":{"allowWrite":["a"]}}"#,
        ),
        (open, r#"{"filesystem":{"disabled":true}}"#, open),
        (open, r#"{"filesystem":null}"#, r#"{"filesystem":null}"#),
        (
            open,
            r#"{"credentials":{"files":[{"path":"a","mode":"mask"},5,{"path":"b","mode":"deny"}]}}"#,
            r#"{"filesystem":{},"credentials":{"files":[{"path":"a","mode":"mask"},5,{"path":"b","mode":"deny"}]}}"#,
        ),
        (
            open,
            r#"{"credentials":{"files":[{"path":"a","mode":"mask"}]}}"#,
            r#"{"filesystem":{"disabled":true},"credentials":{"files":[{"path":"a","mode":"mask"}]}}"#,
        ),
        (
            open,
            r#"{"credentials":{"envVars":[{"name":"a","mode":"deny"}]}}"#,
            r#"{"filesystem":{"disabled":true},"credentials":{"envVars":[{"name":"a","mode":"deny"}]}}"#,
        ),
        (
            r#"{"filesystem":{"disabled":true},"credentials":{"files":[{"path":"a","mode":"deny"}]}}"#,
            r#"{"enabled":false}"#,
            r#"{"filesystem":{"disabled":true},"credentials":{"files":[{"path":"a","mode":"deny"}]},"enabled":false}"#,
        ),
        (
            r#"{"filesystem":{"disabled":false}}"#,
            r#"{"filesystem":{"denyRead":["a"]}}"#,
            r#"{"filesystem":{"disabled":false,"denyRead":["a"]}}"#,
        ),
        (
            r#"{"filesystem":{"disabled":"yes"}}"#,
            r#"{"filesystem":{}}"#,
            r#"{"filesystem":{"disabled":"yes"}}"#,
        ),
    ]);
}

#[test]
fn inherited_proxy_ports_give_way_to_limits_on_domains() {
    let ports = r#"{"network":{"httpProxyPort":1,"socksProxyPort":2}}"#;
    for limit in [
        r#""allowedDomains":["a"]"#,
        r#""allowedDomains":[]"#,
        r#""allowedDomains":null"#,
        r#""deniedDomains":["a"]"#,
        r#""deniedDomains":"a""#,
        r#""strictAllowlist":true"#,
    ] {
        let asked = format!(r#"{{"network":{{{limit}}}}}"#);
        table(&[(ports, &asked, &asked)]);
    }
    for no_limit in [
        r#""deniedDomains":[]"#,
        r#""deniedDomains":null"#,
        r#""strictAllowlist":false"#,
        r#""strictAllowlist":"yes""#,
        r#""allowManagedDomainsOnly":true"#,
        r#""allowLocalBinding":true"#,
        r#""tlsTerminate":{}"#,
    ] {
        let asked = format!(r#"{{"network":{{{no_limit}}}}}"#);
        let kept = format!(r#"{{"network":{{"httpProxyPort":1,"socksProxyPort":2,{no_limit}}}}}"#);
        table(&[(ports, &asked, &kept)]);
    }
    let own = r#"{"network":{"allowedDomains":["a"],"httpProxyPort":9}}"#;
    table(&[(ports, own, own)]);
}

#[test]
fn a_sandbox_that_is_asked_for_must_be_there() {
    table(&[
        (
            "{}",
            r#"{"enabled":true}"#,
            r#"{"enabled":true,"failIfUnavailable":true}"#,
        ),
        (
            "{}",
            r#"{"enabled":true,"failIfUnavailable":false}"#,
            r#"{"enabled":true,"failIfUnavailable":false}"#,
        ),
        (
            r#"{"failIfUnavailable":false}"#,
            r#"{"enabled":true}"#,
            r#"{"failIfUnavailable":false,"enabled":true}"#,
        ),
        (
            r#"{"failIfUnavailable":null}"#,
            r#"{"enabled":true}"#,
            r#"{"failIfUnavailable":null,"enabled":true}"#,
        ),
        // Only what the program itself asks for counts.
        (r#"{"enabled":true}"#, "{}", r#"{"enabled":true}"#),
        ("{}", r#"{"enabled":"yes"}"#, r#"{"enabled":"yes"}"#),
    ]);
}

#[test]
fn prototype_keys_are_not_merged() {
    table(&[
        (
            r#"{"a":1}"#,
            r#"{"__proto__":{"x":1},"constructor":{"y":1},"prototype":{"z":1},"enabled":false}"#,
            r#"{"a":1,"enabled":false}"#,
        ),
        (
            r#"{"network":{"__proto__":{"x":1},"a":1}}"#,
            r#"{"network":{"b":1,"__proto__":{"q":1},"constructor":3}}"#,
            r#"{"network":{"__proto__":{"x":1},"a":1,"b":1}}"#,
        ),
        // What has nothing to be merged with is taken as it is.
        (
            "{}",
            r#"{"network":{"constructor":3,"b":1}}"#,
            r#"{"network":{"constructor":3,"b":1}}"#,
        ),
    ]);
}

/// A value for each key, with nested objects, as the published types have them.
const EVERY_KEY: &str = include_str!("../fixtures/settings.json");

#[test]
fn every_documented_key_has_a_field_and_is_written_back() {
    let file = raw(EVERY_KEY.trim());
    let (settings, drift) = drift::watch(|| file.decode::<Settings>().unwrap());
    assert_eq!(
        drift.iter().map(ToString::to_string).collect::<Vec<_>>(),
        Vec::<String>::new()
    );
    assert_eq!(settings.extra.keys().collect::<Vec<_>>(), Vec::<&String>::new());
    let written = RawJson::encode(&settings).unwrap();
    assert_eq!(written.to_value().unwrap(), file.to_value().unwrap());
    let keys: std::collections::BTreeMap<String, RawJson> = file.decode().unwrap();
    assert_eq!(keys.len(), Settings::KNOWN.len());
    assert_eq!(Settings::KNOWN.len(), 185);
}

#[test]
fn what_has_no_field_or_does_not_fit_is_written_back() {
    let text = r#"{"permissions":{"allow":["Read"],"new":"\ud83d"},"cleanupPeriodDays":"soon","future":[1e999],"model":null}"#;
    let settings: Settings = raw(text).decode().unwrap();
    assert_eq!(
        settings.permissions.as_ref().unwrap().allow.as_deref().unwrap(),
        ["Read"]
    );
    assert_eq!(settings.cleanup_period_days, None);
    assert_eq!(
        RawJson::encode(&settings).unwrap().get(),
        r#"{"permissions":{"allow":["Read"],"new":"\ud83d"},"cleanupPeriodDays":"soon","future":[1e999],"model":null}"#
    );
}

#[test]
fn a_field_that_is_set_replaces_what_did_not_fit() {
    let mut settings: Settings = raw(r#"{"cleanupPeriodDays":"soon","model":null}"#)
        .decode()
        .unwrap();
    settings.cleanup_period_days = Some(7.into());
    settings.model = Some("opus".to_owned());
    assert_eq!(
        RawJson::encode(&settings).unwrap().get(),
        r#"{"cleanupPeriodDays":7,"model":"opus"}"#
    );
}

#[test]
fn a_hook_of_an_unknown_kind_is_kept() {
    let text =
        r#"{"hooks":{"Stop":[{"hooks":[{"type":"dance","x":1},{"type":"command","command":"a","new":2}]}]}}"#;
    let settings: Settings = raw(text).decode().unwrap();
    let hooks = settings.hooks.as_ref().unwrap()["Stop"][0]
        .hooks
        .as_ref()
        .unwrap();
    assert!(matches!(hooks[0], HookHandler::Unknown(_)));
    assert!(matches!(&hooks[1], HookHandler::Command(hook) if hook.command.as_deref() == Some("a")));
    let written = RawJson::encode(&settings).unwrap();
    assert_eq!(written.to_value().unwrap(), raw(text).to_value().unwrap());
}

#[test]
fn keys_of_several_shapes_are_read_in_each() {
    let text = r#"{"attribution":{"commit":""},"strictPluginOnlyCustomization":["hooks"],"forceLoginOrgUUID":["a"],"enabledPlugins":{"a@b":true,"c@d":["1"],"e@f":{}},"modelSettings":{"m":{"autoCompactWindow":9}}}"#;
    let settings: Settings = raw(text).decode().unwrap();
    assert!(
        matches!(&settings.attribution, Some(Attribution::Texts(texts)) if texts.commit.as_deref() == Some(""))
    );
    assert!(matches!(
        &settings.strict_plugin_only_customization,
        Some(PluginOnly::Surfaces(_))
    ));
    assert!(matches!(&settings.force_login_org_uuid, Some(OneOrMany::Many(_))));
    let plugins = settings.enabled_plugins.as_ref().unwrap();
    assert!(matches!(plugins["a@b"], PluginEnabled::Flag(true)));
    assert!(matches!(plugins["c@d"], PluginEnabled::Versions(_)));
    assert!(matches!(plugins["e@f"], PluginEnabled::Unknown(_)));
    let model = &settings.model_settings.as_ref().unwrap()["m"];
    assert!(matches!(
        model.auto_compact_window,
        Some(AutoCompactWindow::Tokens(9))
    ));
    let written = RawJson::encode(&settings).unwrap();
    assert_eq!(written.to_value().unwrap(), raw(text).to_value().unwrap());
}
