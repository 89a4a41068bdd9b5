//! Markdown as it is written: each block is shown once it is complete, and a paragraph word by word. What is on the screen is never
//! drawn again.

mod render;

use std::ops::Range;

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use self::render::{Inline, render};

/// A block that is longer than this is shown although its end has not come, in bytes.
const LONGEST: usize = 64 * 1024;

/// Shows Markdown that comes in pieces. The text must be free of control characters; what it spells as entities is made harmless
/// here.
#[derive(Debug, Default)]
pub(crate) struct Markdown {
    /// What has come and is not done with.
    pending: String,
    /// How much of the block was shown: the begin of a paragraph.
    shown: usize,
    fence: Option<Fence>,
    /// Something was shown since the text began, so that the next block is set apart.
    any: bool,
    /// A list is shown item by item: the number of the next one, if it has numbers.
    list: Option<Option<u64>>,
}

/// A code block between fences.
#[derive(Debug)]
struct Fence {
    mark: char,
    count: usize,
    indent: usize,
}

/// A block that no other one contains.
#[derive(Debug)]
struct Block {
    range: Range<usize>,
    kind: MarkdownBlock,
    /// Where the items of a list begin.
    items: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MarkdownBlock {
    Paragraph,
    /// Complete with its line.
    Line,
    List(Option<u64>),
    Code,
    Other,
}

impl Markdown {
    /// Takes the next piece of text, and returns what can be shown now.
    pub(crate) fn push(&mut self, text: &str, width: usize) -> String {
        self.pending.push_str(text);
        let mut out = String::new();
        let end = self.pending.len() - self.shown > LONGEST;
        while self.step(end, width, &mut out) {}
        out
    }

    /// The text has ended: returns all that was not shown, and ends its line.
    pub(crate) fn finish(&mut self, width: usize) -> String {
        let mut out = String::new();
        while self.step(true, width, &mut out) {}
        *self = Self::default();
        out
    }

    /// Shows one thing, if one can be shown. `end`: nothing comes after this.
    fn step(&mut self, end: bool, width: usize, out: &mut String) -> bool {
        if self.fence.is_some() {
            return self.code_line(end, out);
        }
        if self.shown == 0 {
            self.skip_blank_lines();
        }
        if self.pending.is_empty() {
            return false;
        }
        let lines = match self.pending.rfind('\n') {
            _ if end => self.pending.len(),
            Some(at) => at + 1,
            None => 0,
        };
        if self.shown == 0 && lines > 0 && self.opens_fence(out) {
            return true;
        }
        let blocks = blocks(&self.pending[..lines]);
        let Some(block) = blocks.first() else {
            if end || self.pending[..lines].ends_with("\n\n") {
                // Nothing to see for Markdown, such as the address of a link.
                let text = self.pending[self.shown..lines].trim().to_owned();
                self.begin_block(out);
                out.push_str(&text);
                out.push('\n');
                self.consume(lines);
                return true;
            }
            return lines == 0 && self.words(0, out);
        };
        let blank_line = ends_in_blank_line(&self.pending[..lines]);
        let is_complete = match block.kind {
            _ if blocks.len() > 1 || end => true,
            MarkdownBlock::Line => true,
            MarkdownBlock::Paragraph | MarkdownBlock::Other => blank_line,
            MarkdownBlock::List(_) | MarkdownBlock::Code => false,
        };
        if is_complete {
            self.block(
                &blocks[0],
                blocks.get(1).map_or(lines, |next| next.range.start),
                width,
                out,
            );
            return true;
        }
        match block.kind {
            MarkdownBlock::List(_) => self.items(&blocks[0], width, out),
            MarkdownBlock::Paragraph => self.words(lines, out),
            _ => false,
        }
    }

    fn consume(&mut self, bytes: usize) {
        self.pending.drain(..bytes);
        self.shown = 0;
    }

    fn skip_blank_lines(&mut self) {
        while let Some(end) = self.pending.find('\n')
            && self.pending[..end].trim().is_empty()
        {
            self.pending.drain(..=end);
        }
        if self.pending.trim().is_empty() && !self.pending.contains('\n') && self.pending.len() > 64 {
            self.pending.clear();
        }
    }

    /// Sets the next block apart from the one before it.
    fn begin_block(&mut self, out: &mut String) {
        if self.any {
            out.push('\n');
        }
        self.any = true;
        self.list = None;
    }

    fn opens_fence(&mut self, out: &mut String) -> bool {
        let end = self.pending.find('\n').unwrap_or(self.pending.len());
        let line = &self.pending[..end];
        let indent = line.len() - line.trim_start_matches(' ').len();
        let marks = &line[indent..];
        let Some(mark) = marks.chars().next().filter(|mark| matches!(mark, '`' | '~')) else {
            return false;
        };
        let count = marks.chars().take_while(|char| *char == mark).count();
        if indent > 3 || count < 3 || (mark == '`' && marks[count..].contains('`')) {
            return false;
        }
        self.begin_block(out);
        self.fence = Some(Fence { mark, count, indent });
        self.consume((end + 1).min(self.pending.len()));
        true
    }

    fn code_line(&mut self, end: bool, out: &mut String) -> bool {
        let Some(fence) = &self.fence else {
            return false;
        };
        let (line, length) = match self.pending.find('\n') {
            Some(at) => (&self.pending[..at], at + 1),
            None if end && !self.pending.is_empty() => (&self.pending[..], self.pending.len()),
            None => {
                if end {
                    self.fence = None;
                }
                return false;
            }
        };
        let marks = line.trim();
        let closes = marks.len() >= fence.count
            && marks.chars().all(|char| char == fence.mark)
            && line.len() - line.trim_start_matches(' ').len() <= 3;
        if closes {
            self.fence = None;
        } else {
            let spaces = line.len() - line.trim_start_matches(' ').len();
            render::code_line(&line[spaces.min(fence.indent)..], out);
        }
        self.consume(length);
        true
    }

    /// Shows a block that is complete, and goes on at `next`.
    fn block(&mut self, block: &Block, next: usize, width: usize, out: &mut String) {
        let source = &self.pending[self.shown.max(block.range.start)..block.range.end.max(self.shown)];
        if self.shown > 0 {
            // Its begin is on the screen. If it has become a heading, it is underlined by a line that nobody needs.
            let source = source.trim_end();
            let source = match block.kind {
                MarkdownBlock::Line => source.rfind('\n').map_or("", |at| &source[..at]),
                _ => source,
            };
            out.push_str(&Inline::goes_on(source).shown);
            out.push('\n');
        } else {
            let shown = match (block.kind, self.list) {
                (MarkdownBlock::List(start), Some(number)) => render(source, width, number.or(start)),
                (_, _) => render(source, width, None),
            };
            if !matches!((block.kind, self.list), (MarkdownBlock::List(_), Some(_))) {
                self.begin_block(out);
            }
            out.push_str(&shown);
        }
        self.list = None;
        self.consume(next);
    }

    /// Shows all items of a list but the last, which may grow.
    fn items(&mut self, block: &Block, width: usize, out: &mut String) -> bool {
        let (MarkdownBlock::List(start), [.., last]) = (block.kind, block.items.as_slice()) else {
            return false;
        };
        let (last, count) = (*last, block.items.len() as u64);
        if count < 2 {
            return false;
        }
        let number = self.list.flatten().or(start);
        let source = &self.pending[block.range.start..last];
        let shown = render(source, width, number);
        let is_loose = source.ends_with("\n\n");
        if self.list.is_none() {
            self.begin_block(out);
        }
        out.push_str(&shown);
        if is_loose {
            out.push('\n');
        }
        self.list = Some(number.map(|number| number + count - 1));
        self.consume(last);
        true
    }

    /// Shows the words of a paragraph that are complete, if what they mean does not depend on what comes.
    fn words(&mut self, lines: usize, out: &mut String) -> bool {
        let tail = &self.pending[lines..];
        let goes_on = begins_paragraph(tail) || (lines == 0 && self.shown > 0);
        let region = if goes_on {
            &self.pending[..]
        } else {
            &self.pending[..lines]
        };
        let space = region.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        // Part of a word means what it says, unless there are marks in it.
        let is_plain = region.get(space..).is_some_and(|word| word.chars().all(is_plain));
        let end = if is_plain { region.len() } else { space };
        let end = region[..end].trim_end().len();
        if end <= self.shown {
            return false;
        }
        let source = &self.pending[self.shown..end];
        let inline = if self.shown == 0 {
            Inline::begins(source)
        } else {
            Inline::goes_on(source)
        };
        if !inline.is_closed {
            return false;
        }
        if self.shown == 0 {
            self.begin_block(out);
        }
        out.push_str(&inline.shown);
        self.shown = end;
        true
    }
}

/// Whether this begin of a line is that of a paragraph, and not of a list, a heading or whatever else.
fn begins_paragraph(line: &str) -> bool {
    let mut chars = line.chars();
    match chars.next() {
        Some(first) if first.is_alphabetic() => true,
        Some('"' | '\'' | '(') => true,
        Some('*') => line.starts_with("**") && line[2..].starts_with(|third: char| third.is_alphanumeric()),
        Some('`') => chars.next().is_some_and(|second| second != '`'),
        Some(first) if first.is_ascii_digit() => {
            let rest = line.trim_start_matches(|char: char| char.is_ascii_digit());
            rest.starts_with(|char| !matches!(char, '.' | ')'))
        }
        Some(first) => !first.is_ascii() && !first.is_whitespace(),
        None => false,
    }
}

/// Whether this character stands for itself, whatever comes behind it.
fn is_plain(char: char) -> bool {
    char.is_alphanumeric()
        || matches!(
            char,
            '.' | ',' | ';' | ':' | '?' | '"' | '\'' | '(' | ')' | '/' | '-'
        )
}

fn ends_in_blank_line(text: &str) -> bool {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.rsplit('\n')
        .next()
        .is_some_and(|line| line.trim().is_empty())
}

/// The blocks of the text that no other one contains.
fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut depth = 0usize;
    for (event, range) in Parser::new_ext(text, render::EXTENSIONS).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                if depth == 0 {
                    let kind = match &tag {
                        Tag::Paragraph => MarkdownBlock::Paragraph,
                        Tag::Heading { .. } => MarkdownBlock::Line,
                        Tag::List(start) => MarkdownBlock::List(*start),
                        Tag::CodeBlock(_) => MarkdownBlock::Code,
                        _ => MarkdownBlock::Other,
                    };
                    blocks.push(Block {
                        range,
                        kind,
                        items: Vec::new(),
                    });
                } else if depth == 1
                    && matches!(tag, Tag::Item)
                    && let Some(list) = blocks.last_mut()
                {
                    list.items.push(range.start);
                }
                depth += 1;
            }
            Event::End(TagEnd::MetadataBlock(_)) | Event::End(_) => depth = depth.saturating_sub(1),
            Event::Rule if depth == 0 => blocks.push(Block {
                range,
                kind: MarkdownBlock::Line,
                items: Vec::new(),
            }),
            _ => {}
        }
    }
    blocks
}

#[cfg(test)]
mod tests;
