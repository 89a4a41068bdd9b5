//! Amazon S3, and servers that speak as it does.

mod http;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::{BackoffConfig, ObjectStore, RetryConfig};
use outrigger_sessions::store::{Result, StoreError};

use self::http::Connector;
use super::BucketStore;

/// The address of a bucket, and the credentials: [`open`](Self::open) makes a store of it.
///
/// Settings that are not given come from the environment, under the names of Amazon's own tools: `AWS_ACCESS_KEY_ID`,
/// `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`, `AWS_ENDPOINT_URL`, a web identity, and else the role of the machine or
/// container. Bucket names are in the path unless [`virtual_hosted`](Self::virtual_hosted) is set.
///
/// A request is sent up to five times within 20 seconds if the server is busy or the connection fails.
#[derive(Clone)]
pub struct S3 {
    builder: AmazonS3Builder,
    bucket: String,
    prefix: String,
    authorities: Option<PathBuf>,
}

impl fmt::Debug for S3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The rest has secrets.
        f.debug_struct("S3")
            .field("bucket", &self.bucket)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

impl S3 {
    /// A bucket of Amazon's, unless the environment has another endpoint. The bucket has to exist.
    pub fn new(bucket: impl Into<String>) -> Self {
        let bucket = bucket.into();
        Self {
            builder: AmazonS3Builder::from_env().with_bucket_name(&bucket),
            bucket,
            prefix: String::new(),
            authorities: None,
        }
    }

    /// Another server: `https://storage.example.com`, or with `http://` one without TLS.
    #[must_use]
    pub fn endpoint(mut self, url: impl Into<String>) -> Self {
        self.builder = self.builder.with_endpoint(url);
        self
    }

    /// The region; `us-east-1` by default.
    #[must_use]
    pub fn region(mut self, region: impl Into<String>) -> Self {
        self.builder = self.builder.with_region(region);
        self
    }

    /// A key and its secret.
    #[must_use]
    pub fn credentials(mut self, key: impl Into<String>, secret: impl Into<String>) -> Self {
        self.builder = self
            .builder
            .with_access_key_id(key)
            .with_secret_access_key(secret);
        self
    }

    /// Whether the bucket is part of the host's name. An [`endpoint`](Self::endpoint) has to have it then.
    #[must_use]
    pub fn virtual_hosted(mut self, is_virtual_hosted: bool) -> Self {
        self.builder = self.builder.with_virtual_hosted_style_request(is_virtual_hosted);
        self
    }

    /// The prefix of the names of all objects, such as `teams/one`. Empty by default.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// A file of certificates (PEM) by which the server proves who it is, instead of the system's.
    #[must_use]
    pub fn authorities(mut self, file: impl AsRef<Path>) -> Self {
        self.authorities = Some(file.as_ref().to_owned());
        self
    }

    /// The object store by itself.
    ///
    /// # Errors
    /// When the settings make no sense, or need something that the client does not support, such as a proxy.
    pub fn objects(&self) -> Result<Arc<dyn ObjectStore>> {
        let mut builder = self.builder.clone();
        let endpoint = builder.get_config_value(&AmazonS3ConfigKey::Endpoint);
        if endpoint.is_some_and(|url| url.starts_with("http://")) {
            builder = builder.with_allow_http(true);
        }
        let retry = RetryConfig {
            backoff: BackoffConfig {
                init_backoff: Duration::from_millis(100),
                max_backoff: Duration::from_secs(3),
                base: 2.0,
            },
            max_retries: 4,
            retry_timeout: Duration::from_secs(20),
        };
        let builder = builder
            .with_retry(retry)
            .with_http_connector(Connector::new(self.authorities.as_deref())?);
        let built = builder.build().map_err(|error| {
            StoreError::failed(
                format!("the bucket {} can't be used as it is set up", self.bucket),
                error,
            )
        })?;
        Ok(Arc::new(built))
    }

    /// A store of sessions in the bucket, checked as in [`BucketStore::open`].
    ///
    /// # Cancel safety
    /// As [`BucketStore::open`].
    ///
    /// # Errors
    /// As [`objects`](Self::objects) and [`BucketStore::open`].
    pub async fn open(&self) -> Result<BucketStore> {
        BucketStore::open(self.objects()?, &self.prefix).await
    }
}
