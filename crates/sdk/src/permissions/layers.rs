//! Deciders that are put together: each decides about a call, or leaves it to the next.

use std::fmt;
use std::sync::Arc;

use outrigger_protocol::RawJson;
use tokio::sync::mpsc;

use super::rules::Rules;
use super::{PermissionDecision, PermissionHandler, PermissionRequest};
use crate::peer::BoxFuture;

/// What a [`Layer`] says about a call.
#[derive(Debug, Clone)]
pub enum Opinion {
    /// It decides.
    Decided(PermissionDecision),
    /// It wants the last of the layers to decide, usually a person: no layer between may allow the call.
    Ask,
    /// It has nothing to say: the next layer is asked.
    Pass,
}

/// Decides about calls, or leaves them to others. Put together by a [`Chain`].
///
/// A [`Policy`](super::Policy) is one, and so is an async closure that returns an [`Opinion`], by [`layer`].
pub trait Layer: Send + Sync + 'static {
    /// What it says about a call.
    fn consider<'a>(&'a self, request: &'a PermissionRequest) -> BoxFuture<'a, (Opinion, Option<String>)>;

    /// Rules that the CLI judges for it, before it asks anybody.
    ///
    /// Those that ask or refuse hold whichever layer has them. Those that allow are an error when the session starts if a layer
    /// before it decides for itself, since that layer would not be asked about what they allow.
    fn rules(&self) -> Rules {
        Rules::default()
    }

    /// Whether all that it has to say about what may run is in its [`rules`](Self::rules), so that it allows and refuses nothing
    /// of what the CLI asks.
    fn only_has_rules(&self) -> bool {
        false
    }

    /// What it would say about a call; see [`PermissionHandler::foresee`].
    fn foresee(&self, tool: &str, input: &RawJson) -> Foreseen {
        let _ = (tool, input);
        Foreseen::unknown("decides when it is asked")
    }
}

/// What would become of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outlook {
    /// It would run.
    Allowed,
    /// It would be refused.
    Refused,
    /// It would be left to whoever comes next.
    Asked,
    /// That shows only when it is asked.
    Unknown,
}

/// What a decider would say about a call, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Foreseen {
    /// What would become of the call.
    pub outlook: Outlook,
    /// The name of the layer, in a [`Chain`].
    pub layer: Option<String>,
    /// The rule that decides.
    pub rule: Option<String>,
    /// Why, for people.
    pub why: String,
}

impl Foreseen {
    /// A reason without a rule.
    pub fn new(outlook: Outlook, why: impl Into<String>) -> Self {
        Self {
            outlook,
            layer: None,
            rule: None,
            why: why.into(),
        }
    }

    /// The outlook of what decides only when it is asked.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self::new(Outlook::Unknown, why)
    }

    /// The same, by this rule.
    pub fn by(mut self, rule: impl Into<String>) -> Self {
        self.rule = Some(rule.into());
        self
    }
}

/// Who decided about a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DecidedBy {
    /// The name of the layer, in a [`Chain`].
    pub layer: Option<String>,
    /// The rule, or why there is none.
    pub rule: Option<String>,
}

/// Makes a layer of an async closure.
///
/// ```
/// use outrigger::permissions::{chain, layer, Opinion, PermissionDecision, Policy};
///
/// // What the rules allow runs without a question; the closure decides about what the CLI asks.
/// let handler = chain()
///     .layer("rules", Policy::ask_all().allow(["Bash(cargo test *)"]))
///     .layer("no nights", layer(|request| async move {
///         let is_night = false;
///         if is_night { Opinion::Decided(PermissionDecision::deny("not at night")) } else { Opinion::Pass }
///     }))
///     .last("nobody", Policy::deny_all());
/// # let _ = handler;
/// ```
///
/// # Cancel safety
/// As for an async function that is a [`PermissionHandler`].
pub fn layer<F, R>(consider: F) -> impl Layer
where
    F: Fn(PermissionRequest) -> R + Send + Sync + 'static,
    R: Future<Output = Opinion> + Send + 'static,
{
    struct Closure<F>(F);
    impl<F, R> Layer for Closure<F>
    where
        F: Fn(PermissionRequest) -> R + Send + Sync + 'static,
        R: Future<Output = Opinion> + Send + 'static,
    {
        fn consider<'a>(
            &'a self,
            request: &'a PermissionRequest,
        ) -> BoxFuture<'a, (Opinion, Option<String>)> {
            let considering = (self.0)(request.clone());
            Box::pin(async { (considering.await, None) })
        }
    }
    Closure(consider)
}

/// Begins a [`Chain`]: the first of its layers that decides does.
pub fn chain() -> Chain {
    Chain { layers: Vec::new() }
}

/// Layers, of which the first that decides does. [`last`](Self::last) makes a handler of them.
///
/// What a policy refuses by a rule the CLI refuses, whichever layer the policy is, also the last one and in a chain inside of a
/// chain. What a policy allows by a rule runs without a question, so policies with such rules come first: behind a layer that
/// decides for itself they are an error when the session starts.
#[derive(Clone)]
pub struct Chain {
    layers: Vec<(String, Arc<dyn Layer>)>,
}

impl Chain {
    /// Adds a layer, with the name that records and explanations give it.
    pub fn layer(mut self, name: impl Into<String>, layer: impl Layer) -> Self {
        self.layers.push((name.into(), Arc::new(layer)));
        self
    }

    /// Ends it: decides what no layer does, and what layers want to be asked. Usually asks a person.
    ///
    /// # Cancel safety
    /// The layer that is being asked is dropped with the question when the CLI withdraws it; those behind it are not asked.
    pub fn last(self, name: impl Into<String>, handler: impl PermissionHandler) -> impl PermissionHandler {
        Chained {
            layers: self.layers,
            name: name.into(),
            last: Arc::new(handler),
        }
    }

    /// Ends it: what no layer decides is refused.
    ///
    /// # Cancel safety
    /// As [`last`](Self::last).
    pub fn or_deny(self) -> impl PermissionHandler {
        self.last("nobody", super::Policy::deny_all())
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.layers.iter().map(|(name, _)| name))
            .finish()
    }
}

struct Chained {
    layers: Vec<(String, Arc<dyn Layer>)>,
    name: String,
    last: Arc<dyn PermissionHandler>,
}

impl PermissionHandler for Chained {
    fn decide<'a>(&'a self, request: PermissionRequest) -> BoxFuture<'a, PermissionDecision> {
        Box::pin(async { self.decide_and_tell(request).await.0 })
    }

    fn decide_and_tell<'a>(
        &'a self,
        request: PermissionRequest,
    ) -> BoxFuture<'a, (PermissionDecision, DecidedBy)> {
        let by = |layer: &str, rule| DecidedBy {
            layer: Some(layer.to_owned()),
            rule,
        };
        Box::pin(async move {
            for (name, layer) in &self.layers {
                match layer.consider(&request).await {
                    (Opinion::Decided(decision), rule) => return (decision, by(name, rule)),
                    (Opinion::Ask, _) => break,
                    (Opinion::Pass, _) => {}
                }
            }
            let (decision, decided) = self.last.decide_and_tell(request).await;
            let layer = decided
                .layer
                .map_or_else(|| self.name.clone(), |inner| format!("{}: {inner}", self.name));
            (decision, by(&layer, decided.rule))
        })
    }

    fn rules(&self) -> Rules {
        let mut rules = Rules::default();
        let mut decides: Option<&str> = None;
        let mut take = |decides: Option<&str>, mut of: Rules| {
            if let (Some(name), Some(rule)) = (decides, of.allow.first()) {
                of.misplaced
                    .get_or_insert_with(|| (rule.clone(), name.to_owned()));
            }
            rules.add(of);
        };
        for (name, layer) in &self.layers {
            take(decides, layer.rules());
            if !layer.only_has_rules() {
                decides.get_or_insert(name);
            }
        }
        take(decides, self.last.rules());
        rules
    }

    fn foresee(&self, tool: &str, input: &RawJson) -> Foreseen {
        let named = |name: &str, foreseen: Foreseen| Foreseen {
            layer: Some(match foreseen.layer {
                Some(inner) => format!("{name}: {inner}"),
                None => name.to_owned(),
            }),
            ..foreseen
        };
        let all: Vec<(&String, Foreseen)> = self
            .layers
            .iter()
            .map(|(name, layer)| (name, layer.foresee(tool, input)))
            .collect();
        // Rules that refuse come first.
        if let Some((name, refused)) = all
            .iter()
            .find(|(_, foreseen)| foreseen.outlook == Outlook::Refused && foreseen.rule.is_some())
        {
            return named(name, refused.clone());
        }
        for (name, foreseen) in all {
            match foreseen.outlook {
                Outlook::Asked if foreseen.rule.is_some() => break,
                Outlook::Asked => {}
                _ => return named(name, foreseen),
            }
        }
        named(&self.name, self.last.foresee(tool, input))
    }

    fn answers_questions(&self) -> bool {
        self.last.answers_questions()
    }
}

/// A decision, for the record.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Decided {
    /// What was asked.
    pub request: PermissionRequest,
    /// What was said.
    pub decision: PermissionDecision,
    /// Who said it.
    pub by: DecidedBy,
}

/// Where [`record`] puts decisions: a closure, or the sending half of a channel.
pub trait Sink: Send + Sync + 'static {
    /// Takes one. The decision goes out once this returns.
    fn take<'a>(&'a self, decided: Decided) -> BoxFuture<'a, ()>;
}

impl<F: Fn(Decided) + Send + Sync + 'static> Sink for F {
    fn take<'a>(&'a self, decided: Decided) -> BoxFuture<'a, ()> {
        self(decided);
        Box::pin(std::future::ready(()))
    }
}

/// Decisions wait for room in the channel. When nobody receives any more they go out all the same, with a warning in the log.
impl Sink for mpsc::Sender<Decided> {
    fn take<'a>(&'a self, decided: Decided) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Err(mpsc::error::SendError(decided)) = self.send(decided).await {
                tracing::warn!(tool = %decided.request.tool_name, "nobody receives the record of permission decisions");
            }
        })
    }
}

/// Has each decision of a handler recorded before it goes out: the request, what was said, and which layer and rule said it.
///
/// What the CLI decides by itself, by rules for one, it asks nobody about: hooks see all calls.
///
/// What the CLI withdraws before it was decided is not recorded. A call that was [parked](PermissionDecision::Parked) is
/// recorded as such; what is said later by [`Session::decide`](crate::Session::decide) is not. A closure that panics refuses
/// the call.
///
/// ```
/// use outrigger::permissions::{record, Policy};
///
/// let handler = record(Policy::read_only(), |decided: outrigger::permissions::Decided| {
///     eprintln!("{} {:?}: {:?}", decided.request.tool_name, decided.by, decided.decision);
/// });
/// # let _ = handler;
/// ```
///
/// # Cancel safety
/// The handler is dropped with the question when the CLI withdraws it, and nothing is recorded. A decision that waits for room in
/// a channel then is lost with its record, and does not go out.
pub fn record(handler: impl PermissionHandler, sink: impl Sink) -> impl PermissionHandler {
    struct Recorded<H, S>(H, S);
    impl<H: PermissionHandler, S: Sink> PermissionHandler for Recorded<H, S> {
        fn decide<'a>(&'a self, request: PermissionRequest) -> BoxFuture<'a, PermissionDecision> {
            Box::pin(async { self.decide_and_tell(request).await.0 })
        }

        fn decide_and_tell<'a>(
            &'a self,
            request: PermissionRequest,
        ) -> BoxFuture<'a, (PermissionDecision, DecidedBy)> {
            Box::pin(async move {
                let (decision, by) = self.0.decide_and_tell(request.clone()).await;
                let decided = Decided {
                    request,
                    decision: decision.clone(),
                    by: by.clone(),
                };
                self.1.take(decided).await;
                (decision, by)
            })
        }

        fn rules(&self) -> Rules {
            self.0.rules()
        }

        fn foresee(&self, tool: &str, input: &RawJson) -> Foreseen {
            self.0.foresee(tool, input)
        }

        fn answers_questions(&self) -> bool {
            self.0.answers_questions()
        }
    }
    Recorded(handler, sink)
}

#[cfg(test)]
mod tests;
