//! Sessions, approvals and tokens as resources.

use outrigger_host_http::{Limits, Scope, Tokens};
use serde_json::json;

use crate::rig::{Rig, S, answer, decision, host_with, prompt};

#[tokio::test]
async fn a_session_is_created_once_listed_changed_and_removed() {
    let rig = Rig::new(Limits::default()).await;
    let body = json!({"cwd": rig.dir.path(), "title": "one"});
    let head = format!(
        "POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Idempotency-Key: k",
        rig.token
    );
    let first = rig.raw(&head, &body.to_string()).await;
    assert_eq!(first.status, 201, "{first:?}");
    let id = first.body["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/sessions/{id}");
    let changed = rig.json("PATCH", &path, &json!({"title": "two"})).await;
    assert_eq!(changed.body["title"], "two");
    // Repeated, also after a change.
    let again = rig.raw(&head, &body.to_string()).await;
    assert_eq!(
        (again.status, &again.body["id"], &again.body["title"]),
        (201, &json!(id), &json!("two"))
    );
    let other = rig
        .raw(&head, &json!({"cwd": rig.dir.path(), "title": "x"}).to_string())
        .await;
    assert_eq!((other.status, other.problem()), (409, "reused"));

    let mut listed = Vec::new();
    let mut after = String::new();
    loop {
        let page = rig.get(&format!("/v1/sessions?limit=1{after}")).await.body;
        listed.extend(
            page["sessions"]
                .as_array()
                .unwrap()
                .iter()
                .map(|session| session["id"].clone()),
        );
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    let mut expected = [json!(S), json!(id)];
    expected.sort_by_key(|id| id.to_string());
    assert_eq!(listed, expected);

    // What the policy does not allow.
    for (method, path, body) in [
        ("POST", "/v1/sessions", json!({"cwd": "/"})),
        ("POST", "/v1/sessions", json!({"cwd": rig.dir.path().join("..")})),
        (
            "POST",
            "/v1/sessions",
            json!({"cwd": rig.dir.path(), "model": "opus"}),
        ),
        ("PATCH", &*path, json!({"permission_mode": "bypassPermissions"})),
    ] {
        let refused = rig.json(method, path, &body).await;
        assert_eq!((refused.status, refused.problem()), (403, "forbidden"), "{body}");
    }
    let unknown = rig.json("PATCH", &path, &json!({"cwd": "/"})).await;
    assert_eq!(unknown.problem(), "invalid-request");

    for (action, state) in [("interrupt", "idle"), ("stop", "idle"), ("archive", "ended")] {
        let done = rig.json("POST", &format!("{path}/{action}"), &json!({})).await;
        assert_eq!(
            (done.status, &done.body["state"]),
            (200, &json!(state)),
            "{action}"
        );
    }
    let resumed = rig.json("POST", &format!("{path}/resume"), &json!({})).await;
    assert_eq!((resumed.status, resumed.problem()), (409, "archived"));
    assert_eq!(rig.json("DELETE", &path, &json!({})).await.status, 204);
    assert_eq!(rig.get(&path).await.problem(), "unknown-session");
    assert_eq!(
        rig.json("DELETE", &format!("/v1/sessions/{S}"), &json!({}))
            .await
            .status,
        204
    );
}

#[tokio::test]
async fn the_inbox_has_what_waits_and_the_first_decision_counts() {
    let rig = Rig::new(Limits::default()).await;
    let ask = "%tool Write {\"file_path\":\"a.txt\",\"content\":\"x\"}";
    rig.post(S, &[prompt("a", ask)]).await;
    rig.until(0, |event| event["payload"]["type"] == "approval_opened")
        .await;
    let inbox = rig.get("/v1/approvals?state=pending").await.body;
    assert_eq!(
        (inbox["approvals"].as_array().unwrap().len(), &inbox["next"]),
        (1, &json!(null))
    );
    let approval = &inbox["approvals"][0];
    assert_eq!(
        (&approval["kind"], &approval["session_id"]),
        (&json!("tool"), &json!(S))
    );
    let path = format!("/v1/approvals/{}", approval["id"].as_str().unwrap());
    let nonsense = rig
        .json("POST", &format!("{path}/decision"), &json!({"action": "accept"}))
        .await;
    assert_eq!(nonsense.problem(), "invalid-request");
    let decided = rig
        .json("POST", &format!("{path}/decision"), &answer("allow"))
        .await;
    assert_eq!((decided.status, &decided.body["state"]), (200, &json!("allowed")));
    assert_eq!(decided.body["decided_by"], "ada");
    // The same caller may repeat it; another decision is too late.
    let again = rig
        .json("POST", &format!("{path}/decision"), &answer("allow"))
        .await;
    assert_eq!(again.status, 200);
    let late = rig
        .json("POST", &format!("{path}/decision"), &answer("deny"))
        .await;
    assert_eq!((late.status, late.problem()), (409, "too-late"));
    assert_eq!(late.body["approval"]["decided_by"], "ada");
    let done = rig
        .until(0, |event| event["payload"].to_string().contains("tool_result"))
        .await;
    assert!(done["payload"].to_string().contains("File created"), "{done}");
    assert_eq!(
        rig.get("/v1/approvals?state=pending").await.body["approvals"],
        json!([])
    );
    assert_eq!(rig.get(&path).await.body["state"], "allowed");
    assert_eq!(
        rig.get("/v1/approvals?state=none").await.problem(),
        "invalid-request"
    );
}

#[tokio::test]
async fn tokens_are_issued_listed_revoked_and_survive_the_host() {
    let mut rig = Rig::new(Limits::default()).await;
    let issued = rig
        .json("POST", "/v1/tokens", &json!({"label": "bob", "scopes": ["read"]}))
        .await;
    assert_eq!(issued.status, 201);
    let bob = issued.body["token"].as_str().unwrap().to_owned();
    let listed = rig.get("/v1/tokens").await.body;
    assert!(!listed.to_string().contains(&bob) && listed.to_string().contains("bob"));
    // They are kept, and their text is not.
    let kept = Tokens::open(rig.host.event_log()).await.unwrap();
    kept.verify(&bob, std::time::SystemTime::now()).unwrap();
    let database = std::fs::read(rig.dir.path().join("host.db-wal")).unwrap();
    assert!(!database.windows(bob.len()).any(|part| part == bob.as_bytes()));

    let path = format!("/v1/tokens/{}", issued.body["id"].as_str().unwrap());
    assert_eq!(rig.json("DELETE", &path, &json!({})).await.status, 204);
    let ada = std::mem::replace(&mut rig.token, bob);
    assert_eq!(rig.get("/v1/sessions").await.problem(), "unauthorized");
    let kept = Tokens::open(rig.host.event_log()).await.unwrap();
    kept.verify(&rig.token, std::time::SystemTime::now()).unwrap_err();

    // The code of a first start is exchanged once.
    let code = rig.tokens.code().unwrap();
    for body in [json!({"code": ""}), json!({"code": "0".repeat(64)})] {
        assert_eq!(rig.json("POST", "/v1/tokens/exchange", &body).await.status, 401);
    }
    let first = rig
        .json("POST", "/v1/tokens/exchange", &json!({"code": code}))
        .await;
    assert_eq!(first.status, 201);
    rig.token = first.body["token"].as_str().unwrap().to_owned();
    assert_eq!(rig.get("/v1/tokens").await.status, 200);
    let second = rig
        .json("POST", "/v1/tokens/exchange", &json!({"code": code}))
        .await;
    assert_eq!((second.status, second.problem()), (401, "unauthorized"));
    rig.token = ada;
    assert_eq!(rig.get("/v1/tokens").await.status, 200);
}

#[tokio::test]
async fn metrics_and_readiness_say_how_the_host_is() {
    let rig = Rig::new(Limits::default()).await;
    let metrics = rig.text("/metrics").await;
    assert!(
        metrics.contains("outrigger_host_sessions{state=\"idle\"} 1\n"),
        "{metrics}"
    );
    for line in [
        "outrigger_host_spares 0\n",
        "outrigger_host_spares_claimed_total 0\n",
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }
    assert_eq!(rig.get("/readyz").await.status, 204);
    let document = rig.get("/openapi.json").await.body;
    assert_eq!(document, outrigger_host_http::openapi());
}

#[tokio::test]
async fn a_call_that_outlives_its_process_is_decided_over_http_and_once() {
    let dir = tempfile::tempdir().unwrap();
    let config = tempfile::tempdir().unwrap();
    let host = host_with(dir.path(), |policy| {
        let options = policy.options.clone().await_initialize(true);
        policy.options = options.env("CLAUDE_CONFIG_DIR", config.path().display().to_string());
        policy.deferred = Some("Bash".to_owned());
    })
    .await;
    let mut rig = Rig::over(dir, host, |front| front).await;
    let mut people = Vec::new();
    for name in ["bob", "cat", "dan", "eve"] {
        let scopes = [Scope::Read, Scope::Send, Scope::Approve];
        let (token, _) = rig.tokens.issue(name, scopes, None).await.unwrap();
        people.push((name, token.reveal().to_owned()));
    }
    let all = rig.token.clone();
    for round in 0..4 {
        rig.token.clone_from(&all);
        let made = rig
            .json("POST", "/v1/sessions", &json!({"cwd": rig.dir.path()}))
            .await;
        let session = made.body["id"].as_str().unwrap().to_owned();
        let mut events = rig.stream(&session, Some(0)).await;
        let asks = "%tool Bash {\"command\":\"true\",\"description\":\"x\"}\n%say done";
        rig.post(&session, &[prompt("a", asks)]).await;
        while events.next().await.unwrap().data["payload"]["type"] != "process_exited" {}
        let waiting = rig
            .get(&format!("/v1/approvals?state=pending&session={session}"))
            .await;
        let approval = &waiting.body["approvals"][0];
        assert_eq!(
            (&approval["deferred"], &approval["tool_name"]),
            (&json!(true), &json!("Bash"))
        );
        let (id, request) = (
            approval["id"].as_str().unwrap().to_owned(),
            approval["request_id"].as_str().unwrap().to_owned(),
        );
        // All at once, by both doors.
        let rig = &rig;
        let decisions = people.iter().enumerate().map(|(n, (_, token))| {
            let behavior = if (n + round) % 2 == 0 { "allow" } else { "deny" };
            let (id, request, session) = (&id, &request, &session);
            async move {
                if n < 2 {
                    let head = format!(
                        "POST /v1/approvals/{id}/decision HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
                         Content-Type: application/json"
                    );
                    let told = rig.raw(&head, &answer(behavior).to_string()).await;
                    (told.status == 200, told)
                } else {
                    let told = rig.post_with(token, session, &[decision(request, behavior)]).await;
                    assert_eq!(told.status, 202, "{told:?}");
                    (told.body["events"][0]["effect"] == "stored", told)
                }
            }
        });
        let told = futures_util::future::join_all(decisions).await;
        let winners: Vec<_> = (0..4).filter(|n| told[*n].0).collect();
        assert_eq!(winners.len(), 1, "{told:#?}");
        let first = people[winners[0]].0;
        for (n, (_, told)) in told.iter().enumerate() {
            if n == winners[0] {
                continue;
            }
            let by = match n {
                0 | 1 => {
                    assert_eq!((told.status, told.problem()), (409, "too-late"));
                    &told.body["approval"]["decided_by"]
                }
                _ => &told.body["events"][0]["decided_by"],
            };
            assert_eq!(by, first, "{told:?}");
        }
        while events.next().await.unwrap().data["payload"]["status"] != "processed" {}
        let behavior = if (winners[0] + round) % 2 == 0 {
            "allowed"
        } else {
            "denied"
        };
        let read = rig.get(&format!("/v1/approvals/{id}")).await.body;
        assert_eq!(
            (&read["state"], &read["decided_by"]),
            (&json!(behavior), &json!(first))
        );
        let log = rig
            .get(&format!(
                "/v1/sessions/{session}/events?types=decision_not_applied,approval_decided"
            ))
            .await;
        let kinds: Vec<_> = log.body["events"]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| event["payload"]["type"].clone())
            .collect();
        assert_eq!(kinds, ["approval_decided"]);
    }
}
