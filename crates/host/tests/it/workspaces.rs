//! Git worktrees for sessions, and what turns change.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use outrigger::SessionId;
use outrigger::protocol::shared::PermissionMode;
use outrigger_host::{
    CleanUp, DiffFrom, HostError, HostPolicy, NewSession, NewWorktree, SessionRecord, SessionState,
    WorkspacePolicy,
};
use serde_json::json;
use uuid::Uuid;

use crate::place::{PATIENCE, Place, processed, say, until, user};

fn git(directory: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=Ada",
            "-c",
            "user.email=ada@example.org",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(args)
        .current_dir(directory)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "git {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A place whose sessions may write, with a repository `shop` and a directory for worktrees that is in no root.
struct Shop {
    place: Place,
    shop: PathBuf,
    trees: tempfile::TempDir,
}

impl Shop {
    fn new() -> Self {
        let place = Place::with(|agent| agent.real_tools(true));
        let shop = place.dir.path().join("shop");
        std::fs::create_dir_all(shop.join("src")).unwrap();
        std::fs::write(shop.join("src/main.rs"), "fn main() {}\n").unwrap();
        std::fs::write(shop.join(".gitignore"), "target/\n").unwrap();
        git(&shop, &["init", "--quiet"]);
        git(&shop, &["add", "."]);
        git(&shop, &["commit", "--quiet", "-m", "first"]);
        Self {
            place,
            shop,
            trees: tempfile::tempdir().unwrap(),
        }
    }

    fn policy(&self) -> HostPolicy {
        let mut policy = self.place.policy();
        policy.options = self.place.options().permission_mode(PermissionMode::AcceptEdits);
        policy.workspaces = Some(WorkspacePolicy::new(self.trees.path()));
        policy
    }

    fn with(&self, change: impl FnOnce(&mut WorkspacePolicy)) -> HostPolicy {
        let mut policy = self.policy();
        change(policy.workspaces.as_mut().unwrap());
        policy
    }

    fn new_session(&self, cwd: &Path) -> NewSession {
        let mut new = NewSession::new(cwd);
        new.worktree = Some(NewWorktree::default());
        new
    }

    fn branches(&self) -> String {
        git(&self.shop, &["branch", "--list", "--format=%(refname:short)"])
    }
}

fn write(path: impl AsRef<Path>, content: &str) -> String {
    format!(
        "%tool Write {}",
        json!({"file_path": path.as_ref(), "content": content})
    )
}

fn tree(session: &SessionRecord) -> PathBuf {
    PathBuf::from(&session.worktree.as_ref().unwrap().path)
}

#[tokio::test]
async fn a_session_works_in_a_worktree_of_its_own_that_goes_when_nothing_is_in_it() {
    let shop = Shop::new();
    let host = shop.place.host_with(shop.policy()).await;
    let made = host
        .create(shop.new_session(&shop.shop.join("src")), "ada")
        .await
        .unwrap();
    let tree = tree(&made);
    assert_eq!(Path::new(&made.cwd), tree.join("src"));
    assert!(!tree.exists(), "nothing is made before the first prompt");
    say(&host, &made.id, "%say hello").await;
    assert_eq!(
        std::fs::read_to_string(tree.join("src/main.rs")).unwrap(),
        "fn main() {}\n"
    );
    assert_eq!(git(&tree, &["status", "--porcelain"]), "");
    assert_eq!(
        git(&tree, &["branch", "--show-current"]),
        format!("outrigger/{}", made.id)
    );
    assert_eq!(host.diff(&made.id, DiffFrom::Start).await.unwrap().diff, "");

    say(&host, &made.id, &write(tree.join("src/lib.rs"), "one\n")).await;
    say(
        &host,
        &made.id,
        &write(tree.join("src/main.rs"), "fn main() { run() }\n"),
    )
    .await;
    assert!(
        !shop.shop.join("src/lib.rs").exists(),
        "the repository's own files are left alone"
    );
    let all = host.diff(&made.id, DiffFrom::Start).await.unwrap();
    assert!(
        all.diff.contains("+one\n") && all.diff.contains("+fn main() { run() }\n"),
        "{}",
        all.diff
    );
    let turn = host.diff(&made.id, DiffFrom::Turn).await.unwrap();
    assert!(
        !turn.diff.contains("+one\n") && turn.diff.contains("-fn main() {}\n"),
        "{}",
        turn.diff
    );
    assert!(!all.truncated && !all.incomplete);

    // With work in it, it stays; by force, it goes.
    let open = host.remove_workspace(&made.id, true).await;
    assert!(matches!(open, Err(HostError::Invalid(_))), "{open:?}");
    host.archive(&made.id).await.unwrap();
    assert_eq!(
        host.remove_workspace(&made.id, false).await.unwrap(),
        Some("it has changes")
    );
    git(&tree, &["add", "."]);
    git(&tree, &["commit", "--quiet", "-m", "work"]);
    assert_eq!(
        host.remove_workspace(&made.id, false).await.unwrap(),
        Some("it has commits of its own")
    );
    host.delete(&made.id).await.unwrap();
    assert!(tree.exists());

    // Without, it goes with its session, and its branch.
    let other = host.create(shop.new_session(&shop.shop), "ada").await.unwrap();
    say(&host, &other.id, "%say hello").await;
    host.archive(&other.id).await.unwrap();
    assert!(Path::new(&other.cwd).exists());
    host.delete(&other.id).await.unwrap();
    assert!(!Path::new(&other.cwd).exists());
    assert_eq!(
        shop.branches(),
        format!("main\noutrigger/{}", made.id),
        "commits are kept"
    );
    host.shutdown().await;
}

/// A branch is planned when its session is created, and made with the first prompt.
#[tokio::test]
async fn a_session_whose_branch_somebody_else_made_takes_none_with_it_when_it_goes() {
    let shop = Shop::new();
    let host = shop.place.host_with(shop.policy()).await;
    let mut new = shop.new_session(&shop.shop);
    let mut worktree = NewWorktree::default();
    worktree.branch = Some("fix".to_owned());
    new.worktree = Some(worktree);
    let late = host.create(new.clone(), "bob").await.unwrap();
    git(&shop.shop, &["branch", "fix"]);
    let refused = host.create(new, "ada").await;
    assert!(matches!(refused, Err(HostError::Invalid(_))), "{refused:?}");
    let mut events = host.subscribe(&late.id, 0).await.unwrap();
    // Its second try is none that goes on with the branch of the first one.
    for _ in 0..2 {
        host.send(&late.id, user("%say hello", Uuid::new_v4()), "bob")
            .await
            .unwrap();
        let failed = until(&mut events, |event, _| event.kind == "workspace_failed").await;
        assert!(
            failed.payload.get().contains("exists already"),
            "{}",
            failed.payload
        );
    }
    host.archive(&late.id).await.unwrap();
    host.delete(&late.id).await.unwrap();
    assert_eq!(shop.branches(), "fix\nmain");
    host.shutdown().await;
}

fn on_branch(shop: &Shop, branch: &str) -> NewSession {
    let mut new = shop.new_session(&shop.shop);
    let mut worktree = NewWorktree::default();
    worktree.branch = Some(branch.to_owned());
    new.worktree = Some(worktree);
    new
}

#[tokio::test]
async fn a_branch_that_git_cannot_make_is_refused_when_its_session_is_created() {
    let shop = Shop::new();
    git(&shop.shop, &["branch", "fix"]);
    git(&shop.shop, &["branch", "new/one"]);
    let host = shop.place.host_with(shop.policy()).await;
    let check = async |branch: &str, why: Option<&str>| {
        let created = host.create(on_branch(&shop, branch), "ada").await;
        match (created, why) {
            (Ok(_), None) => {}
            (Err(HostError::Invalid(error)), Some(why)) => assert!(error.contains(why), "{branch}: {error}"),
            (created, _) => panic!("{branch}: {created:?}"),
        }
    };
    check("fix/a", Some("beside `fix`, which exists")).await;
    check("new", Some("beside `new/one`, which exists")).await;
    check("new/two", None).await;
    // Nothing is made of it yet.
    for planned in ["new/two", "new/two/a"] {
        check(planned, Some("another session")).await;
    }
    for bad in ["HEAD", "a/", "x.LOCK", "a./b", "a.", "a@{b"] {
        check(bad, Some("no name of a branch")).await;
    }
    check("Fix/a", None).await;
    git(&shop.shop, &["config", "core.ignoreCase", "true"]);
    check("FIX/b", Some("beside `fix`")).await;
    check("NEW/other", Some("beside `new/one`")).await;
    // Of an archived session nothing will be made any more.
    git(&shop.shop, &["config", "core.ignoreCase", "false"]);
    for session in host.sessions(None, 100).await.unwrap() {
        host.archive(&session.id).await.unwrap();
    }
    check("new/two/a", None).await;
    // Another checkout of the repository has the same branches.
    let beside = shop.place.dir.path().join("beside");
    git(
        &shop.shop,
        &["worktree", "add", "--quiet", beside.to_str().unwrap()],
    );
    let mut new = on_branch(&shop, "new/two");
    new.cwd = beside;
    let refused = host.create(new, "ada").await;
    assert!(matches!(refused, Err(HostError::Invalid(_))), "{refused:?}");
    host.shutdown().await;
}

#[tokio::test]
async fn a_host_has_no_more_worktrees_than_its_operator_allows() {
    let shop = Shop::new();
    let host = shop
        .place
        .host_with(shop.with(|policy| policy.max_worktrees = 2))
        .await;
    let refused = async || {
        let created = host.create(shop.new_session(&shop.shop), "ada").await;
        assert!(matches!(created, Err(HostError::NotAllowed(_))), "{created:?}");
    };
    let made = host.create(shop.new_session(&shop.shop), "ada").await.unwrap();
    say(&host, &made.id, &write(tree(&made).join("work.txt"), "work\n")).await;
    let planned = host.create(shop.new_session(&shop.shop), "ada").await.unwrap();
    refused().await;
    // A worktree with work in it is kept without its session.
    host.archive(&made.id).await.unwrap();
    host.delete(&made.id).await.unwrap();
    refused().await;
    host.archive(&planned.id).await.unwrap();
    host.create(shop.new_session(&shop.shop), "ada").await.unwrap();
    refused().await;
    host.create(NewSession::new(&shop.shop), "ada").await.unwrap();
    host.shutdown().await;
}

#[tokio::test]
async fn a_worktree_that_was_moved_keeps_its_branch_and_its_work() {
    let shop = Shop::new();
    let host = shop.place.host_with(shop.policy()).await;
    for (by_git, force) in [(true, false), (true, true), (false, false), (false, true)] {
        let made = host.create(shop.new_session(&shop.shop), "ada").await.unwrap();
        say(&host, &made.id, "%say hello").await;
        let (from, to) = (tree(&made), shop.place.dir.path().join(made.id.as_str()));
        std::fs::write(from.join("work.txt"), "work\n").unwrap();
        match by_git {
            true => drop(git(
                &shop.shop,
                &["worktree", "move", from.to_str().unwrap(), to.to_str().unwrap()],
            )),
            false => std::fs::rename(&from, &to).unwrap(),
        }
        // No other one is made in its place.
        host.stop(&made.id).await.unwrap();
        let mut events = host.subscribe(&made.id, 0).await.unwrap();
        host.send(&made.id, user("%say hello", Uuid::new_v4()), "ada")
            .await
            .unwrap();
        let failed = until(&mut events, |event, _| event.kind == "workspace_failed").await;
        let error = failed.payload.get();
        assert!(error.contains("is gone"), "{error}");
        assert_eq!(error.contains(to.to_str().unwrap()), by_git, "{error}");
        host.archive(&made.id).await.unwrap();
        let kept = host.remove_workspace(&made.id, force).await.unwrap();
        assert_eq!(kept.is_some(), !force);
        host.delete(&made.id).await.unwrap();
        if !by_git {
            git(&shop.shop, &["worktree", "repair", to.to_str().unwrap()]);
        }
        assert_eq!(git(&to, &["status", "--porcelain"]), "?? work.txt");
        assert_eq!(
            git(&to, &["branch", "--show-current"]),
            format!("outrigger/{}", made.id)
        );
    }
    host.shutdown().await;
}

#[tokio::test]
async fn what_a_cut_off_removal_left_goes_with_the_next_one() {
    let shop = Shop::new();
    let host = shop.place.host_with(shop.policy()).await;
    let made = host.create(shop.new_session(&shop.shop), "ada").await.unwrap();
    say(&host, &made.id, "%say hello").await;
    host.archive(&made.id).await.unwrap();
    git(
        &shop.shop,
        &["worktree", "remove", "--force", tree(&made).to_str().unwrap()],
    );
    assert_eq!(host.remove_workspace(&made.id, false).await.unwrap(), None);
    assert_eq!(shop.branches(), "main");
    assert_eq!(std::fs::read_dir(shop.trees.path()).unwrap().count(), 0);
    host.shutdown().await;
}

#[tokio::test]
async fn a_lock_that_a_power_loss_left_on_the_branch_of_a_session_is_no_obstacle() {
    let shop = Shop::new();
    let host = shop.place.host_with(shop.policy()).await;
    let made = host.create(shop.new_session(&shop.shop), "ada").await.unwrap();
    let lock = shop
        .shop
        .join(".git/refs/heads/outrigger")
        .join(format!("{}.lock", made.id));
    std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
    let lock_it = || std::fs::File::create(&lock).unwrap();
    // Of a git that may still run.
    lock_it();
    let mut events = host.subscribe(&made.id, 0).await.unwrap();
    host.send(&made.id, user("%say hello", Uuid::new_v4()), "ada")
        .await
        .unwrap();
    let failed = until(&mut events, |event, _| event.kind == "workspace_failed").await;
    assert!(failed.payload.get().contains(".lock"), "{}", failed.payload);
    lock_it().set_modified(std::time::UNIX_EPOCH).unwrap();
    say(&host, &made.id, "%say hello").await;
    assert!(!lock.exists());
    host.archive(&made.id).await.unwrap();
    lock_it();
    let failed = host.remove_workspace(&made.id, false).await;
    assert!(matches!(failed, Err(HostError::Workspace(_))), "{failed:?}");
    lock_it().set_modified(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(host.remove_workspace(&made.id, false).await.unwrap(), None);
    assert_eq!(shop.branches(), "main");
    host.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_begin_at_once_in_a_repository_all_get_their_worktrees() {
    let shop = Shop::new();
    let host = shop.place.host_with(shop.policy()).await;
    let mut sessions = Vec::new();
    for _ in 0..8 {
        sessions.push(host.create(shop.new_session(&shop.shop), "ada").await.unwrap());
    }
    let mut turns = Vec::new();
    for session in &sessions {
        let (host, id) = (host.clone(), session.id.clone());
        turns.push(tokio::spawn(async move {
            say(&host, &id, "%say hello").await;
        }));
    }
    for turn in turns {
        turn.await.unwrap();
    }
    for session in &sessions {
        assert_eq!(git(&tree(session), &["status", "--porcelain"]), "");
        let told = host.events(&session.id, 0, 1000).await.unwrap().events;
        assert!(told.iter().all(|event| event.kind != "workspace_failed"));
    }
    host.shutdown().await;
}

#[tokio::test]
async fn a_worktree_in_which_a_fork_works_is_kept() {
    let shop = Shop::new();
    let host = shop
        .place
        .host_with(shop.with(|policy| policy.clean_up = CleanUp::Archived))
        .await;
    let made = host.create(shop.new_session(&shop.shop), "ada").await.unwrap();
    say(&host, &made.id, "%say hello").await;
    let fork = host.fork(&made.id, Default::default(), "ada").await.unwrap();
    assert_eq!(fork.worktree, made.worktree);
    host.archive(&made.id).await.unwrap();
    say(&host, &fork.id, "%say hello").await;
    let kept = host.events(&made.id, 0, 1000).await.unwrap().events;
    let kept = kept.iter().find(|event| event.kind == "workspace_kept").unwrap();
    assert!(kept.payload.get().contains("another session works in it"));
    host.archive(&fork.id).await.unwrap();
    assert!(!tree(&made).exists());
    assert_eq!(shop.branches(), "main");
    host.shutdown().await;
}

#[tokio::test]
async fn the_last_session_that_is_deleted_takes_the_worktree_with_it() {
    let shop = Shop::new();
    let host = shop.place.host_with(shop.policy()).await;
    for has_turn in [false, true] {
        for fork_is_last in [false, true] {
            let made = host.create(shop.new_session(&shop.shop), "ada").await.unwrap();
            say(&host, &made.id, "%say hello").await;
            let fork = host.fork(&made.id, Default::default(), "ada").await.unwrap();
            if has_turn {
                say(&host, &fork.id, "%say hello").await;
            }
            let (first, last) = match fork_is_last {
                true => (&made.id, &fork.id),
                false => (&fork.id, &made.id),
            };
            host.archive(first).await.unwrap();
            host.delete(first).await.unwrap();
            assert!(tree(&made).exists(), "the other session works in it");
            let of_fork = shop.trees.path().join(fork.id.as_str());
            assert_eq!(of_fork.exists(), has_turn && fork_is_last);
            host.archive(last).await.unwrap();
            host.delete(last).await.unwrap();
            assert_eq!(shop.branches(), "main");
            assert_eq!(std::fs::read_dir(shop.trees.path()).unwrap().count(), 0);
        }
    }
    host.shutdown().await;
}

#[tokio::test]
async fn nothing_of_a_repository_is_run() {
    let shop = Shop::new();
    let ran = shop.place.dir.path().join("ran");
    let touch = shop.place.dir.path().join("touch.sh");
    let text = format!("#!/bin/sh\necho $0 $* >> {}\ncat\n", ran.display());
    outrigger_needs::script(&touch, text).unwrap();
    let touch = touch.to_str().unwrap();
    std::fs::write(shop.shop.join(".gitattributes"), "* filter=evil diff=evil\n").unwrap();
    git(&shop.shop, &["add", "."]);
    git(&shop.shop, &["commit", "--quiet", "-m", "attributes"]);
    for hook in [
        "post-checkout",
        "post-index-change",
        "reference-transaction",
        "pre-commit",
    ] {
        let hook = shop.shop.join(".git/hooks").join(hook);
        std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
        std::fs::copy(touch, hook).unwrap();
    }
    for key in [
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "diff.evil.command",
        "diff.evil.textconv",
        "diff.external",
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.sshCommand",
        "core.alternateRefsCommand",
        "uploadpack.packObjectsHook",
    ] {
        git(&shop.shop, &["config", key, touch]);
    }
    git(&shop.shop, &["config", "core.hooksPath", ".git/hooks"]);
    // A repository in the repository, which git looks into when it lists what changed.
    let inner = shop.shop.join("inner");
    std::fs::create_dir(&inner).unwrap();
    git(&inner, &["init", "--quiet"]);
    std::fs::write(inner.join(".gitattributes"), "* filter=evil\n").unwrap();
    std::fs::write(inner.join("file.txt"), "text\n").unwrap();
    git(&inner, &["add", "."]);
    git(&inner, &["commit", "--quiet", "-m", "inner"]);
    for key in [
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "filter.evil.clean",
    ] {
        git(&inner, &["config", key, touch]);
    }
    for hook in ["post-index-change", "post-checkout", "reference-transaction"] {
        std::fs::create_dir_all(inner.join(".git/hooks")).unwrap();
        std::fs::copy(touch, inner.join(".git/hooks").join(hook)).unwrap();
    }
    let host = shop.place.host_with(shop.policy()).await;
    for new in [shop.new_session(&shop.shop), NewSession::new(&shop.shop)] {
        let made = host.create(new, "ada").await.unwrap();
        let file = Path::new(&made.cwd).join("src/main.rs");
        say(&host, &made.id, "%say hello").await;
        assert!(file.exists());
        // Git reads a file again that may have changed.
        let inner = std::fs::File::options().write(true).open(inner.join("file.txt"));
        inner.unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        say(&host, &made.id, &write(&file, "changed\n")).await;
        let diff = host.diff(&made.id, DiffFrom::Start).await.unwrap();
        assert!(diff.diff.contains("+changed"), "{}", diff.diff);
        host.archive(&made.id).await.unwrap();
        host.remove_workspace(&made.id, true).await.unwrap();
    }
    let text = std::fs::read_to_string(&ran).unwrap_or_default();
    assert_eq!(text, "", "this ran");
    host.shutdown().await;
}

/// Git records the commit of a repository in the files, and nothing of its files.
#[tokio::test]
async fn work_in_a_submodule_keeps_its_worktree_and_a_diff_says_that_it_lacks_it() {
    let shop = Shop::new();
    let module = shop.shop.join("module");
    std::fs::create_dir(&module).unwrap();
    git(&module, &["init", "--quiet"]);
    git(&module, &["commit", "--quiet", "--allow-empty", "-m", "module"]);
    git(&shop.shop, &["add", "."]);
    git(&shop.shop, &["commit", "--quiet", "-m", "with a module"]);
    let host = shop.place.host_with(shop.policy()).await;
    for is_checked_out in [false, true] {
        let made = host.create(shop.new_session(&shop.shop), "ada").await.unwrap();
        say(&host, &made.id, "%say hello").await;
        let inner = tree(&made).join("module");
        if is_checked_out {
            let module = module.to_str().unwrap();
            git(&tree(&made), &["clone", "--quiet", module, "module"]);
            std::fs::write(inner.join("work.txt"), "work\n").unwrap();
        }
        for from in [DiffFrom::Start, DiffFrom::Turn] {
            let diff = host.diff(&made.id, from).await.unwrap();
            assert_eq!((diff.diff.as_str(), diff.incomplete), ("", is_checked_out));
        }
        host.archive(&made.id).await.unwrap();
        let kept = host.remove_workspace(&made.id, false).await.unwrap();
        let why = is_checked_out.then_some("it has files that cannot be compared");
        assert_eq!(kept, why);
        assert_eq!(inner.join("work.txt").exists(), is_checked_out);
    }
    host.shutdown().await;
}

#[tokio::test]
async fn a_set_up_that_fails_is_told_and_tried_again() {
    let shop = Shop::new();
    let flag = shop.place.dir.path().join("flag");
    let script = format!(
        "pwd; echo $OUTRIGGER_BRANCH; test -e {0} && touch target.txt && exit 0; touch {0}; echo no luck >&2; exit 3",
        flag.display()
    );
    let policy = shop.with(|policy| policy.setup = ["sh", "-c", &script].map(str::to_owned).to_vec());
    let host = shop.place.host_with(policy).await;
    let made = host.create(shop.new_session(&shop.shop), "ada").await.unwrap();
    let mut events = host.subscribe(&made.id, 0).await.unwrap();
    host.send(&made.id, user("%say hello", Uuid::new_v4()), "ada")
        .await
        .unwrap();
    let failed = until(&mut events, |event, _| event.kind == "workspace_failed").await;
    assert!(failed.payload.get().contains("no luck"), "{}", failed.payload);
    until(&mut events, |_, payload| payload["state"] == "failed").await;
    say(&host, &made.id, "%say again").await;
    assert!(tree(&made).join("target.txt").exists());
    assert_eq!(host.session(&made.id).await.unwrap().state, SessionState::Idle);
    host.shutdown().await;
}

#[tokio::test]
async fn a_set_up_that_hangs_ends_by_its_deadline_by_a_client_or_with_the_host() {
    let shop = Shop::new();
    let policy = shop.with(|policy| {
        policy.setup = ["sh", "-c", "echo $$ > pid; sleep 600 & sleep 600"]
            .map(str::to_owned)
            .to_vec();
        policy.setup_deadline = Duration::from_secs(2);
    });
    let host = shop.place.host_with(policy).await;
    let made = host.create(shop.new_session(&shop.shop), "ada").await.unwrap();
    let mut events = host.subscribe(&made.id, 0).await.unwrap();
    host.send(&made.id, user("%say hello", Uuid::new_v4()), "ada")
        .await
        .unwrap();
    let failed = until(&mut events, |event, _| event.kind == "workspace_failed").await;
    assert!(failed.payload.get().contains("took longer"), "{}", failed.payload);
    let pid = std::fs::read_to_string(tree(&made).join("pid")).unwrap();
    let group: i32 = pid.trim().parse().unwrap();
    let group = rustix::process::Pid::from_raw(group).unwrap();
    // The processes are killed; their parents reap them.
    while rustix::process::test_kill_process_group(group).is_ok() {
        tokio::task::yield_now().await;
    }
    host.shutdown().await;
    drop((events, host));

    let patient = |policy: &mut WorkspacePolicy| policy.setup = ["sleep", "600"].map(str::to_owned).to_vec();
    let host = shop.place.host_with(shop.with(patient)).await;
    let mut events = host
        .subscribe(&made.id, host.session(&made.id).await.unwrap().head_seq)
        .await
        .unwrap();
    for is_interrupted in [false, true] {
        while host.session(&made.id).await.unwrap().state != SessionState::Starting {
            tokio::task::yield_now().await;
        }
        let ended = async {
            match is_interrupted {
                true => host.interrupt(&made.id).await,
                false => host.stop(&made.id).await,
            }
        };
        tokio::time::timeout(PATIENCE, ended).await.unwrap().unwrap();
        let failed = until(&mut events, |event, _| event.kind == "workspace_failed").await;
        assert!(
            failed.payload.get().contains("stopped by a client"),
            "{}",
            failed.payload
        );
        host.send(&made.id, user("%say hello", Uuid::new_v4()), "ada")
            .await
            .unwrap();
    }
    until(&mut events, |_, payload| payload["state"] == "starting").await;
    host.shutdown().await;
}

/// Git waits for somebody to write to the file of what it has to ignore.
#[cfg(unix)]
#[tokio::test]
async fn a_client_need_not_wait_for_the_record_of_the_files() {
    let shop = Shop::new();
    let cwd = shop.place.dir.path().join("work");
    std::fs::create_dir(&cwd).unwrap();
    let made = Command::new("mkfifo").arg(cwd.join(".gitignore")).status();
    assert!(made.unwrap().success());
    let host = shop.place.host_with(shop.policy()).await;
    // Less than the deadline of a run of git.
    let soon = Duration::from_secs(20);
    for is_interrupted in [true, false] {
        let id = host.create(NewSession::new(&cwd), "ada").await.unwrap().id;
        let mut events = host.subscribe(&id, 0).await.unwrap();
        let prompt = Uuid::new_v4();
        host.send(&id, user("%hang", prompt), "ada").await.unwrap();
        processed(&mut events, prompt, "processing").await;
        let ended = async {
            match is_interrupted {
                true => host.interrupt(&id).await,
                false => host.stop(&id).await,
            }
        };
        tokio::time::timeout(soon, ended).await.unwrap().unwrap();
        let failed = until(&mut events, |event, _| event.kind == "snapshot_failed").await;
        assert!(failed.payload.get().contains("stopped by a client"));
        let end = if is_interrupted {
            "processed"
        } else {
            "interrupted"
        };
        processed(&mut events, prompt, end).await;
    }
    host.shutdown().await;
}

/// Who opens a FIFO for reading waits for somebody to write to it, and nothing else goes on in a thread meanwhile.
#[cfg(unix)]
#[test]
fn a_fifo_in_the_place_of_what_a_repository_ignores_holds_up_no_thread() {
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        for is_fifo in [false, true] {
            runtime.block_on(async {
                let shop = Shop::new();
                let exclude = shop.shop.join(".git/info/exclude");
                std::fs::create_dir_all(exclude.parent().unwrap()).unwrap();
                std::fs::write(&exclude, "*.log\n").unwrap();
                if is_fifo {
                    std::fs::remove_file(&exclude).unwrap();
                    let made = Command::new("mkfifo").arg(&exclude).status();
                    assert!(made.unwrap().success());
                }
                let host = shop.place.host_with(shop.policy()).await;
                let new = NewSession::new(&shop.shop);
                let id = host.create(new, "ada").await.unwrap().id;
                say(&host, &id, "%say hello").await;
                std::fs::write(shop.shop.join("big.log"), "big\n").unwrap();
                let diff = host.diff(&id, DiffFrom::Start).await.unwrap().diff;
                assert_eq!(diff.contains("+big"), is_fifo, "{diff}");
                host.shutdown().await;
            });
        }
        let _ = done.send(());
    });
    ended.recv_timeout(PATIENCE).unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn a_git_that_was_killed_leaves_nothing_and_holds_nothing_up() {
    let shop = Shop::new();
    let host = shop.place.host_with(shop.policy()).await;
    let cwd = shop.place.dir.path().join("work");
    std::fs::create_dir(&cwd).unwrap();
    let id = host.create(NewSession::new(&cwd), "ada").await.unwrap().id;
    say(&host, &id, "%say one").await;
    let own = shop.trees.path().join(id.as_str()).join("git");
    let drafts = || {
        let names = std::fs::read_dir(&own)
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        let drafts = names.filter(|name| name.to_str().unwrap().starts_with("index-"));
        drafts.collect::<Vec<_>>()
    };
    assert_eq!(drafts().len(), 0);
    // Git waits for somebody to write to the file of what it has to ignore.
    let ignored = cwd.join(".gitignore");
    assert!(Command::new("mkfifo").arg(&ignored).status().unwrap().success());
    let diff = tokio::spawn({
        let (host, id) = (host.clone(), id.clone());
        async move { host.diff(&id, DiffFrom::Turn).await }
    });
    while drafts().len() < 2 {
        tokio::task::yield_now().await;
    }
    diff.abort();
    assert!(diff.await.unwrap_err().is_cancelled());
    assert_eq!(drafts().len(), 0);
    // What is left if the host was killed along with it.
    std::fs::remove_file(&ignored).unwrap();
    for left in ["index-old", "index-old.lock", "refs/outrigger/turn.lock"] {
        std::fs::write(own.join(left), "").unwrap();
    }
    say(&host, &id, "%say two").await;
    assert_eq!(drafts().len(), 0);
    let told = host.events(&id, 0, 1000).await.unwrap().events;
    assert!(told.iter().all(|event| event.kind != "snapshot_failed"));
    host.shutdown().await;
}

/// What an earlier try left: in the directory of the session, and in the repository.
type Cut = fn(&Path, &Path);

#[tokio::test]
async fn a_worktree_whose_making_was_cut_off_is_made_anew() {
    let shop = Shop::new();
    let host = shop.place.host_with(shop.policy()).await;
    let cuts: [(&str, Cut); 5] = [
        ("before the branch", |home, _| {
            std::fs::write(home.join("making"), "").unwrap()
        }),
        ("behind the branch", |home, shop| {
            std::fs::write(home.join("making"), "").unwrap();
            let id = home.file_name().unwrap().to_str().unwrap();
            git(shop, &["branch", &format!("outrigger/{id}")]);
        }),
        ("behind the worktree", |home, shop| {
            std::fs::write(home.join("making"), "").unwrap();
            let (id, tree) = (home.file_name().unwrap().to_str().unwrap(), home.join("tree"));
            let branch = format!("outrigger/{id}");
            git(
                shop,
                &[
                    "worktree",
                    "add",
                    "--quiet",
                    "--no-checkout",
                    "-b",
                    &branch,
                    tree.to_str().unwrap(),
                ],
            );
        }),
        ("with a worktree that is gone", |home, shop| {
            std::fs::write(home.join("making"), "").unwrap();
            let (id, tree) = (home.file_name().unwrap().to_str().unwrap(), home.join("tree"));
            let branch = format!("outrigger/{id}");
            git(
                shop,
                &[
                    "worktree",
                    "add",
                    "--quiet",
                    "-b",
                    &branch,
                    tree.to_str().unwrap(),
                ],
            );
            std::fs::remove_dir_all(tree).unwrap();
        }),
        ("with a half of the host's git directory", |home, _| {
            std::fs::write(home.join("making"), "").unwrap();
            std::fs::create_dir_all(home.join("git.new/objects")).unwrap();
            std::fs::create_dir_all(home.join("git")).unwrap();
            std::fs::create_dir_all(home.join("tree/half")).unwrap();
        }),
    ];
    for (name, cut) in cuts {
        let made = host.create(shop.new_session(&shop.shop), "ada").await.unwrap();
        let home = tree(&made).parent().unwrap().to_owned();
        std::fs::create_dir_all(&home).unwrap();
        cut(&home, &shop.shop);
        say(&host, &made.id, "%say hello").await;
        assert_eq!(git(&tree(&made), &["status", "--porcelain"]), "", "{name}");
        assert_eq!(
            host.diff(&made.id, DiffFrom::Start).await.unwrap().diff,
            "",
            "{name}"
        );
        assert!(!tree(&made).join("half").exists());
    }
    // A branch that somebody else made meanwhile is not taken.
    let made = host.create(shop.new_session(&shop.shop), "ada").await.unwrap();
    git(&shop.shop, &["branch", &format!("outrigger/{}", made.id)]);
    let mut events = host.subscribe(&made.id, 0).await.unwrap();
    host.send(&made.id, user("%say hello", Uuid::new_v4()), "ada")
        .await
        .unwrap();
    let failed = until(&mut events, |event, _| event.kind == "workspace_failed").await;
    assert!(
        failed.payload.get().contains("exists already"),
        "{}",
        failed.payload
    );
    host.shutdown().await;
}

#[tokio::test]
async fn what_is_not_allowed_is_refused_before_anything_is_made() {
    let shop = Shop::new();
    let outside = tempfile::tempdir().unwrap();
    git(outside.path(), &["init", "--quiet"]);
    git(
        outside.path(),
        &["commit", "--quiet", "--allow-empty", "-m", "secret"],
    );
    // A repository above the root, and a directory that says that its repository is elsewhere.
    let inner = outside.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    let link = shop.place.dir.path().join("link");
    std::fs::create_dir(&link).unwrap();
    let elsewhere = outside.path().join(".git");
    std::fs::write(link.join(".git"), format!("gitdir: {}\n", elsewhere.display())).unwrap();
    let mut policy = shop.policy();
    policy.roots.push(inner.clone());
    let host = shop.place.host_with(policy).await;
    for cwd in [&inner, &link] {
        let refused = host.create(shop.new_session(cwd), "eve").await;
        assert!(
            matches!(refused, Err(HostError::NotAllowed(_))),
            "{}: {refused:?}",
            cwd.display()
        );
    }
    let plain = shop.place.dir.path().join("plain");
    std::fs::create_dir(&plain).unwrap();
    let refused = host.create(shop.new_session(&plain), "eve").await;
    assert!(matches!(refused, Err(HostError::Invalid(_))), "{refused:?}");
    for (branch, base) in [
        (Some("main"), None),
        (Some("-f"), None),
        (Some("a..b"), None),
        (Some("a/.b"), None),
        (Some(""), None),
        (Some("a b"), None),
        (Some("x.lock"), None),
        (Some("@{-1}"), None),
        (None, Some("missing")),
        (None, Some("--all")),
        (None, Some("HEAD:src")),
    ] {
        let mut new = shop.new_session(&shop.shop);
        let mut worktree = NewWorktree::default();
        (worktree.branch, worktree.base) = (branch.map(str::to_owned), base.map(str::to_owned));
        new.worktree = Some(worktree);
        let refused = host.create(new, "eve").await;
        assert!(
            matches!(refused, Err(HostError::Invalid(_))),
            "{branch:?} {base:?}: {refused:?}"
        );
    }
    // The same creation again is the same session.
    let mut new = shop.new_session(&shop.shop);
    new.id = Some(SessionId::random());
    let made = host.create(new.clone(), "ada").await.unwrap();
    say(&host, &made.id, "%say hello").await;
    assert_eq!(host.create(new.clone(), "ada").await.unwrap().id, made.id);
    new.worktree = None;
    assert!(matches!(host.create(new, "ada").await, Err(HostError::Reused(_))));
    host.shutdown().await;
    drop(host);

    let mut policy = shop.policy();
    policy.workspaces = None;
    let host = shop.place.host_with(policy).await;
    let refused = host.create(shop.new_session(&shop.shop), "eve").await;
    assert!(matches!(refused, Err(HostError::NotAllowed(_))), "{refused:?}");
    host.shutdown().await;
}

#[tokio::test]
async fn the_diff_of_a_directory_without_a_repository_is_cut_and_leaves_out_what_is_ignored() {
    let shop = Shop::new();
    let plain = shop.place.dir.path().join("plain");
    std::fs::create_dir(&plain).unwrap();
    std::fs::write(plain.join("before.txt"), "before\n").unwrap();
    std::fs::write(plain.join(".gitignore"), "*.log\n").unwrap();
    let host = shop
        .place
        .host_with(shop.with(|policy| policy.diff_limit = 400))
        .await;
    let id = host.create(NewSession::new(&plain), "ada").await.unwrap().id;
    let early = host.diff(&id, DiffFrom::Start).await;
    assert!(matches!(early, Err(HostError::Invalid(_))), "{early:?}");
    say(&host, &id, "%say hello").await;
    std::fs::write(plain.join("note.txt"), "new\n").unwrap();
    std::fs::write(plain.join("big.log"), "ignored\n").unwrap();
    std::fs::remove_file(plain.join("before.txt")).unwrap();
    let diff = host.diff(&id, DiffFrom::Turn).await.unwrap();
    assert!(
        diff.diff.contains("+new\n") && diff.diff.contains("-before\n"),
        "{}",
        diff.diff
    );
    assert!(!diff.diff.contains("ignored") && !diff.truncated);
    std::fs::write(plain.join("note.txt"), "long\n".repeat(1000)).unwrap();
    let diff = host.diff(&id, DiffFrom::Turn).await.unwrap();
    assert!(diff.truncated && diff.diff.len() == 400);
    host.shutdown().await;
}

/// The record of the files is made with the first turn, which is worth more.
#[tokio::test]
async fn a_repository_that_cannot_be_read_keeps_no_session_from_its_work() {
    let shop = Shop::new();
    let host = shop.place.host_with(shop.policy()).await;
    let tree = git(&shop.shop, &["rev-parse", "HEAD:src"]);
    let object = shop.shop.join(".git/objects").join(&tree[..2]).join(&tree[2..]);
    let kept = std::fs::read(&object).unwrap();
    std::fs::remove_file(&object).unwrap();
    let id = host.create(NewSession::new(&shop.shop), "ada").await.unwrap().id;
    say(&host, &id, "%say hello").await;
    let told = host.events(&id, 0, 1000).await.unwrap().events;
    assert!(told.iter().any(|event| event.kind == "snapshot_failed"));
    let early = host.diff(&id, DiffFrom::Turn).await;
    assert!(matches!(early, Err(HostError::Invalid(_))), "{early:?}");
    std::fs::write(&object, kept).unwrap();
    say(&host, &id, &write(shop.shop.join("new.txt"), "new\n")).await;
    let diff = host.diff(&id, DiffFrom::Turn).await.unwrap();
    assert!(diff.diff.contains("+new\n"), "{}", diff.diff);
    host.shutdown().await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_directory_that_became_a_link_to_another_place_shows_nothing_of_it() {
    let shop = Shop::new();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret.txt"), "albatross\n").unwrap();
    let host = shop.place.host_with(shop.policy()).await;
    let cwd = shop.place.dir.path().join("work");
    std::fs::create_dir(&cwd).unwrap();
    let id = host.create(NewSession::new(&cwd), "ada").await.unwrap().id;
    say(&host, &id, "%say one").await;
    let aside = shop.place.dir.path().join("aside");
    let swap = || {
        std::fs::rename(&cwd, &aside).unwrap();
        std::os::unix::fs::symlink(outside.path(), &cwd).unwrap();
    };
    let back = || {
        std::fs::remove_file(&cwd).unwrap();
        std::fs::rename(&aside, &cwd).unwrap();
    };
    swap();
    for from in [DiffFrom::Start, DiffFrom::Turn] {
        let shown = host.diff(&id, from).await;
        assert!(matches!(shown, Err(HostError::NotAllowed(_))), "{shown:?}");
    }
    // Nor is it recorded, by a process that runs already, to be shown later as what was removed.
    say(&host, &id, "%say two").await;
    let log = host.events(&id, 0, 1000).await.unwrap().events;
    assert!(log.iter().any(|event| event.kind == "snapshot_failed"));
    back();
    for from in [DiffFrom::Start, DiffFrom::Turn] {
        let shown = host.diff(&id, from).await.unwrap();
        assert!(!shown.diff.contains("albatross"), "{shown:?}");
    }
    host.shutdown().await;
}

/// In the commit that a worktree is made from, a directory of the main checkout may be a link.
#[cfg(unix)]
#[tokio::test]
async fn a_session_works_in_its_own_worktree_and_not_beside_it() {
    let shop = Shop::new();
    let host = shop.place.host_with(shop.policy()).await;
    let other = host.create(shop.new_session(&shop.shop), "ada").await.unwrap();
    say(&host, &other.id, "%say hello").await;
    let docs = shop.shop.join("docs");
    let linked = |target: &str, branch: &str| {
        git(&shop.shop, &["checkout", "--quiet", "-b", branch, "main"]);
        std::os::unix::fs::symlink(target, &docs).unwrap();
        git(&shop.shop, &["add", "."]);
        git(&shop.shop, &["commit", "--quiet", "-m", "a link"]);
        git(&shop.shop, &["checkout", "--quiet", "main"]);
        branch.to_owned()
    };
    let bases = [
        (linked("src", "inside"), true),
        (linked("../git", "git"), false),
        (linked("../..", "above"), false),
        (linked(&format!("../../{}/tree", other.id), "other"), false),
    ];
    std::fs::create_dir(&docs).unwrap();
    for (base, is_allowed) in bases {
        let mut new = shop.new_session(&docs);
        let mut worktree = NewWorktree::default();
        worktree.base = Some(base.clone());
        new.worktree = Some(worktree);
        let made = host.create(new, "eve").await.unwrap();
        let mut events = host.subscribe(&made.id, 0).await.unwrap();
        host.send(&made.id, user("%say hello", Uuid::new_v4()), "eve")
            .await
            .unwrap();
        let started = until(&mut events, |event, _| {
            ["process_started", "start_failed"].contains(&event.kind.as_str())
        })
        .await;
        assert_eq!(
            started.kind == "process_started",
            is_allowed,
            "{base}: {}",
            started.payload
        );
    }
    host.shutdown().await;
}

/// As a client does that did not wait for the answer.
#[tokio::test]
async fn a_creation_that_is_repeated_while_it_is_made_is_one_session() {
    let shop = Shop::new();
    let host = shop.place.host_with(shop.policy()).await;
    let mut new = shop.new_session(&shop.shop);
    new.id = Some(SessionId::random());
    let create = || host.create(new.clone(), "ada");
    let (first, second, third) = tokio::join!(create(), create(), create());
    let first = first.unwrap();
    for repeated in [second, third] {
        assert_eq!(tree(&repeated.unwrap()), tree(&first));
    }
    host.shutdown().await;
}

/// Each turn records the files that it changed, and a session may have turns for months.
#[tokio::test]
async fn what_no_state_of_the_files_has_any_more_is_removed_in_time() {
    let shop = Shop::new();
    let host = shop.place.host_with(shop.policy()).await;
    let id = host.create(NewSession::new(&shop.shop), "ada").await.unwrap().id;
    let file = shop.shop.join("notes");
    let kept = shop.trees.path().join(id.as_str());
    let blob = |text: &str| {
        std::fs::write(shop.trees.path().join("text"), text).unwrap();
        let id = git(
            &shop.shop,
            &[
                "hash-object",
                "--no-filters",
                shop.trees.path().join("text").to_str().unwrap(),
            ],
        );
        kept.join("git/objects").join(&id[..2]).join(&id[2..])
    };
    let is_old = |path: &Path| {
        let file = std::fs::File::options().append(true).open(path);
        let file = file.or_else(|_| std::fs::File::open(path)).unwrap();
        file.set_modified(std::time::SystemTime::now() - Duration::from_secs(7300))
            .unwrap();
    };
    for text in ["one\n", "two\n", "three\n"] {
        std::fs::write(&file, text).unwrap();
        say(&host, &id, "%say hello").await;
    }
    let (one, two, three) = (blob("one\n"), blob("two\n"), blob("three\n"));
    assert!(one.exists() && two.exists() && three.exists());
    // With the directories that name them.
    for entry in std::fs::read_dir(kept.join("git/objects")).unwrap() {
        for object in std::fs::read_dir(entry.unwrap().path()).unwrap() {
            is_old(&object.unwrap().path());
        }
    }
    std::fs::write(&file, "four\n").unwrap();
    say(&host, &id, "%say hello").await;
    assert!(two.exists(), "not with each turn");
    is_old(&kept.join("pruned"));
    say(&host, &id, "%say hello").await;
    let there = [&one, &two, &three, &blob("four\n")].map(|object| object.exists());
    assert_eq!(there, [true, false, false, true]);
    let all = host.diff(&id, DiffFrom::Start).await.unwrap().diff;
    assert!(all.contains("-one\n+four\n"), "{all}");
    host.shutdown().await;
}
