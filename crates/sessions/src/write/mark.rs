//! Titles and tags: records that are appended, of which the last one counts.

use super::append::append;
use super::tag::clean_tag;
use crate::error::{Error, NotFound, Result};
use crate::id::SessionId;
use crate::place::{SessionFile, Sessions};
use crate::record::object::Object;

impl SessionFile {
    /// Sets the session's title, which lists show in place of its first prompt. The title is trimmed.
    ///
    /// This appends a `custom-title` record; the last one counts.
    ///
    /// # Errors
    /// When the title is empty, when the transcript is deleted or empty ([`Error::NotFound`]; nothing is created then), or
    /// cannot be written to.
    pub fn rename(&self, title: &str) -> Result<()> {
        let title = title.trim();
        if title.is_empty() {
            return Err(Error::invalid("the title", "it is empty"));
        }
        self.append_mark("custom-title", "customTitle", title)
    }

    /// Sets the session's tag, replacing the old one; `None` removes it.
    ///
    /// Invisible characters are removed from the tag first ([`clean_tag`]). This appends a `tag` record; the last one counts, and an
    /// empty one removes the tag.
    ///
    /// # Errors
    /// When the tag has no visible character, and as [`rename`](Self::rename).
    pub fn tag(&self, tag: Option<&str>) -> Result<()> {
        let cleaned = tag.map(clean_tag);
        if cleaned.as_deref() == Some("") {
            let why = "nothing in it can be seen; None takes a tag off";
            return Err(Error::invalid("the tag", why));
        }
        self.append_mark("tag", "tag", &cleaned.unwrap_or_default())
    }

    fn append_mark(&self, kind: &str, key: &'static str, value: &str) -> Result<()> {
        let mut record = Object::new();
        record.set_string("type", kind);
        record.set_string(key, value);
        record.set_string("sessionId", self.id.as_str());
        self.append(&record.to_text())
    }

    /// Appends a record, if the transcript is still there.
    pub(crate) fn append(&self, record: &str) -> Result<()> {
        if append(&self.path, record)? {
            return Ok(());
        }
        Err(NotFound {
            id: self.id.clone(),
            searched: vec![self.path.clone()],
            elsewhere: Vec::new(),
        }
        .into())
    }
}

impl Sessions {
    /// Gives a session a title: [`SessionFile::rename`] where [`find`](Self::find) finds it.
    ///
    /// # Errors
    /// As these two.
    pub fn rename(&self, id: &SessionId, title: &str) -> Result<()> {
        self.find(id)?.rename(title)
    }

    /// Gives a session a tag, or takes it off: [`SessionFile::tag`] where [`find`](Self::find) finds it.
    ///
    /// # Errors
    /// As these two.
    pub fn tag(&self, id: &SessionId, tag: Option<&str>) -> Result<()> {
        self.find(id)?.tag(tag)
    }
}

#[cfg(test)]
mod tests {
    use crate::write::testing::TestConfigDir;
    use std::fs;

    #[test]
    fn titles_and_tags_are_appended() {
        let place = TestConfigDir::new();
        let file = place.session(&["{\"type\":\"user\"}"]);
        let id = file.id.as_str();
        place.sessions.rename(&file.id, "  a \"title\"\n2 ").unwrap();
        place.sessions.tag(&file.id, Some(" ﬁx\u{200d}ed ")).unwrap();
        place.sessions.tag(&file.id, None).unwrap();
        let expected = [
            "{\"type\":\"user\"}".to_owned(),
            format!(r#"{{"type":"custom-title","customTitle":"a \"title\"\n2","sessionId":"{id}"}}"#),
            format!(r#"{{"type":"tag","tag":"fixed","sessionId":"{id}"}}"#),
            format!(r#"{{"type":"tag","tag":"","sessionId":"{id}"}}"#),
        ];
        assert_eq!(
            fs::read_to_string(&file.path).unwrap(),
            expected.join("\n") + "\n"
        );
        for error in [file.rename(" \n"), file.tag(Some("")), file.tag(Some("\u{200b}"))] {
            assert!(
                error.unwrap_err().to_string().contains("the t"),
                "it names what is wrong"
            );
        }
    }

    #[test]
    fn what_is_gone_is_not_created() {
        let place = TestConfigDir::new();
        let file = place.session(&["{}"]);
        fs::remove_file(&file.path).unwrap();
        assert!(file.rename("x").unwrap_err().is_not_found());
        assert!(place.sessions.tag(&file.id, None).unwrap_err().is_not_found());
        assert!(!file.path.exists());
        fs::write(&file.path, "").unwrap();
        assert!(file.tag(Some("x")).unwrap_err().is_not_found());
        assert_eq!(fs::read(&file.path).unwrap(), b"");
    }
}
