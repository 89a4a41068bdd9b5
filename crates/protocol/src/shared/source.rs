//! Where the bytes of images and documents are.

use serde::{Deserialize, Serialize};

use super::content::ContentBlock;
use super::text_or::TextOr;
use crate::wire_enum;

wire_enum! {
    /// Where a picture is.
    pub enum ImageSource by "type" {
        /// In the message.
        "base64" => Base64(Base64Source),
        /// At an address that the API fetches.
        "url" => Url(UrlSource),
        /// Among the files uploaded to the API.
        "file" => File(FileSource),
    }
}

wire_enum! {
    /// Where a document is.
    pub enum DocumentSource by "type" {
        /// In the message, as PDF.
        "base64" => Base64(Base64Source),
        /// In the message, as plain text.
        "text" => Text(TextSource),
        /// In the message, as blocks that may be cited one by one.
        "content" => Content(ContentSource),
        /// At an address that the API fetches.
        "url" => Url(UrlSource),
        /// Among the files uploaded to the API.
        "file" => File(FileSource),
    }
}

/// `base64`: bytes in the message.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Base64Source {
    /// The data's media type, such as `image/png` or `application/pdf`.
    pub media_type: String,
    /// The bytes in base64.
    pub data: String,
}

/// `url`: an address that the API fetches.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct UrlSource {
    /// The address.
    pub url: String,
}

/// `file`: a file uploaded to the API before.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct FileSource {
    /// The file's id.
    pub file_id: String,
}

/// `text`: plain text in the message.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TextSource {
    /// `text/plain`.
    pub media_type: String,
    /// The text.
    pub data: String,
}

/// `content`: text or blocks in the message.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ContentSource {
    /// The content.
    pub content: TextOr<ContentBlock>,
}
