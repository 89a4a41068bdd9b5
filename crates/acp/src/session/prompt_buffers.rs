//! Prompts that wait for unsaved texts.

use std::collections::HashMap;

use agent_client_protocol::v1::schema as acp;
use futures_util::future::BoxFuture;

use super::actor::Actor;
use crate::{buffers, prompt};

/// The number of a prompt, its request, and the unsaved texts by URL.
pub(super) type PromptWithBuffers = (u64, acp::PromptRequest, HashMap<String, String>);

impl Actor {
    /// The files whose texts a prompt has to wait for.
    pub(super) fn buffers_of(&self, request: &acp::PromptRequest) -> Vec<buffers::Mentioned> {
        if self.link.is_some() {
            // The files of the editor are others.
            return Vec::new();
        }
        let options = &self.conversation.again;
        let roots = options.cwd.iter().chain(&options.additional_directories);
        buffers::mentioned(request, self.client.capabilities(), roots)
    }

    /// Asks the editor for the texts.
    pub(super) fn read_buffers(
        &self,
        number: u64,
        request: acp::PromptRequest,
        files: Vec<buffers::Mentioned>,
    ) -> BoxFuture<'static, PromptWithBuffers> {
        let (client, id) = (self.client.clone(), self.id.clone());
        Box::pin(async move {
            let texts = buffers::unsaved(&client, &id, files).await;
            (number, request, texts)
        })
    }

    /// The editor has answered or not: the prompt can be sent.
    pub(super) fn buffers_read(&mut self, (number, request, texts): PromptWithBuffers) {
        let commands = self.process.session().command_names();
        let is_command = |name: &str| commands.iter().any(|known| known == name);
        let prompt = match texts.is_empty() {
            true => None,
            // The request was valid without the texts, so it is with them.
            false => prompt::with_unsaved(&request.prompt, is_command, &texts).ok(),
        };
        self.prompts
            .complete(number, prompt.map(outrigger::Prompt::from_person));
    }
}
