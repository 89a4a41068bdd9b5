//! A calculator of tools in this program: `mcp_calculator.py`.

use outrigger::mcp::{SdkMcpServer, Tool};

use crate::support::{Result, Stage, show};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Two {
    a: f64,
    b: f64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct One {
    n: f64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Power {
    base: f64,
    exponent: f64,
}

fn calculator() -> SdkMcpServer {
    let add = Tool::new("add", "Adds two numbers", async |Two { a, b }, _| {
        format!("{a} + {b} = {}", a + b)
    });
    let subtract = Tool::new("subtract", "Subtracts a number", async |Two { a, b }, _| {
        format!("{a} - {b} = {}", a - b)
    });
    let multiply = Tool::new("multiply", "Multiplies two numbers", async |Two { a, b }, _| {
        format!("{a} × {b} = {}", a * b)
    });
    let divide = Tool::new("divide", "Divides by a number", async |Two { a, b }, _| {
        // An error is a result that the model sees as failed.
        if b == 0.0 {
            Err("division by zero")
        } else {
            Ok(format!("{a} ÷ {b} = {}", a / b))
        }
    });
    let sqrt = Tool::new("sqrt", "The square root", async |One { n }, _| {
        if n < 0.0 {
            Err(format!("{n} is negative"))
        } else {
            Ok(format!("√{n} = {}", n.sqrt()))
        }
    });
    let power = Tool::new(
        "power",
        "Raises to a power",
        async |Power { base, exponent }, _| format!("{base}^{exponent} = {}", base.powf(exponent)),
    );
    SdkMcpServer::new("calculator")
        .version("2.0.0")
        .add_tools([add, subtract, multiply, divide, sqrt, power])
}

const PROMPTS: &[(&str, &str)] = &[
    (
        "What is 15 + 27?",
        "%tool mcp__calc__add {\"a\": 15, \"b\": 27}\n%say {{last}}",
    ),
    (
        "Divide 100 by 0.",
        "%tool mcp__calc__divide {\"a\": 100, \"b\": 0}\n%say It is refused.",
    ),
    (
        "The square root of 144?",
        "%tool mcp__calc__sqrt {\"n\": 144}\n%say {{last}}",
    ),
    (
        "2 to the 8th?",
        "%tool mcp__calc__power {\"base\": 2, \"exponent\": 8}\n%say {{last}}",
    ),
];

pub(crate) async fn run(stage: &Stage) -> Result {
    // One rule for all tools of the server.
    let agent = stage
        .agent()
        .sdk_mcp_server("calc", calculator())
        .allowed_tools(["mcp__calc"]);
    let session = agent.start().await?;
    for (prompt, script) in PROMPTS {
        show(&session, stage.prompt(prompt, script)).await?;
    }
    session.close().await?;
    Ok(())
}
