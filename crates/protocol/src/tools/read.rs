//! `Read`: reads a file.
// Written by `cargo xtask types` from what upstream declares and upstream/tools/read.toml: change that instead.

use serde::{Deserialize, Serialize};

use crate::RawJson;

/// Input of `Read`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct FileReadInput {
    /// The file, as an absolute path.
    pub file_path: String,
    /// The line to begin with.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub offset: Option<u64>,
    /// How many lines to read.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub limit: Option<u64>,
    /// Which pages of a PDF, such as `3` or `10-20`; at most 20.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub pages: Option<String>,
    /// Whether the usual limits of size are lifted for a text file.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub allow_large: Option<bool>,
}

impl FileReadInput {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(file_path: impl Into<String>) -> Self {
        Self {
            file_path: file_path.into(),
            offset: None,
            limit: None,
            pages: None,
            allow_large: None,
        }
    }
}

crate::wire_enum! {
    /// Output of `Read`, by the kind of file.
    pub enum FileReadOutput by "type" {
        /// A text file.
        "text" => Text(ReadText),
        /// A picture.
        "image" => Image(ReadImage),
        /// A Jupyter notebook.
        "notebook" => Notebook(ReadNotebook),
        /// A PDF.
        "pdf" => Pdf(ReadPdf),
        /// A PDF that was cut into pictures of its pages.
        "parts" => Parts(ReadParts),
    }
}

/// A text file that was read.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ReadText {
    /// What was read.
    pub file: ReadTextFile,
    /// Which version of an artifact now counts as seen, when the file is the source of one.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub artifact_read: Option<ArtifactVersion>,
}

/// Content of a text file.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ReadTextFile {
    /// The file.
    pub file_path: String,
    /// The lines that were asked for.
    pub content: String,
    /// How many lines these are.
    pub num_lines: u64,
    /// The number of the first of these lines.
    pub start_line: u64,
    /// How many lines the file has.
    pub total_lines: u64,
    /// Whether only a first part was read, because the whole would be too many tokens.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub truncated_by_token_cap: Option<bool>,
}

/// A picture that was read.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ReadImage {
    /// What was read.
    pub file: ReadImageFile,
}

/// Content of a picture.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ReadImageFile {
    /// The picture, in Base64.
    pub base64: String,
    /// The image's media type.
    #[serde(rename = "type")]
    pub kind: ImageMediaType,
    /// Size of the file, in bytes.
    pub original_size: u64,
    /// The sizes before and after the picture was made smaller.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub dimensions: Option<ImageDimensions>,
}

crate::open_enum! {
    /// Media type of a picture.
    pub enum ImageMediaType {
        /// JPEG.
        Jpeg = "image/jpeg",
        /// PNG.
        Png = "image/png",
        /// GIF.
        Gif = "image/gif",
        /// WebP.
        Webp = "image/webp",
    }
}

/// Sizes of a picture, in pixels.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ImageDimensions {
    /// Width in the file.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub original_width: Option<u64>,
    /// Height in the file.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub original_height: Option<u64>,
    /// Width as shown to the model.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub display_width: Option<u64>,
    /// Height as shown to the model.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub display_height: Option<u64>,
}

/// A notebook that was read.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ReadNotebook {
    /// What was read.
    pub file: ReadNotebookFile,
}

/// Content of a notebook.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ReadNotebookFile {
    /// The file.
    pub file_path: String,
    /// The notebook's cells.
    pub cells: Vec<RawJson>,
}

/// A PDF that was read.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ReadPdf {
    /// What was read.
    pub file: ReadPdfFile,
}

/// Content of a PDF.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ReadPdfFile {
    /// The file.
    pub file_path: String,
    /// The PDF, in Base64.
    pub base64: String,
    /// Size of the file, in bytes.
    pub original_size: u64,
}

/// A PDF that was cut into pictures.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ReadParts {
    /// Where the pictures are.
    pub file: ReadPartsFile,
    /// The number of the first page among these.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub first_page: Option<u64>,
    /// How many pages the document has, if only its first ones were read.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub total_pages: Option<u64>,
    /// The pages. The model gets them as images, so they are rarely here.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub pages: Option<Vec<ReadPage>>,
}

/// Where the pages of a PDF are.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ReadPartsFile {
    /// The file.
    pub file_path: String,
    /// Size of the file, in bytes.
    pub original_size: u64,
    /// How many pages were cut out.
    pub count: u64,
    /// The directory with a picture for each.
    pub output_dir: String,
}

/// One page of a PDF, as a picture.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ReadPage {
    /// The picture, in Base64; empty if there is none.
    pub base64: String,
    /// The page's media type.
    pub media_type: ImageMediaType,
    /// Why there is no picture.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub error: Option<String>,
}

/// An artifact and one of its versions.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct ArtifactVersion {
    /// The artifact.
    pub slug: String,
    /// The version.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub ver: Option<String>,
    /// False where the CLI did not note the read; never true.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub seeded: Option<bool>,
}
