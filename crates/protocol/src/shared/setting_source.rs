//! Which settings files count.

use super::closed_enum::closed_enum;

closed_enum! {
    /// A settings file that the CLI may load. Managed settings are always loaded.
    #[non_exhaustive]
    pub enum SettingSource {
        /// The user's, for all projects.
        User = "user",
        /// The project's, shared.
        Project = "project",
        /// The project's, on this machine.
        Local = "local",
    }
}
