//! The server, or the cluster, and how scripts are run there.

use std::fmt;
use std::time::Duration;

use outrigger_sessions::store::{Result, StoreError, StoreErrorKind};
use redis::aio::{ConnectionLike as _, ConnectionManager};
use redis::cluster_async::ClusterConnection;
use redis::{
    Cmd, ErrorKind, FromRedisValue, Pipeline, RedisError, RedisResult, Script, ServerErrorKind, Value,
};

/// Sends commands. Cheap to clone: all clones share the connection.
#[derive(Clone)]
pub(super) enum RedisConnection {
    One(ConnectionManager),
    Cluster(ClusterConnection),
}

#[derive(Clone)]
pub(super) struct Server {
    pub(super) link: RedisConnection,
    pub(super) patience: Duration,
    /// How many replicas have to have a write before it counts as done.
    pub(super) replicas: usize,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("is_cluster", &matches!(self.link, RedisConnection::Cluster(_)))
            .field("patience", &self.patience)
            .field("replicas", &self.replicas)
            .finish()
    }
}

/// A script, and its purpose, for errors.
#[derive(Debug)]
pub(super) struct NamedScript {
    what: &'static str,
    code: &'static str,
    script: Script,
}

impl NamedScript {
    pub(super) fn new(what: &'static str, code: &'static str) -> Self {
        Self {
            what,
            code,
            script: Script::new(code),
        }
    }

    /// By its name, as the server knows it once it has seen it; or with its text.
    fn command(&self, with_text: bool, keys: &[&str], arguments: &[&str]) -> Cmd {
        let mut command = if with_text {
            let mut command = redis::cmd("EVAL");
            command.arg(self.code);
            command
        } else {
            let mut command = redis::cmd("EVALSHA");
            command.arg(self.script.get_hash());
            command
        };
        command.arg(keys.len()).arg(keys).arg(arguments);
        command
    }
}

impl Server {
    /// One command, answered in time.
    pub(super) async fn query<T: FromRedisValue>(&self, what: &str, command: &Cmd) -> Result<T> {
        let answer = self.within(what, self.send(command)).await?;
        let answer = answer.and_then(Value::extract_error);
        let answer = answer.and_then(|value| redis::from_redis_value(value).map_err(RedisError::from));
        answer.map_err(|error| failed(what, error))
    }

    /// A command that writes, done once the replicas have it.
    pub(super) async fn execute<T: FromRedisValue>(&self, what: &str, command: &Cmd) -> Result<T> {
        let answer = self.written(what, command).await?;
        let answer = answer.and_then(|value| redis::from_redis_value(value).map_err(RedisError::from));
        answer.map_err(|error| failed(what, error))
    }

    /// A script that only reads.
    pub(super) async fn read<T: FromRedisValue>(
        &self,
        work: &NamedScript,
        keys: &[&str],
        arguments: &[&str],
    ) -> Result<Vec<T>> {
        match self.query(work.what, &work.command(false, keys, arguments)).await {
            Err(error) if is_unknown(&error) => {
                self.query(work.what, &work.command(true, keys, arguments)).await
            }
            done => done,
        }
    }

    /// A script that writes, done once the replicas have it.
    pub(super) async fn write(
        &self,
        work: &NamedScript,
        keys: &[&str],
        arguments: &[&str],
    ) -> Result<Vec<String>> {
        let command = work.command(false, keys, arguments);
        let answer: Vec<Vec<u8>> = match self.execute(work.what, &command).await {
            Err(error) if is_unknown(&error) => {
                self.execute(work.what, &work.command(true, keys, arguments))
                    .await?
            }
            answer => answer?,
        };
        // A damaged text, such as a summary, must not fail the write that replaces it.
        let text = |bytes| String::from_utf8(bytes).unwrap_or_default();
        Ok(answer.into_iter().map(text).collect())
    }

    async fn written(&self, what: &str, command: &Cmd) -> Result<RedisResult<Value>> {
        if self.replicas == 0 {
            let answer = self.within(what, self.send(command)).await?;
            return Ok(answer.and_then(Value::extract_error));
        }
        // Both by the same connection: the server waits for what this one has written.
        let mut pipeline = Pipeline::with_capacity(2);
        pipeline.add_command(command.clone());
        pipeline
            .cmd("WAIT")
            .arg(self.replicas)
            .arg(self.patience.as_millis() as u64 / 2);
        let answers = match self.within(what, self.send_both(&pipeline)).await? {
            Ok(answers) => answers,
            Err(error) => return Ok(Err(error)),
        };
        let mut answers = answers.into_iter().map(Value::extract_error);
        let (done, have) = (answers.next(), answers.next());
        let done = match done.unwrap_or(Ok(Value::Nil)) {
            Ok(done) => done,
            Err(error) => return Ok(Err(error)),
        };
        let have = have
            .unwrap_or(Ok(Value::Nil))
            .map_err(|error| failed(what, error))?;
        let have: usize = redis::from_redis_value(have).unwrap_or(0);
        if have < self.replicas {
            let what = format!(
                "the Redis session store could {what}, but only {have} of {} replicas have it",
                self.replicas
            );
            return Err(StoreError::new(StoreErrorKind::Failed, what));
        }
        Ok(Ok(done))
    }

    async fn send(&self, command: &Cmd) -> RedisResult<Value> {
        match self.link.clone() {
            RedisConnection::One(mut link) => link.req_packed_command(command).await,
            RedisConnection::Cluster(mut link) => link.req_packed_command(command).await,
        }
    }

    /// Sends both, in a cluster to the one node that the first of them is for.
    async fn send_both(&self, pipeline: &Pipeline) -> RedisResult<Vec<Value>> {
        match self.link.clone() {
            RedisConnection::One(mut link) => link.req_packed_commands(pipeline, 0, 2).await,
            RedisConnection::Cluster(mut link) => link.req_packed_commands(pipeline, 0, 2).await,
        }
    }

    async fn within<T>(&self, what: &str, work: impl Future<Output = T>) -> Result<T> {
        let done = tokio::time::timeout(self.patience, work).await;
        done.map_err(|_| {
            let what = format!(
                "the Redis session store could not {what}: no answer within {:?}",
                self.patience
            );
            StoreError::new(StoreErrorKind::Failed, what)
        })
    }
}

pub(super) fn failed(what: &str, error: RedisError) -> StoreError {
    StoreError::failed(format!("the Redis session store could not {what}"), error)
}

/// Whether the server has not seen the script yet, or not since it was started.
fn is_unknown(error: &StoreError) -> bool {
    let error = std::error::Error::source(error).and_then(|error| error.downcast_ref::<RedisError>());
    error.is_some_and(|error| error.kind() == ErrorKind::Server(ServerErrorKind::NoScript))
}

/// Whether a key has something else than this store puts there.
pub(super) fn is_of_wrong_type(error: &StoreError) -> bool {
    let error = std::error::Error::source(error).and_then(|error| error.downcast_ref::<RedisError>());
    error.is_some_and(|error| error.code() == Some("WRONGTYPE"))
}
