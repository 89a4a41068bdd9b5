//! The shortest way through.

use outrigger::{Policy, Verdict};

use super::rig::{Rig, turn};

#[tokio::test(flavor = "multi_thread")]
async fn several_turns_in_one_process_and_a_clean_end() {
    let rig = Rig::start().await;
    let session = rig.session().await;
    for number in 0..3 {
        let (seen, outcome) = turn(&session, &format!("%say answer {number}")).await;
        assert_eq!(seen, [format!("text answer {number}")]);
        assert_eq!(
            (outcome.verdict(), outcome.result_text()),
            (&Verdict::Completed, format!("answer {number}").as_str())
        );
        assert!(
            outcome.cost() > 0.0 && outcome.usage().by_model.len() == 1,
            "{:?}",
            outcome.usage()
        );
    }
    assert_eq!(session.ids().len(), 1);
    let stats = session.stats();
    assert_eq!(
        (stats.misfits, stats.unknown.len(), stats.unanswered_by_us),
        (0, 0, 0),
        "{stats:?}"
    );
    assert_eq!(session.close().await.unwrap().code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_policy_is_asked_and_obeyed() {
    let rig = Rig::start().await;
    let session = rig
        .options()
        .permissions(Policy::allow_list(["Bash"]))
        .start()
        .await
        .unwrap();
    let (seen, _) = turn(&session, "%tool Bash {\"command\":\"touch made.txt\"}\n%say done").await;
    assert_eq!(seen, ["use Bash", "result ok", "text done"]);
    assert!(rig.sandbox().project().join("made.txt").exists());
    session.close().await.unwrap();

    let session = rig
        .options()
        .permissions(Policy::read_only())
        .start()
        .await
        .unwrap();
    let (seen, outcome) = turn(
        &session,
        "%tool Bash {\"command\":\"touch other.txt\"}\n%say done",
    )
    .await;
    assert_eq!(
        (seen, outcome.verdict()),
        (
            vec!["use Bash".into(), "result error".into(), "text done".into()],
            &Verdict::Completed
        )
    );
    assert!(!rig.sandbox().project().join("other.txt").exists());
    session.close().await.unwrap();
}
