"""Writes down what the official SDK reads of all sessions below CLAUDE_CONFIG_DIR, as one JSON object.

The arguments are directories of projects, whose sessions are listed too.
"""

import dataclasses
import json
import sys

from claude_agent_sdk import (
    get_session_info,
    get_session_messages,
    get_subagent_messages,
    list_sessions,
    list_subagents,
)

NAMES = {
    "session_id": "sessionId",
    "last_modified": "lastModified",
    "file_size": "fileSize",
    "custom_title": "customTitle",
    "first_prompt": "firstPrompt",
    "git_branch": "gitBranch",
    "created_at": "createdAt",
}


def info(read):
    if read is None:
        return None
    fields = dataclasses.asdict(read)
    return {NAMES.get(name, name): value for name, value in fields.items() if value is not None}


def messages(read):
    return [dataclasses.asdict(message) for message in read]


def session(id):
    agents = list_subagents(id)
    return {
        "info": info(get_session_info(id)),
        "messages": messages(get_session_messages(id)),
        "page": messages(get_session_messages(id, limit=2, offset=1)),
        "subagents": {agent: messages(get_subagent_messages(id, agent)) for agent in agents},
    }


def main(ids, dirs):
    told = {
        "list": [info(read) for read in list_sessions()],
        "page": [info(read) for read in list_sessions(limit=3, offset=2)],
        "dirs": {dir: [info(read) for read in list_sessions(directory=dir)] for dir in dirs},
        "sessions": {id: session(id) for id in ids},
    }
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main(json.load(sys.stdin), sys.argv[1:])
