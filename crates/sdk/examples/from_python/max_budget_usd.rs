//! A limit on what a session costs: `max_budget_usd.py`.

use outrigger::Cause;

use crate::support::{Result, Stage};

pub(crate) async fn run(stage: &Stage) -> Result {
    for budget in [None, Some(0.10)] {
        let mut agent = stage.agent();
        if let Some(budget) = budget {
            agent = agent.max_budget_usd(budget);
        }
        let answer = agent
            .query_text(stage.prompt("What is 2 + 2?", "%say 4."))
            .await?;
        println!("{budget:?}: {answer} for ${:.4}", answer.cost());
    }

    // The CLI looks at the budget after each request to the API, so the cost can exceed the budget by one request.
    let script = "%usage in=100000 out=100\n%tool Bash {\"command\": \"echo reading\"}\n%say Not reached.";
    let failed = stage
        .agent()
        .max_budget_usd(0.0001)
        .query_text(stage.prompt("Read the README and sum it up.", script))
        .await;
    match failed {
        Err(error) if error.cause() == Some(Cause::Budget) => println!("the budget is spent: {error}"),
        Err(error) => return Err(error.into()),
        Ok(answer) => println!("{answer}"),
    }
    Ok(())
}
