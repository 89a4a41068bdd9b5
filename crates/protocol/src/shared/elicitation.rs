//! How an MCP server asks: in the request itself, and for hooks.

use crate::open_enum;

open_enum! {
    /// How an MCP server asks.
    pub enum ElicitationMode {
        /// By a form.
        Form = "form",
        /// At an address.
        Url = "url",
    }
}
