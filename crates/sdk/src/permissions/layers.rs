//! Layers of a permission handler: each decides about a call, or passes it to the next.

use std::fmt;
use std::sync::Arc;

use outrigger_protocol::RawJson;
use tokio::sync::mpsc;

use super::policy::asks;
use super::rules::Rules;
use super::{PermissionDecision, PermissionHandler, PermissionRequest};
use crate::peer::BoxFuture;

/// The opinion of a [`Layer`] about a call.
#[derive(Debug, Clone)]
pub enum Opinion {
    /// The layer decides.
    Decided(PermissionDecision),
    /// The last layer, usually a person, decides: no layer between may allow the call, and no layer before the last one of a chain
    /// that is the last layer.
    Ask,
    /// The layer has no opinion: the next layer decides.
    Pass,
}

/// Decides about calls, or passes them on. A [`Chain`] combines layers.
///
/// A [`Policy`](super::Policy) is one, and so is an async closure that returns an [`Opinion`], by [`layer`].
pub trait Layer: Send + Sync + 'static {
    /// The layer's opinion about a call.
    fn consider<'a>(&'a self, request: &'a PermissionRequest) -> BoxFuture<'a, (Opinion, Option<String>)>;

    /// Rules that the CLI evaluates for the layer, before it requests permission.
    ///
    /// Ask and deny rules hold in any layer: only the last layer may allow a call that an ask rule matches. Allow rules are an error at
    /// the start if a layer before this one decides for itself: that layer would not see the calls that they allow.
    fn rules(&self) -> Rules {
        Rules::default()
    }

    /// Whether the layer's [`rules`](Self::rules) are all that it decides by, so that it never allows or denies a request of the
    /// CLI.
    fn only_has_rules(&self) -> bool {
        false
    }

    /// The layer's expected opinion about a call; see [`PermissionHandler::foresee`].
    fn foresee(&self, tool: &str, input: &RawJson) -> Foreseen {
        let _ = (tool, input);
        Foreseen::unknown("decides when it is asked")
    }
}

/// The expected decision about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outlook {
    /// The call would run.
    Allowed,
    /// The call would be denied.
    Refused,
    /// The next decider would decide.
    Asked,
    /// Known only when the decider is called.
    Unknown,
}

/// The expected decision about a call, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Foreseen {
    /// The expected decision.
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

    /// For a decider whose decision is known only when it is called.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self::new(Outlook::Unknown, why)
    }

    /// The same, by this rule.
    pub fn by(mut self, rule: impl Into<String>) -> Self {
        self.rule = Some(rule.into());
        self
    }
}

/// What decided about a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DecidedBy {
    /// The name of the layer, in a [`Chain`].
    pub layer: Option<String>,
    /// The rule, or the reason if there is none.
    pub rule: Option<String>,
}

/// Makes a layer of an async closure.
///
/// ```
/// use outrigger::permissions::{chain, layer, Opinion, PermissionDecision, Policy};
///
/// // Calls that the rules allow run without a request; the closure sees the others.
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

/// Begins a [`Chain`]. The first layer that has an opinion decides.
pub fn chain() -> Chain {
    Chain { layers: Vec::new() }
}

/// Layers; the first one that has an opinion decides. [`last`](Self::last) makes a handler of them.
///
/// The CLI enforces the deny rules of every policy in the chain, also of the last one and of chains inside. Calls that an allow
/// rule matches run without a request, so policies with allow rules must come first: behind a layer that decides for itself they
/// are an error at the start.
#[derive(Clone)]
pub struct Chain {
    layers: Vec<(String, Arc<dyn Layer>)>,
}

impl Chain {
    /// Adds a layer. Records and explanations show its name.
    pub fn layer(mut self, name: impl Into<String>, layer: impl Layer) -> Self {
        self.layers.push((name.into(), Arc::new(layer)));
        self
    }

    /// Ends the chain. This handler, usually a person, decides the calls that no layer decides and those that a layer passes to it.
    ///
    /// # Cancel safety
    /// When the CLI withdraws its request, the SDK drops the future of the current layer; the layers behind it are not called.
    pub fn last(self, name: impl Into<String>, handler: impl PermissionHandler) -> impl PermissionHandler {
        Chained {
            layers: self.layers,
            name: name.into(),
            last: Arc::new(handler),
        }
    }

    /// Ends the chain: a call that no layer decides is denied.
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
        mut request: PermissionRequest,
    ) -> BoxFuture<'a, (PermissionDecision, DecidedBy)> {
        let by = |layer: &str, rule| DecidedBy {
            layer: Some(layer.to_owned()),
            rule,
        };
        Box::pin(async move {
            // A rule may be that of any layer.
            request.is_for_last = request.is_for_last || asks(&self.rules().ask, &request, true);
            for (name, layer) in &self.layers {
                match layer.consider(&request).await {
                    (Opinion::Decided(decision), _) if request.is_for_last && decision.is_allow() => {}
                    (Opinion::Decided(decision), rule) => return (decision, by(name, rule)),
                    (Opinion::Ask, _) => {
                        request.is_for_last = true;
                        break;
                    }
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
        let is_for_last = all
            .iter()
            .any(|(_, foreseen)| foreseen.outlook == Outlook::Asked && foreseen.rule.is_some());
        for (name, foreseen) in all {
            match foreseen.outlook {
                Outlook::Allowed if is_for_last => {}
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

/// A recorded decision.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Decided {
    /// The request.
    pub request: PermissionRequest,
    /// The decision.
    pub decision: PermissionDecision,
    /// What decided.
    pub by: DecidedBy,
}

/// Takes the decisions of [`record`]: a closure, or the sending half of a channel.
pub trait Sink: Send + Sync + 'static {
    /// Takes a decision. The SDK sends the reply once this returns.
    fn take<'a>(&'a self, decided: Decided) -> BoxFuture<'a, ()>;
}

impl<F: Fn(Decided) + Send + Sync + 'static> Sink for F {
    fn take<'a>(&'a self, decided: Decided) -> BoxFuture<'a, ()> {
        self(decided);
        Box::pin(std::future::ready(()))
    }
}

/// A decision waits for room in the channel. When the receiver is gone, the SDK sends the reply without a record, and logs a warning.
impl Sink for mpsc::Sender<Decided> {
    fn take<'a>(&'a self, decided: Decided) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Err(mpsc::error::SendError(decided)) = self.send(decided).await {
                tracing::warn!(tool = %decided.request.tool_name, "the receiver of permission records is gone");
            }
        })
    }
}

/// Records each decision of a handler before the SDK sends the reply: the request, the decision, and the layer and rule that decided.
///
/// The CLI sends no request for calls that it decides by itself, for example by rules; hooks see all calls.
///
/// A request that the CLI withdraws before the decision is not recorded. A [parked](PermissionDecision::Parked) call is recorded
/// as parked; a later [`Session::decide`](crate::Session::decide) is not recorded. A closure that panics denies the call.
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
/// When the CLI withdraws its request, the SDK drops the handler's future and records nothing. A decision that waits for room in a
/// channel is dropped with its record, and not sent.
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
