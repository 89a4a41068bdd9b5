//! A prompt that waits for texts that are not saved.

use std::collections::HashMap;

use agent_client_protocol::v1::schema as acp;
use futures_util::future::BoxFuture;

use super::actor::Actor;
use crate::{buffers, prompt};

/// A prompt whose texts have come: its number, what the user said, and the texts by the addresses of their files.
pub(super) type Read = (u64, acp::PromptRequest, HashMap<String, String>);

impl Actor {
    /// What a prompt has to wait for, if it does.
    pub(super) fn buffers_of(&self, request: &acp::PromptRequest) -> Vec<buffers::Mentioned> {
        let options = &self.conversation.again;
        let roots = options.cwd.iter().chain(&options.additional_directories);
        buffers::mentioned(request, self.client.capabilities(), roots)
    }

    /// Asks the editor for them.
    pub(super) fn read_buffers(
        &self,
        number: u64,
        request: acp::PromptRequest,
        files: Vec<buffers::Mentioned>,
    ) -> BoxFuture<'static, Read> {
        let (client, id) = (self.client.clone(), self.id.clone());
        Box::pin(async move {
            let texts = buffers::unsaved(&client, &id, files).await;
            (number, request, texts)
        })
    }

    /// They have come, or not: the prompt can be sent.
    pub(super) fn buffers_read(&mut self, (number, request, texts): Read) {
        let commands = self.process.session().command_names();
        let is_command = |name: &str| commands.iter().any(|known| known == name);
        let prompt = match texts.is_empty() {
            true => None,
            // It was a prompt without them, and is one with them.
            false => prompt::with_unsaved(&request.prompt, is_command, &texts).ok(),
        };
        self.prompts
            .complete(number, prompt.map(outrigger::Prompt::from_person));
    }
}
