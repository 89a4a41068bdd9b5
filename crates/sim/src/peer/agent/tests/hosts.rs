//! What a host sets up around a session.

use super::*;

#[tokio::test(start_paused = true)]
async fn agents_of_files_are_listed() {
    let home = tempfile::tempdir().unwrap();
    let agents = home.path().join("agents");
    std::fs::create_dir(&agents).unwrap();
    let reviewer = "---\nname: reviewer\ndescription: Reviews\n---\nReview.\n";
    std::fs::write(agents.join("reviewer.md"), reviewer).unwrap();
    std::fs::write(agents.join("none.md"), "no head\n").unwrap();
    let agent = Agent::builder().config_dir(home.path()).setting_sources(["user"]);
    let mut hand = Hand::ready(agent).await;
    hand.prompt("%say hi").await;
    let init = hand.until("system/init").await;
    let listed = init["agents"].as_array().unwrap();
    assert!(
        listed.contains(&json!("reviewer")) && !listed.contains(&json!("none")),
        "{listed:?}"
    );
    hand.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_result_says_that_a_person_wrote_the_prompt() {
    let mut hand = Hand::ready(Agent::builder()).await;
    for (origin, told) in [
        (json!({"kind": "human", "more": 1}), json!({"kind": "human"})),
        (json!({"kind": "channel", "server": "x"}), json!(null)),
    ] {
        hand.prompt_with("%say hi", json!({"origin": origin})).await;
        assert_eq!(hand.until("result/success").await["origin"], told);
    }
    hand.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_old_name_takes_the_tool_for_agents_away() {
    let mut hand = Hand::ready(Agent::builder().disallowed_tools(["Task"])).await;
    hand.prompt("%tool Agent {\"description\": \"x\", \"prompt\": \"%say hi\"}\n%say done")
        .await;
    let result = hand.until("user").await;
    assert!(
        result.to_string().contains("No such tool available: Agent"),
        "{result}"
    );
    hand.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_byte_order_mark_is_no_harm() {
    let mut hand = Hand::ready(Agent::builder()).await;
    hand.write("\u{feff}{\"type\": \"keep_alive\"}").await;
    hand.prompt("%say hi").await;
    hand.until("result/success").await;
    hand.end().await;
}
