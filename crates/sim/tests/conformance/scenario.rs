//! What is said to a CLI, and how what it asks is answered.

use std::sync::Arc;

use serde_json::{Value, json};

/// One or more processes in one place, one after the other.
#[derive(Clone)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) files: Vec<(&'static str, &'static str)>,
    /// Links in the project, with what they lead to.
    pub(crate) links: Vec<(&'static str, &'static str)>,
    pub(crate) runs: Vec<Run>,
}

/// One process.
#[derive(Clone, Default)]
pub(crate) struct Run {
    /// Besides those by which every SDK starts it. `{session}` is the session of the process before, `{answer}` the
    /// uuid of its first answer, `{project}` the working directory, `{root}` what it is in, `{task}` the last task that was
    /// started; so it is in what is sent.
    pub(crate) flags: Vec<String>,
    pub(crate) variables: Vec<(&'static str, &'static str)>,
    /// Whether permission requests come over stdio.
    pub(crate) unprompted: bool,
    pub(crate) answers: Vec<(&'static str, Answer)>,
    pub(crate) steps: Vec<Step>,
}

/// Answers a control request of the CLI; nothing leaves it open.
pub(crate) type Answer = Arc<dyn Fn(&Value) -> Option<Reply> + Send + Sync>;

/// How a control request is answered.
#[derive(Debug)]
pub(crate) enum Reply {
    Payload(Value),
    Error(&'static str),
}

/// What the host does next.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Sends a frame.
    Send(Value),
    /// Sends a line as it is.
    Line(String),
    /// Sends a control request and waits for the answer to it.
    Control(Value),
    /// Reads on to the next frame of this kind.
    Until(&'static str),
    UntilEach(Vec<&'static str>),
    /// Waits for this file in the project, which a command makes.
    UntilFile(String),
    /// Makes this file in the project, which a command waits for.
    MakeFile(&'static str),
    /// Answers the request of the CLI that has been left open and has this text in it. The payload of an MCP message gets its id.
    AnswerOpen(&'static str, Value),
    /// Closes stdin.
    Eof,
    /// Sends the signal of this name, without `SIG`.
    Signal(&'static str),
}

impl Scenario {
    /// One process that gets `initialize` first.
    pub(crate) fn new(name: &str) -> Self {
        Self::with_initialize(name, json!({"hooks": null}))
    }

    /// One process whose `initialize` has these fields.
    pub(crate) fn with_initialize(name: &str, mut fields: Value) -> Self {
        fields["subtype"] = json!("initialize");
        Self::bare(name).control(fields)
    }

    /// Whether a flag or a request names this program.
    pub(crate) fn uses(&self, program: &str) -> bool {
        let mut flags = self.runs.iter().flat_map(|run| &run.flags);
        let mut steps = self.runs.iter().flat_map(|run| &run.steps);
        let names =
            |step: &Step| matches!(step, Step::Control(request) if request.to_string().contains(program));
        flags.any(|flag| flag.contains(program)) || steps.any(names)
    }

    /// All of it as text, but for how requests are answered.
    pub(crate) fn described(&self) -> String {
        let mut text = format!("{:#?}\n{:#?}\n", self.files, self.links);
        for run in &self.runs {
            text += &format!(
                "{:#?}\n{:#?}\n{}\n{:#?}\n",
                run.flags, run.variables, run.unprompted, run.steps
            );
        }
        text
    }

    /// Whether a command of it lasts long enough for a CLI to report the command as a task, on any machine.
    pub(crate) fn lasts(&self) -> bool {
        let steps = format!("{:?}", Vec::from_iter(self.runs.iter().map(|run| &run.steps)));
        let mut sleeps = steps.split("sleep ").skip(1);
        steps.contains("do sleep ") || sleeps.any(|time| time.starts_with(|digit| matches!(digit, '1'..='9')))
    }

    /// One process that is told nothing yet.
    pub(crate) fn bare(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            files: Vec::new(),
            links: Vec::new(),
            runs: vec![Run::default()],
        }
    }

    /// Goes on with another process, which gets `initialize` first.
    pub(crate) fn then_process(self) -> Self {
        self.then_process_with(json!({"hooks": null}))
    }

    /// Goes on with another process, whose `initialize` has these fields.
    pub(crate) fn then_process_with(mut self, mut fields: Value) -> Self {
        self.runs.push(Run::default());
        fields["subtype"] = json!("initialize");
        self.control(fields)
    }

    /// Goes on with another process, which is told nothing yet.
    pub(crate) fn then_process_bare(mut self) -> Self {
        self.runs.push(Run::default());
        self
    }

    fn run(&mut self) -> &mut Run {
        self.runs.last_mut().expect("there is always one")
    }

    fn step(mut self, step: Step) -> Self {
        self.run().steps.push(step);
        self
    }

    /// Adds flags, parted by spaces.
    pub(crate) fn flags(mut self, flags: &str) -> Self {
        self.run().flags.extend(flags.split(' ').map(str::to_owned));
        self
    }

    /// Adds a flag and its value.
    pub(crate) fn flag(self, flag: &str, value: &str) -> Self {
        self.argument(flag).argument(value)
    }

    /// Adds an argument, which may have spaces.
    pub(crate) fn argument(mut self, argument: &str) -> Self {
        self.run().flags.push(argument.to_owned());
        self
    }

    /// Sets a variable.
    pub(crate) fn variable(mut self, name: &'static str, value: &'static str) -> Self {
        self.run().variables.push((name, value));
        self
    }

    /// Leaves `--permission-prompt-tool` out.
    pub(crate) fn unprompted(mut self) -> Self {
        self.run().unprompted = true;
        self
    }

    /// Puts a file into the project before anything is started.
    pub(crate) fn file(mut self, path: &'static str, content: &'static str) -> Self {
        self.files.push((path, content));
        self
    }

    /// Puts a link into the project before anything is started.
    pub(crate) fn link(mut self, path: &'static str, target: &'static str) -> Self {
        self.links.push((path, target));
        self
    }

    /// Answers all requests of this subtype so.
    pub(crate) fn answer(
        mut self,
        subtype: &'static str,
        answer: impl Fn(&Value) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        self.run().answers.push((subtype, Arc::new(answer)));
        self
    }

    /// Sends a prompt and reads on to its result.
    pub(crate) fn turn(self, text: &str) -> Self {
        self.prompt(text).until("result")
    }

    /// Sends a prompt.
    pub(crate) fn prompt(self, text: &str) -> Self {
        self.send(prompt(text))
    }

    /// Sends a prompt with a uuid that ends in this number, and more fields.
    pub(crate) fn prompt_with(self, number: u32, text: &str, more: Value) -> Self {
        let mut frame = prompt(text);
        frame["uuid"] = json!(uuid(number));
        for (key, value) in more.as_object().into_iter().flatten() {
            frame[key] = value.clone();
        }
        self.send(frame)
    }

    /// Sends a frame.
    pub(crate) fn send(self, frame: Value) -> Self {
        self.step(Step::Send(frame))
    }

    /// Sends a line as it is.
    pub(crate) fn line(self, line: &str) -> Self {
        self.step(Step::Line(line.to_owned()))
    }

    /// Sends a control request and waits for the answer to it.
    pub(crate) fn control(self, request: Value) -> Self {
        self.step(Step::Control(request))
    }

    /// Reads on to the next frame whose kind begins so.
    pub(crate) fn until(self, kind: &'static str) -> Self {
        self.step(Step::Until(kind))
    }

    /// Waits until a frame of each of these kinds has come, in whatever order.
    pub(crate) fn until_each(self, kinds: &[&'static str]) -> Self {
        self.step(Step::UntilEach(kinds.to_vec()))
    }

    /// Waits for this file in the project, which a command makes.
    pub(crate) fn until_file(self, path: &str) -> Self {
        self.step(Step::UntilFile(path.to_owned()))
    }

    /// Makes this file in the project, which a command waits for.
    pub(crate) fn make_file(self, path: &'static str) -> Self {
        self.step(Step::MakeFile(path))
    }

    /// Answers the request of the CLI that has been left open and has this text in it.
    pub(crate) fn answer_open(self, text: &'static str, payload: Value) -> Self {
        self.step(Step::AnswerOpen(text, payload))
    }

    /// Sends a signal, named without `SIG`; what comes then is read to the end.
    pub(crate) fn signal(self, name: &'static str) -> Self {
        self.step(Step::Signal(name))
    }

    /// Closes stdin; what comes then is read to its end, as it is after the last step.
    pub(crate) fn eof(self) -> Self {
        self.step(Step::Eof)
    }
}

/// The uuid of the prompt with this number.
pub(crate) fn uuid(number: u32) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

fn prompt(text: &str) -> Value {
    json!({
        "type": "user", "session_id": "", "parent_tool_use_id": null,
        "message": {"role": "user", "content": [{"type": "text", "text": text}]},
    })
}
