//! `NotebookEdit`: changes a cell of a Jupyter notebook.
// Written by `cargo xtask types` from what upstream declares and upstream/tools/notebook.toml: change that instead.

use serde::{Deserialize, Serialize};

/// Input of `NotebookEdit`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct NotebookEditInput {
    /// The notebook, as an absolute path.
    pub notebook_path: String,
    /// The cell's new source.
    pub new_source: String,
    /// The cell; to insert, the one after which the new one goes.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub cell_id: Option<String>,
    /// The kind of cell; needed to insert.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub cell_type: Option<CellType>,
    /// What to do; replace if absent.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub edit_mode: Option<CellEdit>,
}

impl NotebookEditInput {
    /// Makes one of what is required, and leaves the rest out.
    pub fn new(notebook_path: impl Into<String>, new_source: impl Into<String>) -> Self {
        Self {
            notebook_path: notebook_path.into(),
            new_source: new_source.into(),
            cell_id: None,
            cell_type: None,
            edit_mode: None,
        }
    }
}

/// Output of `NotebookEdit`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[non_exhaustive]
pub struct NotebookEditOutput {
    /// The source that was written.
    pub new_source: String,
    /// The source that was there.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub old_source: Option<String>,
    /// The cell.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub cell_id: Option<String>,
    /// The kind of cell.
    pub cell_type: CellType,
    /// The notebook's language.
    pub language: String,
    /// What was done.
    pub edit_mode: String,
    /// Why the edit failed, if it failed.
    #[serde(skip_serializing_if = "crate::whole::unset")]
    pub error: Option<String>,
    /// The notebook.
    pub notebook_path: String,
    /// The whole notebook before the edit.
    pub original_file: String,
    /// The whole notebook after the edit.
    pub updated_file: String,
}

crate::open_enum! {
    /// The kind of a notebook cell.
    pub enum CellType {
        /// Code.
        Code = "code",
        /// Text in Markdown.
        Markdown = "markdown",
    }
}

crate::open_enum! {
    /// What to do with a notebook cell.
    pub enum CellEdit {
        /// Replace the source of the cell.
        Replace = "replace",
        /// Make a new one.
        Insert = "insert",
        /// Delete the cell.
        Delete = "delete",
    }
}
