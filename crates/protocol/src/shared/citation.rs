//! What a piece of text refers to.

use serde::{Deserialize, Serialize};

use crate::wire_enum;

wire_enum! {
    /// What a piece of text refers to.
    pub enum Citation by "type" {
        /// Characters of a plain text document.
        "char_location" => CharLocation(CharLocation),
        /// Pages of a PDF.
        "page_location" => PageLocation(PageLocation),
        /// Blocks of a document.
        "content_block_location" => ContentBlockLocation(ContentBlockLocation),
        /// Blocks of a search result.
        "search_result_location" => SearchResultLocation(SearchResultLocation),
        /// A web page.
        "web_search_result_location" => WebSearchResultLocation(WebSearchResultLocation),
    }
}

/// `char_location`: characters of a plain text document.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct CharLocation {
    /// The text referred to.
    pub cited_text: String,
    /// Which document of the conversation, from 0.
    pub document_index: u64,
    /// The document's title.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub document_title: Option<String>,
    /// The document's file.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub file_id: Option<String>,
    /// The first character, from 0.
    pub start_char_index: u64,
    /// The character behind the last.
    pub end_char_index: u64,
}

/// `page_location`: pages of a PDF.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PageLocation {
    /// The text referred to.
    pub cited_text: String,
    /// Which document of the conversation, from 0.
    pub document_index: u64,
    /// The document's title.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub document_title: Option<String>,
    /// The document's file.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub file_id: Option<String>,
    /// The first page, from 1.
    pub start_page_number: u64,
    /// The page behind the last.
    pub end_page_number: u64,
}

/// `content_block_location`: blocks of a document.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ContentBlockLocation {
    /// The text referred to.
    pub cited_text: String,
    /// Which document of the conversation, from 0.
    pub document_index: u64,
    /// The document's title.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub document_title: Option<String>,
    /// The document's file.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub file_id: Option<String>,
    /// The first block, from 0.
    pub start_block_index: u64,
    /// The block behind the last.
    pub end_block_index: u64,
}

/// `search_result_location`: blocks of a search result.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct SearchResultLocation {
    /// The text referred to.
    pub cited_text: String,
    /// Which search result of the conversation, from 0.
    pub search_result_index: u64,
    /// Where the result is from.
    pub source: String,
    /// The result's title.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub title: Option<String>,
    /// The first block, from 0.
    pub start_block_index: u64,
    /// The block behind the last.
    pub end_block_index: u64,
}

/// `web_search_result_location`: a web page.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct WebSearchResultLocation {
    /// The text referred to.
    pub cited_text: String,
    /// The reference; goes back to the API unchanged.
    pub encrypted_index: String,
    /// The page's title.
    #[serde(default, skip_serializing_if = "crate::whole::unset")]
    pub title: Option<String>,
    /// The page's address.
    pub url: String,
}
