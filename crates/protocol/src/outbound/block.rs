//! Blocks for prompts.

use crate::shared::{
    Base64Source, ContentBlock, DocumentBlock, DocumentSource, FileSource, ImageBlock, ImageSource,
    TextBlock, TextSource, UrlSource,
};

/// Blocks that a prompt may hold.
impl ContentBlock {
    /// A block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextBlock {
            text: text.into(),
            ..TextBlock::default()
        })
    }

    /// A picture whose bytes are in the prompt. `media_type` is one of `image/png`, `image/jpeg`, `image/gif`, `image/webp`; `data` is
    /// base64.
    pub fn image_base64(media_type: impl Into<String>, data: impl Into<String>) -> Self {
        image(ImageSource::Base64(base64(media_type, data)))
    }

    /// A picture that the API fetches.
    pub fn image_url(url: impl Into<String>) -> Self {
        image(ImageSource::Url(UrlSource { url: url.into() }))
    }

    /// A picture uploaded to the API before.
    pub fn image_file(file_id: impl Into<String>) -> Self {
        image(ImageSource::File(FileSource {
            file_id: file_id.into(),
        }))
    }

    /// A PDF whose bytes are in the prompt; `data` is base64.
    pub fn pdf_base64(data: impl Into<String>) -> Self {
        document(DocumentSource::Base64(base64("application/pdf", data)))
    }

    /// A PDF that the API fetches.
    pub fn pdf_url(url: impl Into<String>) -> Self {
        document(DocumentSource::Url(UrlSource { url: url.into() }))
    }

    /// A document of plain text.
    pub fn text_document(text: impl Into<String>) -> Self {
        document(DocumentSource::Text(TextSource {
            media_type: "text/plain".to_owned(),
            data: text.into(),
        }))
    }

    /// A document uploaded to the API before.
    pub fn file(file_id: impl Into<String>) -> Self {
        document(DocumentSource::File(FileSource {
            file_id: file_id.into(),
        }))
    }

    /// Gives a document a title. Does nothing to other blocks.
    pub fn titled(mut self, title: impl Into<String>) -> Self {
        if let Self::Document(document) = &mut self {
            document.title = Some(title.into());
        }
        self
    }
}

fn base64(media_type: impl Into<String>, data: impl Into<String>) -> Base64Source {
    Base64Source {
        media_type: media_type.into(),
        data: data.into(),
    }
}

fn image(source: ImageSource) -> ContentBlock {
    ContentBlock::Image(ImageBlock {
        source,
        cache_control: None,
        transformations: None,
    })
}

fn document(source: DocumentSource) -> ContentBlock {
    ContentBlock::Document(DocumentBlock {
        source,
        title: None,
        context: None,
        citations: None,
        cache_control: None,
    })
}
