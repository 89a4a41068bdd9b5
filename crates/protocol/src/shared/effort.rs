//! How hard the model thinks.

use super::closed_enum::closed_enum;

closed_enum! {
    /// How much effort the model puts into a turn.
    #[non_exhaustive]
    pub enum Effort {
        /// The least.
        Low = "low",
        /// The middle.
        Medium = "medium",
        /// More than the middle.
        High = "high",
        /// Still more; not every model has it.
        XHigh = "xhigh",
        /// The most; not every model has it.
        Max = "max",
    }
}
