//! Which steps a request to the model gets. The simulated agent and the scripted API share it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;

use super::fill::{self, Variables};
use super::place::Placed;
use super::progress::{Progress, Uses};
use super::rule::{Asker, Rule};
use super::step::{Ask, Background, Step, Subagent};
use super::{Script, Unmatched};

/// Who calls the model. Everybody has a place of their own in the script.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct ModelCaller {
    /// The session; none for the simulated agent, which has but one.
    pub(crate) session: Option<String>,
    /// The subagent; none for the main agent.
    pub(crate) agent: Option<String>,
}

/// A request to the model.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) who: ModelCaller,
    /// Whether the request begins a turn, so that what an earlier turn left over is gone.
    pub(crate) begins: bool,
    /// Whether another process began the turn, and its prompt has used up its rule.
    pub(crate) continued: bool,
    /// The prompts that came since the request before.
    pub(crate) prompts: Vec<String>,
    /// The tag of the background work that began the turn.
    pub(crate) woken_by: Vec<u64>,
    /// The tag of the step that started this subagent, where it is known; otherwise the prompt tells.
    pub(crate) tag: Option<u64>,
    pub(crate) model: String,
    pub(crate) tools: Vec<String>,
    /// The texts of the results of the tools that were called last.
    pub(crate) results: Vec<String>,
    /// The built-in variables that depend on the request: `cwd`, `home`, `plan`.
    pub(crate) variables: Variables,
}

/// What a request gets.
#[derive(Debug)]
pub(crate) enum Found {
    /// Steps, which [`Engine::next`] has.
    Steps,
    /// No rule is for it, and why.
    Unmatched(String),
    /// The client asks again and again without a new prompt.
    Refused(String),
}

/// A step that is still to come.
#[derive(Debug, Clone)]
pub(crate) struct NextStep {
    /// Where the step stands in the file.
    pub(crate) place: String,
    pub(crate) step: Step,
    /// The rule in which it stands.
    rule: usize,
    variables: Variables,
    /// Whether the step is the first one of a [`Step::Response`] or a later one, if it stands in a response.
    within: Option<bool>,
}

/// The steps of one response, or of one attempt at it.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub(crate) steps: Vec<NextStep>,
    /// Whether the steps say all that it has, so that it may be without content.
    pub(crate) exact: bool,
}

impl NextStep {
    /// Something in this rule.
    fn of_rule(rule: usize, variables: Variables) -> Self {
        Self {
            place: String::new(),
            step: Step::Response(Vec::new()),
            rule,
            variables,
            within: None,
        }
    }

    /// Whether the step must be reached: an error for ever is the end of a turn.
    #[cfg(feature = "api")]
    pub(crate) fn is_missing(&self) -> bool {
        !matches!(&self.step, Step::ApiError(error) if error.times.is_none())
    }
}

/// How far somebody is in the script.
#[derive(Debug, Default, Clone)]
struct Course {
    /// How often each rule was used.
    used: Vec<u32>,
    /// The rule whose turn it is, among those that are used in their order.
    current: usize,
    left: VecDeque<NextStep>,
    /// The rule in use.
    rule: usize,
    /// The last prompt, and the last tool result.
    prompt: String,
    result: String,
    /// Why no rule is for the prompt.
    refused: Option<String>,
    /// Requests since the last prompt.
    requests: u32,
}

/// The steps of a subagent that was started.
#[derive(Debug)]
struct Handed {
    session: Option<String>,
    prompt: String,
    steps: Vec<NextStep>,
}

/// A script, and how far everybody is in it.
#[derive(Debug, Default)]
pub(crate) struct Engine {
    script: Script,
    /// Which rules the main agents of all processes and sessions have used, if they share that.
    shared: Option<Progress>,
    /// Which assertions are still due: for all of them, if they share that.
    due: Progress,
    askers: HashMap<ModelCaller, Course>,
    /// The steps of subagents that have not asked yet, by the tags of their steps.
    handed: BTreeMap<u64, Handed>,
    /// The steps of the agent after the end of the background work with this tag.
    after: BTreeMap<u64, Vec<NextStep>>,
    next_tag: u64,
    /// How many prompts of the client there were.
    prompts: usize,
}

impl Engine {
    /// Everybody plays the script from its beginning.
    pub(crate) fn new(script: Script) -> Self {
        Self {
            script,
            ..Self::default()
        }
    }

    /// Main agents go on where others with this progress are.
    pub(crate) fn among_others(script: Script, progress: Progress) -> Self {
        Self {
            due: progress.clone(),
            shared: Some(progress),
            ..Self::new(script)
        }
    }

    pub(crate) fn script(&self) -> &Script {
        &self.script
    }

    /// A number that no other step has.
    pub(crate) fn tag(&mut self) -> u64 {
        self.next_tag += 1;
        self.next_tag
    }

    /// Starts a subagent, under a new tag.
    pub(crate) fn hand(&mut self, who: &ModelCaller, subagent: &Subagent, next: &NextStep) -> u64 {
        let tag = self.tag();
        let steps = self
            .script
            .steps(&subagent.steps, &format!("{}.steps", next.place), next);
        let then = self
            .script
            .steps(&subagent.then, &format!("{}.then", next.place), next);
        let prompt = subagent.prompt.as_ref().unwrap_or(&subagent.description);
        self.after.insert(tag, then);
        let handed = Handed {
            session: who.session.clone(),
            prompt: prompt.clone(),
            steps,
        };
        self.handed.insert(tag, handed);
        tag
    }

    /// Starts a command in the background, under a new tag.
    pub(crate) fn set_off(&mut self, background: &Background, next: &NextStep) -> u64 {
        let tag = self.tag();
        let then = self
            .script
            .steps(&background.then, &format!("{}.then", next.place), next);
        self.after.insert(tag, then);
        tag
    }

    /// Takes in a request. The steps are those of the rule in use, unless it has a new prompt, or a result that has a rule.
    pub(crate) fn take(&mut self, request: &Request) -> Found {
        let rules = self.script.prompts.len();
        let known = self.askers.contains_key(&request.who);
        let course = self.askers.entry(request.who.clone()).or_default();
        course.used.resize(rules, 0);
        if request.begins {
            course.left.clear();
        }
        for steps in request.woken_by.iter().filter_map(|tag| self.after.remove(tag)) {
            if let (Some(next), true) = (steps.first(), course.left.is_empty()) {
                course.rule = next.rule;
            }
            // A turn that runs goes on as it would have.
            course.left.extend(steps);
            course.refused = None;
        }
        if !request.prompts.is_empty() {
            course.requests = 0;
            course.refused = None;
        }
        course.requests += 1;
        if course.requests > self.script.requests_per_prompt {
            return Found::Refused(self.too_many(&request.who));
        }
        let handed = match &request.who.agent {
            Some(_) if !known => self.handed_to(request),
            _ => None,
        };
        if let (Some(handed), Some(course)) = (handed, self.askers.get_mut(&request.who)) {
            if let Some(next) = handed.first() {
                course.rule = next.rule;
            }
            course.prompt = request.prompts.first().cloned().unwrap_or_default();
            course.left = handed.into();
            return Found::Steps;
        }
        for prompt in &request.prompts {
            if request.who.agent.is_none() {
                self.prompts += 1;
            }
            self.load(request, prompt);
        }
        self.branch(request);
        let refused = self
            .askers
            .get(&request.who)
            .and_then(|course| course.refused.clone());
        refused.map_or(Found::Steps, Found::Unmatched)
    }

    /// The steps of this new subagent, if a step started it.
    fn handed_to(&mut self, request: &Request) -> Option<Vec<NextStep>> {
        let prompt = request.prompts.join("\n");
        let is_for =
            |handed: &Handed| handed.session == request.who.session && handed.prompt.trim() == prompt.trim();
        let tag = match request.tag {
            Some(tag) => tag,
            None => *self.handed.iter().find(|(_, handed)| is_for(handed))?.0,
        };
        Some(self.handed.remove(&tag)?.steps)
    }

    /// Whether each of these prompts has a rule.
    #[cfg(feature = "api")]
    pub(crate) fn knows(&self, request: &Request, prompts: &[String]) -> bool {
        let mut course = self.askers.get(&request.who).cloned().unwrap_or_default();
        course.used.resize(self.script.prompts.len(), 0);
        let handed = self.handed.values().any(|handed| {
            handed.session == request.who.session && handed.prompt.trim() == prompts.join("\n").trim()
        });
        handed
            || prompts
                .iter()
                .all(|prompt| self.script.choose(&mut course, request, prompt).is_some())
    }

    /// Adds the reply to a prompt.
    fn load(&mut self, request: &Request, prompt: &str) {
        let Some(course) = self.askers.get_mut(&request.who) else {
            return;
        };
        prompt.clone_into(&mut course.prompt);
        let shared = self.shared.as_ref();
        let before = shared.map_or(Ok(None), |shared| self.script.goes_on(shared, request, prompt));
        // What was due when another process began the turn is due no second time.
        let is_due = !matches!(before, Ok(Some(_)));
        let chosen = match (before, shared) {
            (Ok(None), None) => Ok(self.script.choose(course, request, prompt)),
            (Ok(None), Some(shared)) => self.script.choose_shared(shared, course, request, prompt),
            (before, _) => before,
        };
        let chosen = chosen.and_then(|chosen| {
            let steps = chosen.map(|(n, variables)| (n, self.script.of_rule(n, variables)));
            if let (true, Some((_, steps))) = (is_due, &steps) {
                self.due.due(self.script.assertions(steps))?;
            }
            Ok(steps)
        });
        let chosen = match chosen {
            Ok(chosen) => chosen,
            Err(error) => {
                course.left.clear();
                course.refused = Some(self.script.lost(&error).what);
                return;
            }
        };
        match chosen {
            Some((n, steps)) => {
                course.rule = n;
                course.left.extend(steps);
            }
            None if self.script.unmatched == Unmatched::Ok => {
                course.refused = course.left.is_empty().then(String::new);
            }
            None => {
                course.left.clear();
                course.refused = Some(self.script.unmatched_text(prompt, &course.used));
            }
        }
    }

    /// Takes the rule for a tool result, if there is one: its steps take the place of those that are left, whose assertions are due no
    /// more.
    fn branch(&mut self, request: &Request) {
        let Some(course) = self.askers.get_mut(&request.who) else {
            return;
        };
        let rules = self.script.prompts.iter().enumerate();
        for (n, rule) in rules {
            let Some(wanted) = &rule.value.tool_result else {
                continue;
            };
            if course.used[n] >= rule.value.times.most() {
                continue;
            }
            for result in request.results.iter().rev() {
                let mut variables = Variables::new();
                if wanted.capture(result, &mut variables)
                    && rule.value.is_for(request, &course.prompt, &mut variables)
                {
                    let most = rule.value.times.most();
                    let is_free = match (&self.shared, &request.who.agent) {
                        (None, _) => Ok(true),
                        (Some(shared), None) => {
                            let use_up = |uses: &Uses| (uses.times(n) < most).then_some(n);
                            shared.choose(result, use_up).map(|used| used.is_some())
                        }
                        (Some(shared), Some(agent)) => shared.used_below(n, result, agent).map(|()| true),
                    };
                    let left = course.left.make_contiguous();
                    let steps = is_free.and_then(|is_free| {
                        if !is_free {
                            return Ok(None);
                        }
                        let steps = self.script.of_rule(n, variables);
                        self.due.settled(self.script.assertions(left))?;
                        self.due.due(self.script.assertions(&steps))?;
                        Ok(Some(steps))
                    });
                    match steps {
                        Ok(Some(steps)) => {
                            course.used[n] += 1;
                            course.rule = n;
                            course.refused = None;
                            course.left = steps.into();
                            return;
                        }
                        Ok(None) => {}
                        Err(error) => {
                            course.left.clear();
                            course.refused = Some(self.script.lost(&error).what);
                            return;
                        }
                    }
                }
            }
        }
    }

    /// Puts these steps in the place of what is left of a turn: steps of no rule.
    pub(crate) fn put(
        &mut self,
        who: &ModelCaller,
        prompt: &str,
        steps: &[Placed<Step>],
        variables: Variables,
    ) {
        let parent = NextStep::of_rule(0, variables);
        let course = self.askers.entry(who.clone()).or_default();
        prompt.clone_into(&mut course.prompt);
        course.left = self.script.steps(steps, "steps", &parent).into();
    }

    /// Whether nothing is left of a turn.
    pub(crate) fn is_idle(&self, who: &ModelCaller) -> bool {
        self.askers.get(who).is_none_or(|course| course.left.is_empty())
    }

    /// The steps of the next response: those of a [`Step::Response`], or all up to the next tool call; in any case not beyond
    /// what breaks it off. None are left when it is empty.
    pub(crate) fn next(&mut self, request: &Request) -> Taken {
        let Some(course) = self.askers.get_mut(&request.who) else {
            return Taken::default();
        };
        if let Some(result) = request.results.last() {
            course.result.clone_from(result);
        }
        let mut steps: Vec<NextStep> = Vec::new();
        let exact = course.left.front().is_some_and(|next| next.within.is_some());
        while let Some(mut next) = course.left.pop_front() {
            let continues = if exact {
                next.within == Some(false)
            } else {
                next.within.is_none()
            };
            if !steps.is_empty() && !continues {
                course.left.push_front(next);
                break;
            }
            let mut variables = request.variables.clone();
            variables.insert("prompt".to_owned(), course.prompt.clone());
            variables.insert("result".to_owned(), course.result.clone());
            variables.insert("last".to_owned(), course.result.clone());
            variables.insert("braces".to_owned(), "{{".to_owned());
            variables.extend(next.variables.clone());
            fill::fill(&mut next.step, &variables);
            let ends = match exact {
                true => breaks_off(&next.step),
                false => ends_response(&next.step),
            };
            steps.push(next);
            if ends {
                break;
            }
        }
        Taken { steps, exact }
    }

    /// Puts steps back that the next request is to get.
    #[cfg(feature = "api")]
    pub(crate) fn put_back(&mut self, who: &ModelCaller, steps: Vec<NextStep>) {
        if let Some(course) = self.askers.get_mut(who) {
            for next in steps.into_iter().rev() {
                course.left.push_front(next);
            }
        }
    }

    /// Drops what is left of a [`Step::Response`].
    pub(crate) fn skip_response(&mut self, who: &ModelCaller) {
        if let Some(course) = self.askers.get_mut(who) {
            while course.left.front().is_some_and(|next| next.within == Some(false)) {
                course.left.pop_front();
            }
        }
    }

    /// Drops what is left of a turn.
    pub(crate) fn give_up(&mut self, who: &ModelCaller) {
        if let Some(course) = self.askers.get_mut(who) {
            course.left.clear();
        }
    }

    /// The index of the rule in use.
    #[cfg(feature = "api")]
    pub(crate) fn rule(&self, who: &ModelCaller) -> usize {
        self.askers.get(who).map_or(0, |course| course.rule)
    }

    /// How many prompts of the client there were.
    #[cfg(feature = "api")]
    pub(crate) fn prompts(&self) -> usize {
        self.prompts
    }

    /// How often each rule was used: by all together if they share it, otherwise by whoever used it most.
    pub(crate) fn used(&self) -> io::Result<Vec<u32>> {
        let rules = 0..self.script.prompts.len();
        let shared = match &self.shared {
            Some(shared) => shared.uses()?,
            None => Uses::default(),
        };
        let most = |n: usize| {
            let by_one = self.askers.values().filter_map(|course| course.used.get(n)).max();
            by_one.copied().unwrap_or_default().max(shared.most(n))
        };
        Ok(rules.map(most).collect())
    }

    /// Which assertions are still due. Whoever judges one says so there.
    pub(crate) fn due(&self) -> &Progress {
        &self.due
    }

    /// The first step that is left, of everybody who has some left.
    #[cfg(feature = "api")]
    pub(crate) fn left(&self) -> Vec<&NextStep> {
        let mut left: Vec<&NextStep> = self
            .askers
            .values()
            .filter_map(|course| course.left.front())
            .collect();
        left.sort_by(|a, b| a.place.cmp(&b.place));
        left.dedup_by(|a, b| a.place == b.place);
        left
    }

    /// Why a request is refused that is one too many.
    fn too_many(&self, who: &ModelCaller) -> String {
        let course = self.askers.get(who);
        let limit = self.script.requests_per_prompt;
        let prompt = course.map(|course| course.prompt.as_str()).unwrap_or_default();
        let prompt: String = prompt.chars().take(80).collect();
        let rule = course.map_or(0, |course| course.rule);
        let place = match self.script.prompts.get(rule) {
            Some(rule_there) => self.script.place(rule_there.at, &format!("prompts[{rule}]")),
            None => self.script.name().to_owned(),
        };
        format!(
            "more than {limit} requests came since the last prompt, {prompt:?}, the last ones for the rule at {place}: this looks \
             like a loop; if it is none, set `requests_per_prompt`"
        )
    }
}

/// Whether a response ends with this step.
pub(super) fn ends_response(step: &Step) -> bool {
    match step {
        Step::Parallel(calls) => !calls.is_empty(),
        Step::Call(_)
        | Step::Plan(_)
        | Step::Ask(Ask::Question(_) | Ask::Questions(_))
        | Step::Subagent(_)
        | Step::Background(_)
        | Step::StopReason(_) => true,
        step => breaks_off(step),
    }
}

/// Whether a response breaks off at this step.
pub(crate) fn breaks_off(step: &Step) -> bool {
    matches!(
        step,
        Step::Drop | Step::Cut | Step::Stall | Step::Truncated | Step::MalformedEvent | Step::ErrorEvent(_)
    )
}

impl Rule {
    /// Whether the rule is used when its turn has come.
    fn is_in_order(&self) -> bool {
        !self.anytime && self.tool_result.is_none()
    }

    /// Whether the rule is for that prompt in that request. Adds what the pattern of the prompt captures.
    fn is_for(&self, request: &Request, prompt: &str, variables: &mut Variables) -> bool {
        let asker = match request.who.agent {
            None => Asker::Main,
            Some(_) => Asker::Subagent,
        };
        self.from == asker
            && self
                .model
                .as_ref()
                .is_none_or(|wanted| wanted.fits(&request.model))
            && self
                .has_tool
                .as_ref()
                .is_none_or(|wanted| request.tools.contains(wanted))
            && self
                .prompt
                .as_ref()
                .is_none_or(|wanted| wanted.capture(prompt, variables))
    }
}

impl Script {
    /// The rule with which a main agent goes on whose turn another process began.
    fn goes_on(
        &self,
        shared: &Progress,
        request: &Request,
        prompt: &str,
    ) -> io::Result<Option<(usize, Variables)>> {
        if !request.continued || request.who.agent.is_some() {
            return Ok(None);
        }
        let uses = shared.uses()?;
        let before = uses.newest().find(|(_, used_by)| *used_by == prompt);
        let mut variables = Variables::new();
        let rule = before.and_then(|(n, _)| Some((n, self.prompts.get(n)?)));
        let rule = rule.filter(|(_, rule)| rule.value.is_for(request, prompt, &mut variables));
        Ok(rule.map(|(n, _)| (n, variables)))
    }

    /// The same where others may have used rules, and may use them at this time. Each subagent goes through the rules for itself.
    fn choose_shared(
        &self,
        shared: &Progress,
        course: &mut Course,
        request: &Request,
        prompt: &str,
    ) -> io::Result<Option<(usize, Variables)>> {
        let rules = &self.prompts;
        if let Some(agent) = &request.who.agent {
            let chosen = self.choose(course, request, prompt);
            if let Some((n, _)) = &chosen {
                shared.used_below(*n, prompt, agent)?;
            }
            return Ok(chosen);
        }
        let mut chosen = None;
        shared.choose(prompt, |uses| {
            for (n, used) in course.used.iter_mut().enumerate() {
                *used = uses.times(n);
            }
            // The last that was used in order is the one whose turn it is.
            let used = uses.newest().map(|(n, _)| n);
            let in_order = |n: &usize| rules.get(*n).is_some_and(|rule| rule.value.is_in_order());
            course.current = used.filter(in_order).max().unwrap_or_default();
            chosen = self.choose(course, request, prompt);
            chosen.as_ref().map(|(n, _)| *n)
        })?;
        Ok(chosen)
    }

    /// The rule for a prompt, which is used up by it, and what it captures.
    fn choose(&self, course: &mut Course, request: &Request, prompt: &str) -> Option<(usize, Variables)> {
        let rules = &self.prompts;
        let asker = match request.who.agent {
            None => Asker::Main,
            Some(_) => Asker::Subagent,
        };
        let fits = |n: usize, used: &[u32]| {
            let rule = &rules[n].value;
            let mut variables = Variables::new();
            let fits = used[n] < rule.times.most() && rule.is_for(request, prompt, &mut variables);
            fits.then_some((n, variables))
        };
        let in_order = |n: &usize| rules[*n].value.is_in_order() && rules[*n].value.from == asker;
        let mut found = None;
        for n in (course.current..rules.len()).filter(in_order) {
            found = fits(n, &course.used);
            // A rule whose turn has come waits for its prompt.
            if found.is_some() || course.used[n] < rules[n].value.times.least() {
                break;
            }
        }
        if let Some((n, _)) = &found {
            course.current = *n;
        } else {
            let mut anytime =
                (0..rules.len()).filter(|n| rules[*n].value.anytime && rules[*n].value.tool_result.is_none());
            found = anytime.find_map(|n| fits(n, &course.used));
        }
        if let Some((n, _)) = &found {
            course.used[*n] += 1;
        }
        found
    }

    /// The steps of a rule.
    fn of_rule(&self, n: usize, variables: Variables) -> Vec<NextStep> {
        let rule = &self.prompts[n].value;
        let parent = NextStep::of_rule(n, variables);
        self.steps(&rule.steps, &format!("prompts[{n}].steps"), &parent)
    }

    /// Where the assertions among these steps stand, with those of the agents and of the work that the steps start.
    fn assertions(&self, steps: &[NextStep]) -> Vec<String> {
        let inner = |steps: &[Placed<Step>], name: &str, next: &NextStep| {
            self.assertions(&self.steps(steps, &format!("{}.{name}", next.place), next))
        };
        let of_step = |next: &NextStep| match &next.step {
            Step::Assert(_) => vec![next.place.clone()],
            Step::Subagent(agent) => [
                inner(&agent.steps, "steps", next),
                inner(&agent.then, "then", next),
            ]
            .concat(),
            Step::Background(background) => inner(&background.then, "then", next),
            _ => Vec::new(),
        };
        steps.iter().flat_map(of_step).collect()
    }

    /// Steps with the places where they stand, and the variables of the rule around them.
    fn steps(&self, steps: &[Placed<Step>], path: &str, parent: &NextStep) -> Vec<NextStep> {
        let mut all = Vec::new();
        for (n, step) in steps.iter().enumerate() {
            let path = format!("{path}[{n}]");
            match &step.value {
                Step::Response(inside) if !inside.is_empty() => {
                    let inside = self.steps(inside, &format!("{path}.response"), parent);
                    all.extend(inside.into_iter().enumerate().map(|(n, next)| NextStep {
                        within: Some(n == 0),
                        ..next
                    }));
                }
                value => all.push(NextStep {
                    place: self.place(step.at, &path),
                    step: value.clone(),
                    // One without content is a response of its own.
                    within: matches!(value, Step::Response(_)).then_some(true),
                    ..NextStep::of_rule(parent.rule, parent.variables.clone())
                }),
            }
        }
        all
    }

    /// Why a prompt has no answer.
    fn unmatched_text(&self, prompt: &str, used: &[u32]) -> String {
        let shown: String = prompt.chars().take(200).collect();
        let mut text = format!("no rule of the script is for the prompt {shown:?}");
        let rated = self.prompts.iter().enumerate().map(|(n, rule)| {
            let wanted = rule.value.prompt.as_ref().map_or("", |prompt| prompt.wanted());
            (strsim::jaro_winkler(prompt, wanted), n)
        });
        let Some((_, n)) = rated.max_by(|a, b| a.0.total_cmp(&b.0)) else {
            return text + "; it has none at all";
        };
        let rule = &self.prompts[n];
        let place = self.place(rule.at, &format!("prompts[{n}]"));
        let wanted = match &rule.value.prompt {
            Some(wanted) => wanted.to_string(),
            None => "any prompt".to_owned(),
        };
        text.push_str(&format!("; the nearest is at {place}, for {wanted}"));
        let most = rule.value.times.most();
        if used[n] >= most {
            let times = if most == 1 {
                "once".to_owned()
            } else {
                format!("{most} times")
            };
            text.push_str(&format!(", which has been used already ({times})"));
        } else if rule
            .value
            .prompt
            .as_ref()
            .is_none_or(|wanted| wanted.fits(prompt))
        {
            text.push_str(match (&rule.value.tool_result, rule.value.from) {
                (Some(_), _) => " and a tool result",
                (None, Asker::Subagent) => " of a subagent",
                (None, Asker::Main) if rule.value.model.is_some() || rule.value.has_tool.is_some() => {
                    ", if its model and its tools fit, or whose turn it is not"
                }
                (None, Asker::Main) => ", whose turn it is not",
            });
        }
        text
    }
}
